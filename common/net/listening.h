// Checks before listening and dialing, and explains failures of both.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/net/address.h"

namespace hdps {

// Parses an address to listen on. Errors: kInvalidArgument as in CheckAddress(), and if an ipc path
// is taken by a socket in use or by a file that is not a socket, because binding would replace it.
Result<Address> AddressToListenOn(const std::string& text, bool may_leave);
// Parses an address to dial. Errors: kInvalidArgument as above, and if the address does not name
// one port of one host.
Result<Address> AddressToDial(const std::string& text, bool may_leave);

// Returns the address under which others dial a listener, where `bound` is the endpoint that ZeroMQ
// has bound: "tcp://*" becomes an address of this machine.
Result<std::string> AsOthersDial(Address address, const std::string& bound);

// Returns an address of this machine that others can reach; 127.0.0.1 if it has none.
std::string OwnHost();

// Describes the network interfaces of a tcp address for people: "interface eth0" or "every
// interface".
std::string InterfacesOf(const Address& address);

// Explains the failed bind with errno `error`, whose text is `text`, to the operator.
Status BindFailure(const Address& address, int error, const std::string& text);

}  // namespace hdps
