// One job's keys, a listener with a port for data, and who may stand before it.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/net/address.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/common/net/keys_of_a_job.h"
#include "tests/common/net/message_proxy.h"
#include "tests/common/net/zmq_peer.h"

namespace hdps {

inline Buffer Filled(size_t bytes, int with) {
  std::span<std::byte> filled;
  Buffer buffer = Buffer::Allocate(bytes, &filled);
  std::memset(filled.data(), with, bytes);
  return buffer;
}

// A frame that a worker may send, and a server back.
inline Frame Numbered(uint64_t number, const Frame& like = EncodeMessage(Probe())) {
  Frame frame = like;
  frame.header.request_id = number;
  for (size_t i = 0; i < number % 9; ++i) {
    const size_t bytes = i == 3 ? 1 << 20 : i * 1000;
    frame.sections.push_back(Filled(bytes, static_cast<int>(number + i) % 251));
  }
  return frame;
}

inline bool Same(const Frame& a, const Frame& b) {
  const auto same = [](const Buffer& x, const Buffer& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size()) == 0;
  };
  return a.header.request_id == b.header.request_id && a.header.kind == b.header.kind &&
         same(a.envelope, b.envelope) && std::ranges::equal(a.sections, b.sections, same);
}

inline size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

class DataPlaneOfAJob : public KeysOfAJob {
 protected:
  DataPlaneOfAJob() {
    options_.data_port = true;
    options_.shared_bytes_per_peer = 0;
  }
  // A listener, and someone in the middle of its data port.
  void ListenBehind(MessageProxy::Change change) {
    Listen();
    Result<Address> address = ParseAddress(address_);
    ASSERT_TRUE(address.ok() && address->data_port != 0) << address_;
    direct_ = address_;
    middle_ = std::make_unique<MessageProxy>(address->data_port, std::move(change));
    address->data_port = middle_->port();
    address_ = address->ToString();
  }
  int DataPort() const {
    const Result<Address> address = ParseAddress(direct_.empty() ? address_ : direct_);
    return address.ok() ? address->data_port : 0;
  }
  // Turns both loops, for a while, and returns the numbers of the frames that came out at `end`.
  std::vector<uint64_t> Heard(Transport& end, Transport& other, int turns = 40) {
    std::vector<uint64_t> numbers;
    PeerId from;
    Frame frame;
    for (int turn = 0; turn < turns; ++turn) {
      other.Receive(2, &from, &frame);
      while (end.Receive(2, &from, &frame)) {
        if (frame.header.request_id != 0) numbers.push_back(frame.header.request_id);
      }
    }
    return numbers;
  }

  // The listener's loop turns meanwhile: it is asked whom to let in.
  void AwaitGreeting(const RawPeer& stranger, Transport& dialer) {
    std::atomic<bool> greeted = false;
    std::thread waits([&] {
      stranger.AwaitGreeting();
      greeted = true;
    });
    EXPECT_TRUE(Await(dialer, [&] { return greeted.load(); }));
    waits.join();
  }

  std::string direct_;  // Its address without the one in the middle.
  std::unique_ptr<MessageProxy> middle_;
};

}  // namespace hdps
