// Parses and prints addresses: "tcp://host:port", "host:port", "ipc://path", "inproc://name". In
// "tcp://host:port+data_port" the second port carries encrypted frames.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Upper bound on the length of an address as text; a host name has at most 253 characters.
inline constexpr size_t kAddressBytesMax = 272;
inline constexpr int kPortMax = 65535;

// Invariant: kTcp has a host of letters, digits, '.', '-', '_', or "*", a port of 0..65535, and
// either no data port or a different one of 1..65535. kIpc has a path that fits into a socket
// address. kInproc has a name.
struct Address {
  enum class Scheme { kTcp, kIpc, kInproc };
  Scheme scheme = Scheme::kTcp;
  std::string host;   // kTcp; "localhost" is stored as 127.0.0.1, which a socket can also bind.
  int port = 0;       // kTcp; 0 means any free port.
  int data_port = 0;  // kTcp; 0 means none.
  std::string path;   // kIpc, kInproc

  std::string ToString() const;
  // Returns the text that ZeroMQ binds or dials for port `of_port`. Ignores it for a path or name.
  std::string Endpoint(int of_port) const;
  // Is true if the address names one port of one host. "*" and port 0 can only be listened on, and
  // wildcard, multicast and broadcast addresses name no single host.
  bool CanBeDialed() const;
  bool OnThisMachine() const;  // Is false if another machine can reach it.
};

// Errors: kInvalidArgument says what is wrong with `text` and what would be right.
Result<Address> ParseAddress(const std::string& text);

}  // namespace hdps
