// What stands around listening at an address: is the place free, who is reached there, what failed.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/net/address.h"

namespace hdps {

// kInvalidArgument when something is at the path already that must not be replaced: a socket that
// somebody listens on, or no socket at all.
Status CheckPathIsFree(const Address& address);

// An address of this machine that others can reach, for "tcp://*".
std::string OwnHost();

// What `error`, an errno whose text is `text`, means to the operator.
Status BindFailure(const Address& address, int error, const std::string& text);

}  // namespace hdps
