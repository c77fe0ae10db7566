// Ends a connection of libzmq's while a message of too many parts arrives by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/net/zmq/open_connections.h"

namespace hdps {

// libzmq hands out a message when its last part has come, takes 64 bytes of memory for each part
// until then, and has no limit on their number. So its reads pass through here: where this is
// linked, recv() of this process is ours, which reads as the C library's does, counts the parts of
// what libzmq's threads have read, and tells them of an end of stream once a message has more than
// kPartsArrivingMax.
//
// The newest 4,096 that were ended so are remembered until they are taken. From any thread.
//
// The oldest of those that had this descriptor and were accepted at `endpoint`; none was.
std::optional<ConnectionEnds> FindEndedByParts(int fd, const std::string& endpoint);
// Whether the connection with this cookie was one of them, which it is no longer then.
bool TakeEndedByParts(uint64_t cookie);

}  // namespace hdps
