// Converts frames to ZeroMQ messages: header, envelope, then each section as a part of its own.
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

// Returns a Buffer that shares the bytes of a part. Small parts, and those at an address not
// aligned to 8, are copied.
Buffer BufferOf(zmq::message_t part);

// Returns the parts of a frame. Shared sections are represented by their blocks.
std::vector<zmq::message_t> PartsOf(const Frame& frame, const std::vector<SharedBlock>& blocks);

// Sends a message. Returns false if the first part was not taken, because there is no such peer or
// its queue is full. Once ZeroMQ has the first part, the others must follow even if it drops them,
// because they end the message.
bool SendMessage(zmq::socket_t& socket, std::vector<zmq::message_t>& parts);

// Sends a frame. On a ROUTER, `id` names the caller and goes first.
bool SendParts(zmq::socket_t& socket, const CallerId* id, const Frame& frame,
               const std::vector<SharedBlock>& blocks);

// Facts about a message that was received on a ROUTER.
struct Arrival {
  bool curve = false;        // It came over CURVE; set by the caller.
  int connection = -1;       // Descriptor of its connection; -1 if libzmq does not say.
  std::string address = {};  // Host of the other end, for tcp.
  uint64_t wire_bytes = 0;   // Bytes of its parts on that connection, framed and encrypted.
};

// Receives all parts of one message. Of parts beyond the maximum of a frame only one is kept, so
// that the message is recognized as too long. Returns false if there is none. If `arrival` is
// given, the socket must be a ROUTER.
bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>* parts,
                  Arrival* arrival = nullptr);

// Assembles the frame whose header is part `first`, with its shared sections from `take_shared`.
// The frame is still to be verified by CheckFrame(). Errors: kInvalidArgument if the parts do not
// form a frame; errors of `take_shared`.
Status ReadFrame(std::vector<zmq::message_t>& parts, size_t first,
                 const std::function<Result<Buffer>(const Buffer&)>& take_shared, Frame* frame);

// Explains the refusal of a message to a ROUTER whose routing id does not parse as a CallerId.
// Another release may use other ids; then the protocol version is to blame.
std::string WhyNoCaller(const std::vector<zmq::message_t>& parts);

// Returns the key that the authenticator attached to the sender of a message; empty without keys.
std::string KeyOf(const zmq::message_t& part);

}  // namespace hdps
