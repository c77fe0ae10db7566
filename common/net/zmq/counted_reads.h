// Ends a connection of libzmq while a message with too many parts arrives on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/net/zmq/open_connections.h"

namespace hdps {

// libzmq hands out a message when its last part has arrived, takes 64 bytes of memory for each part
// until then, and does not limit their number. So its reads are counted here. A program that links
// this file has its recv() replaced by one that reads like the C library's, counts the parts in
// what libzmq's threads have read, and reports an end of stream once a message has more than
// kPartsArrivingMax.
//
// The newest 4,096 connections that were ended this way are remembered until they are taken. Any
// thread may call these functions.
std::optional<ConnectionEnds> FindEndedByParts(int fd, const std::string& endpoint);
// Is true if the connection with this cookie was one of them; then it is forgotten.
bool TakeEndedByParts(uint64_t cookie);

}  // namespace hdps
