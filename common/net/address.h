// Addresses as operators write them: "tcp://host:port", "host:port", "ipc://path", "inproc://name".
#pragma once

#include <string>

#include "common/base/status.h"

namespace hdps {

// Invariant: tcp has a host of letters, digits, '.', '-', '_', or "*", and a port of 0..65535; ipc
// has a path that fits a socket's address; inproc has a name.
struct Address {
  enum class Scheme { kTcp, kIpc, kInproc };
  Scheme scheme = Scheme::kTcp;
  std::string host;  // kTcp; "localhost" has become 127.0.0.1, which can also be listened on.
  int port = 0;      // kTcp; 0 = any that is free.
  std::string path;  // kIpc, kInproc

  std::string ToString() const;
  bool OnThisMachine() const;  // Nobody on another machine can reach it.
};

// kInvalidArgument says what is wrong with `text` and what would be right.
Result<Address> ParseAddress(const std::string& text);

}  // namespace hdps
