// Moves frames in and out of ZeroMQ's sockets, without copying large parts.
#include "common/net/zmq/parts.h"

#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace hdps {
namespace {

// Shares the bytes of a Buffer with ZeroMQ until they are sent; small ones are copied.
zmq::message_t PartOf(const Buffer& bytes) {
  if (bytes.size() < kSharedPartBytesMin) return zmq::message_t(bytes.data(), bytes.size());
  return zmq::message_t(
      const_cast<std::byte*>(bytes.data()), bytes.size(),
      [](void*, void* buffer) { delete static_cast<Buffer*>(buffer); }, new Buffer(bytes));
}

// Returns the size of a part in ZMTP 3: flags and a length of one or eight bytes; under CURVE also
// a command name, a nonce, flags and an authenticator.
uint64_t WireBytes(size_t bytes, bool curve) {
  constexpr uint64_t kCurveBytes = 8 + 8 + 1 + 16;
  constexpr uint64_t kShortMax = 255;
  const uint64_t body = bytes + (curve ? kCurveBytes : 0);
  return body + (body <= kShortMax ? 2 : 9);
}

void TellConnection(const zmq::message_t& part, Arrival* arrival) {
  arrival->connection = zmq_msg_get(part.handle(), ZMQ_SRCFD);
  const char* const address = zmq_msg_gets(part.handle(), "Peer-Address");
  if (address != nullptr) arrival->address = address;
}

}  // namespace

Buffer BufferOf(zmq::message_t part) {
  const std::span<const std::byte> bytes(part.data<std::byte>(), part.size());
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) == 0;
  if (bytes.size() < kSharedPartBytesMin || !aligned) return Buffer::CopyOf(bytes);
  auto owner = std::make_shared<zmq::message_t>(std::move(part));
  const void* data = owner->data();
  const size_t size = owner->size();
  return Buffer(std::move(owner), data, size);
}

std::vector<zmq::message_t> PartsOf(const Frame& frame, const std::vector<SharedBlock>& blocks) {
  std::vector<zmq::message_t> parts;
  parts.reserve(4 + frame.sections.size());
  parts.emplace_back(&frame.header, sizeof(frame.header));
  parts.push_back(PartOf(frame.envelope));
  size_t block = 0;
  for (size_t i = 0; i < frame.sections.size(); ++i) {
    if (IsShared(frame.header, i)) {
      parts.emplace_back(&blocks[block++], sizeof(SharedBlock));
    } else {
      parts.push_back(PartOf(frame.sections[i]));
    }
  }
  return parts;
}

bool SendParts(zmq::socket_t& socket, const CallerId* id, const Frame& frame,
               const std::vector<SharedBlock>& blocks) {
  std::vector<zmq::message_t> parts = PartsOf(frame, blocks);
  if (id != nullptr) parts.emplace(parts.begin(), BytesOf(*id).data(), sizeof(CallerIdBytes));
  return SendMessage(socket, parts);
}

bool SendMessage(zmq::socket_t& socket, std::vector<zmq::message_t>& parts) {
  bool whole = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
    bool taken = zmq_msg_send(parts[i].handle(), socket.handle(), flags) >= 0;
    if (!taken && i == 0 && zmq_errno() == EAGAIN) {
      // ZeroMQ checks for room about once a millisecond, and whenever it is asked for events.
      [[maybe_unused]] const int events = socket.get(zmq::sockopt::events);
      taken = zmq_msg_send(parts[i].handle(), socket.handle(), flags) >= 0;
    }
    if (!taken && i == 0) return false;
    whole = whole && taken;
  }
  return whole;
}

bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>* parts, Arrival* arrival) {
  bool more = true;
  for (bool first = true; more; first = false) {
    zmq::message_t part;
    if (zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) return false;
    more = part.more();
    if (arrival != nullptr) {
      // A ROUTER puts the routing id before the message.
      if (!first) arrival->wire_bytes += WireBytes(part.size(), arrival->curve);
      if (!more) TellConnection(part, arrival);
    }
    if (parts->size() < kPartsMax + 2) parts->push_back(std::move(part));
  }
  return true;
}

Status ReadFrame(std::vector<zmq::message_t>& parts, size_t first,
                 const std::function<Result<Buffer>(const Buffer&)>& take_shared, Frame* frame) {
  const auto wrong = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  if (parts.size() < first + 2 || parts.size() > first + kPartsMax) {
    return wrong(std::to_string(parts.size() - first) + " parts are no frame");
  }
  const zmq::message_t& header = parts[first];
  if (header.size() != sizeof(FrameHeader)) {
    return wrong("a header of " + std::to_string(header.size()) + " bytes");
  }
  std::memcpy(&frame->header, header.data(), sizeof(FrameHeader));
  frame->envelope = BufferOf(std::move(parts[first + 1]));
  frame->sections.clear();
  Status shared;
  for (size_t i = first + 2; i < parts.size(); ++i) {
    Buffer section = BufferOf(std::move(parts[i]));
    if (IsShared(frame->header, i - first - 2)) {
      Result<Buffer> block = take_shared(section);
      shared = block.ok() ? shared : block.status();
      if (block.ok()) section = *std::move(block);
    }
    frame->sections.push_back(std::move(section));
  }
  return shared;
}

std::string WhyNoCaller(const std::vector<zmq::message_t>& parts) {
  Frame frame;
  if (parts.size() > 1 && parts[1].size() == sizeof(FrameHeader)) {
    std::memcpy(&frame.header, parts[1].data(), sizeof(FrameHeader));
  }
  const Status version = CheckFrame(frame);
  return version.code() == Code::kInvalidArgument ? version.message()
                                                  : "its routing id is none of ours";
}

std::string KeyOf(const zmq::message_t& part) {
  const char* const key = zmq_msg_gets(part.handle(), "User-Id");
  return key == nullptr ? "" : key;
}

}  // namespace hdps
