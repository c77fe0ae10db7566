// What stands around listening and dialing: may it be, is the place free, what failed.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/net/address.h"

namespace hdps {

// The address between processes that `text` names. kInvalidArgument as CheckAddress() has it, and
// when something is at an ipc path already that must not be replaced: a socket that somebody
// listens on, or no socket at all.
Result<Address> AddressToListenOn(const std::string& text, bool may_leave);
// The same for dialing: kInvalidArgument also without a host and a port of one process.
Result<Address> AddressToDial(const std::string& text, bool may_leave);

// Where others reach who listens on `address`, which ZeroMQ has `bound`: "tcp://*" becomes an
// address of this machine.
Result<std::string> AsOthersDial(Address address, const std::string& bound);

// For people: the network interface of a tcp address to listen on, "interface eth0" or "every
// interface".
std::string InterfacesOf(const Address& address);

// What `error`, an errno whose text is `text`, means to the operator.
Status BindFailure(const Address& address, int error, const std::string& text);

}  // namespace hdps
