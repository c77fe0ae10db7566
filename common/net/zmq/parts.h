// Frames as messages of ZeroMQ: header, envelope, then each section as a part of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/base/buffer.h"
#include "common/base/status.h"
#include "common/net/callers.h"
#include "common/net/frame.h"
#include "common/net/shared/shared_memory_links.h"

namespace hdps {

inline constexpr size_t kPartsMax = 2 + kFrameSectionsMax;
// Smaller parts are copied, which is cheaper than sharing their bytes with ZeroMQ.
inline constexpr size_t kSharedPartBytesMin = 4096;

// Shares the bytes of a part; those that are small or stand at an odd address are copied.
Buffer BufferOf(zmq::message_t part);

// Of one frame; shared sections go as their blocks.
std::vector<zmq::message_t> PartsOf(const Frame& frame, const std::vector<SharedBlock>& blocks);

// False when the first part is not taken: no such peer, or its queue is full. Once ZeroMQ has the
// first part, the others must follow, even if it drops them: they end the message.
bool SendMessage(zmq::socket_t& socket, std::vector<zmq::message_t>& parts);

// The parts of a frame; `id` stands before one to a ROUTER's caller.
bool SendParts(zmq::socket_t& socket, const CallerId* id, const Frame& frame,
               const std::vector<SharedBlock>& blocks);

// Of a message that was taken from a ROUTER.
struct Arrival {
  bool curve = false;        // It came over CURVE; to be said before.
  int connection = -1;       // By which descriptor it came; -1: libzmq does not say.
  std::string address = {};  // Of the other end's host, where it came over tcp.
  uint64_t wire_bytes = 0;   // What its parts took of that connection, framed and encrypted.
};

// All parts of one message; of parts beyond any frame's number only the first is kept, so that the
// message is known to be too long. False when none has come. Where `arrival` is asked for, the
// socket is a ROUTER.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>* parts,
                  Arrival* arrival = nullptr);

// The frame whose header is part `first`, with its shared sections as `take_shared` gives them,
// still to be checked. kInvalidArgument when the parts are none of a frame; or what `take_shared`
// said.
Status ReadFrame(std::vector<zmq::message_t>& parts, size_t first,
                 const std::function<Result<Buffer>(const Buffer&)>& take_shared, Frame* frame);

// Why a message to a ROUTER is refused whose routing id names no caller. Another release may name
// itself in another way: then its version is what is wrong.
std::string WhyNoCaller(const std::vector<zmq::message_t>& parts);

// What the authenticator said of whom the message came from; empty without keys.
std::string KeyOf(const zmq::message_t& part);

}  // namespace hdps
