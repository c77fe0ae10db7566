// Addresses as operators write them: "tcp://host:port", "host:port", "ipc://path", "inproc://name".
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace hdps {

// No address is longer as text: a host name has 253 characters at most.
inline constexpr size_t kAddressBytesMax = 272;

// Invariant: tcp has a host of letters, digits, '.', '-', '_', or "*", and a port of 0..65535; ipc
// has a path that fits a socket's address; inproc has a name.
struct Address {
  enum class Scheme { kTcp, kIpc, kInproc };
  Scheme scheme = Scheme::kTcp;
  std::string host;  // kTcp; "localhost" has become 127.0.0.1, which can also be listened on.
  int port = 0;      // kTcp; 0 = any that is free.
  std::string path;  // kIpc, kInproc

  std::string ToString() const;
  // Of one process, on one port: neither "*" nor port 0, which can only be listened on, nor the
  // numbers of any machine, of many, or of none.
  bool CanBeDialed() const;
  bool OnThisMachine() const;  // Nobody on another machine can reach it.
};

// kInvalidArgument says what is wrong with `text` and what would be right.
Result<Address> ParseAddress(const std::string& text);

}  // namespace hdps
