// Opens the socket on which an HTTP server listens.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/net/address.h"

namespace hdps {

// Errors: kInvalidArgument if `listen` is not HOST:PORT.
Result<Address> HttpAddress(const std::string& listen);

// An open socket that listens, which its taker closes.
struct ListeningSocket {
  int descriptor = -1;
  int port = 0;
};
// Errors: kInvalidArgument says why the address cannot be listened at, and who has its port.
Result<ListeningSocket> ListenAt(const Address& address);

// Returns the IPv4 address of this machine that a connection came to; empty if there is none.
std::string LocalHostOf(int connection);

}  // namespace hdps
