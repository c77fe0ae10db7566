// Fixture of the data plane: the keys of one job, a listener with a data port, and optionally a
// proxy in front of it.
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

// Returns a frame that a worker may send, and a server may send back.
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
  // Listens, with a proxy in front of the data port that may change messages.
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
  // Runs both transports for some turns and returns the request ids of the frames received at
  // `end`.
  std::vector<uint64_t> Heard(Transport& end, Transport& other, int turns = 40) {
    std::vector<uint64_t> numbers;
    PeerId from;
    Frame frame;
    // A loaded machine may need longer for the first one.
    for (int turn = 0; turn < turns || (numbers.empty() && turn < 10 * turns); ++turn) {
      other.Receive(2, &from, &frame);
      while (end.Receive(2, &from, &frame)) {
        if (frame.header.request_id != 0) numbers.push_back(frame.header.request_id);
      }
    }
    return numbers;
  }
  // Takes all that Talk, which repeats itself, has left under way in both directions.
  void Settle(Transport& dialer, PeerId of_dialer) {
    constexpr uint64_t kLast = 1u << 20;
    dialer.Send(kServerPeer, Numbered(kLast));
    ASSERT_TRUE(AwaitNumber(*server_, dialer, kLast));
    server_->Send(of_dialer, Numbered(kLast, EncodeMessage(ProbeAck())));
    ASSERT_TRUE(AwaitNumber(dialer, *server_, kLast));
  }
  // Runs both transports until `end` has heard the message of this number, and so all before it.
  bool AwaitNumber(Transport& end, Transport& other, uint64_t number) {
    PeerId from;
    Frame frame;
    for (int turn = 0; turn < 400; ++turn) {
      other.Receive(2, &from, &frame);
      while (end.Receive(2, &from, &frame)) {
        if (frame.header.request_id == number) return true;
      }
    }
    return false;
  }

  // Waits for the stranger's greeting while the listener runs, because the listener decides whom to
  // admit.
  void AwaitGreeting(const RawPeer& stranger, Transport& dialer) {
    std::atomic<bool> greeted = false;
    std::thread waits([&] {
      stranger.AwaitGreeting();
      greeted = true;
    });
    EXPECT_TRUE(Await(dialer, [&] { return greeted.load(); }));
    waits.join();
  }

  std::string direct_;  // Address of the listener without the proxy.
  std::unique_ptr<MessageProxy> middle_;
};

}  // namespace hdps
