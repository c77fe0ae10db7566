// Steps from header to header of ZMTP 3.
#include "common/net/zmq/part_counter.h"

#include <algorithm>
#include <string_view>

#include "common/net/zmq/parts.h"

namespace hdps {
namespace {

static_assert(kPartsArrivingMax >= kPartsMax + 2, "an encrypted frame has two more");

// Offsets of the signature and of the protocol version in a greeting.
constexpr size_t kSignatureBegin = 0, kSignatureEnd = 9, kMajorVersion = 10;
constexpr size_t kMechanism = 12;
constexpr std::string_view kCurve = "CURVE";
constexpr int kHandshakeSaid = 2;
constexpr std::byte kMore{1}, kLong{2}, kCommand{4};

bool Has(std::byte flags, std::byte flag) { return (flags & flag) != std::byte{0}; }

}  // namespace

bool PartCounter::Take(std::span<const std::byte> bytes) {
  while (!bytes.empty() && inside_ != Inside::kOther && inside_ != Inside::kTooMuch) {
    if (inside_ == Inside::kBody) {
      const size_t some = std::min<uint64_t>(left_, bytes.size());
      bytes = bytes.subspan(some);
      left_ -= some;
      if (left_ == 0) inside_ = Inside::kHeader;
      continue;
    }
    if (inside_ == Inside::kGreeting) {
      TakeGreeting(bytes.front());
    } else {
      TakeHeader(bytes.front());
    }
    bytes = bytes.subspan(1);
  }
  return inside_ != Inside::kTooMuch;
}

void PartCounter::TakeGreeting(std::byte byte) {
  const bool wrong = (taken_ == kSignatureBegin && byte != std::byte{0xff}) ||
                     (taken_ == kSignatureEnd && !Has(byte, std::byte{1})) ||
                     (taken_ == kMajorVersion && byte < std::byte{3});
  if (taken_ >= kMechanism && taken_ < kMechanism + kCurve.size()) {
    curve_ = curve_ && static_cast<char>(byte) == kCurve[taken_ - kMechanism];
  }
  if (wrong) {
    inside_ = Inside::kOther;
  } else if (++taken_ == kGreetingBytes) {
    inside_ = Inside::kHeader;
    taken_ = 0;
    handshake_left_ = curve_ ? kHandshakeSaid : 0;
  }
}

void PartCounter::TakeHeader(std::byte byte) {
  header_[taken_++] = byte;
  const std::byte flags = header_[0];
  const size_t header_bytes = Has(flags, kLong) ? kHeaderBytesMax : 2;
  if (taken_ < header_bytes) return;
  left_ = 0;
  for (size_t i = 1; i < taken_; ++i) left_ = left_ << 8 | std::to_integer<uint64_t>(header_[i]);
  taken_ = 0;
  inside_ = left_ > 0 ? Inside::kBody : Inside::kHeader;
  if (handshake_left_ > 0) {
    --handshake_left_;
    if (left_ > kHandshakeBytesMax) inside_ = Inside::kTooMuch;
    return;
  }
  // libzmq queues some commands like parts, so a command with the MORE flag is counted.
  if (Has(flags, kMore)) {
    if (++parts_ >= kPartsArrivingMax) inside_ = Inside::kTooMuch;
  } else if (!Has(flags, kCommand)) {
    parts_ = 0;
  }
}

}  // namespace hdps
