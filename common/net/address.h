// Addresses as operators write them: "tcp://host:port", "host:port", "ipc://path", "inproc://name".
// "tcp://host:port+data_port" has a second port, where frames travel sealed.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace hdps {

// No address is longer as text: a host name has 253 characters at most.
inline constexpr size_t kAddressBytesMax = 272;
inline constexpr int kPortMax = 65535;

// Invariant: tcp has a host of letters, digits, '.', '-', '_', or "*", a port of 0..65535 and a
// data port, which is another one of 1..65535, or none; ipc has a path that fits a socket's
// address; inproc has a name.
struct Address {
  enum class Scheme { kTcp, kIpc, kInproc };
  Scheme scheme = Scheme::kTcp;
  std::string host;   // kTcp; "localhost" has become 127.0.0.1, which can also be listened on.
  int port = 0;       // kTcp; 0 = any that is free.
  int data_port = 0;  // kTcp; 0 = none.
  std::string path;   // kIpc, kInproc

  std::string ToString() const;
  // What ZeroMQ binds or dials for one of the ports; all of a path or name.
  std::string Endpoint(int of_port) const;
  // Of one process, on one port: neither "*" nor port 0, which can only be listened on, nor the
  // numbers of any machine, of many, or of none.
  bool CanBeDialed() const;
  bool OnThisMachine() const;  // Nobody on another machine can reach it.
};

// kInvalidArgument says what is wrong with `text` and what would be right.
Result<Address> ParseAddress(const std::string& text);

}  // namespace hdps
