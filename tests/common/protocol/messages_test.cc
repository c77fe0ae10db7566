// Tests the wire format against itself, and against changes of every byte.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "common/platform/random.h"
#include "common/protocol/message_frames.h"
#include "tests/common/protocol/message_samples.h"

namespace hdps {
namespace {

using testing::HasSubstr;
using testing_samples::Fields;
using testing_samples::FloatsOf;
using testing_samples::ForEachSample;
using testing_samples::KeysOf;
using testing_samples::SampleDone;
using testing_samples::SampleView;
using testing_samples::TwoTables;

Buffer WithFlip(const Buffer& bytes, size_t at, uint8_t mask) {
  std::span<std::byte> copy;
  Buffer flipped = Buffer::Allocate(bytes.size(), &copy);
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  copy[at] ^= std::byte{mask};
  return flipped;
}

Buffer Prefix(const Buffer& bytes, size_t size) {
  return Buffer::CopyOf(bytes.bytes().first(size));
}

template <typename Message>
Frame Encoded(const Message& message) {
  Frame frame = EncodeMessage(message);
  frame.header.sender = 41;
  frame.header.view = 42;
  frame.header.request_id = 43;
  ChecksumFrame(frame);
  return frame;
}

// Returns whether `frame` is accepted; if so, it must be accepted again after another round trip.
template <typename Message>
bool DecodesToSomethingValid(const Frame& frame) {
  Message message;
  const Status status = DecodeMessage(frame, &message);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), Code::kCorruption);
    EXPECT_NE(status.message(), "");
    return false;
  }
  Message again;
  const Status second = DecodeMessage(EncodeMessage(message), &again);
  EXPECT_TRUE(second.ok()) << second.message();
  return true;
}

template <typename Message>
bool DecodesWithNewChecksums(Frame frame) {
  ChecksumFrame(frame);
  EXPECT_TRUE(CheckFrame(frame).ok());
  return DecodesToSomethingValid<Message>(frame);
}

// Returns every part of the frame's body, to be replaced one at a time.
std::vector<std::function<Buffer&(Frame&)>> PartsOf(const Frame& frame) {
  std::vector<std::function<Buffer&(Frame&)>> parts;
  parts.push_back([](Frame& f) -> Buffer& { return f.envelope; });
  for (size_t i = 0; i < frame.sections.size(); ++i) {
    parts.push_back([i](Frame& f) -> Buffer& { return f.sections[i]; });
  }
  return parts;
}

TEST(Messages, EveryFieldSurvivesTheTrip) {
  int kinds = 0;
  ForEachSample([&](const auto& message) {
    ++kinds;
    const Frame frame = Encoded(message);
    ASSERT_TRUE(CheckFrame(frame).ok());
    std::remove_cvref_t<decltype(message)> decoded;
    const Status status = DecodeMessage(frame, &decoded);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(Fields(decoded) == Fields(message)) << MessageKindName(message.kKind);
    EXPECT_STRNE(MessageKindName(message.kKind), "unknown message");
  });
  EXPECT_EQ(kinds, 42);
}

TEST(Messages, DefaultsSurviveTheTrip) {
  ForEachSample([](const auto& sample) {
    std::remove_cvref_t<decltype(sample)> message, decoded = sample;
    if constexpr (requires { message.id; }) message.id = {1};
    if constexpr (requires { message.number; }) message.number = 1;
    const Status status = DecodeMessage(Encoded(message), &decoded);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(Fields(decoded) == Fields(message)) << MessageKindName(message.kKind);
  });
}

TEST(Messages, AreOfOneKindOnly) {
  ForEachSample([](const auto& message) {
    const Frame frame = Encoded(message);
    ForEachSample([&](auto other) {
      if (other.kKind == message.kKind) return;
      EXPECT_EQ(DecodeMessage(frame, &other).code(), Code::kCorruption);
    });
  });
}

// The example in common/README.md: a change here is a change of the protocol.
TEST(Frame, IsByteForByteAsDocumented) {
  Frame frame = EncodeMessage(HeartbeatAck{{5}});
  frame.header.sender = kSchedulerPeer.value;
  frame.header.view = 5;
  frame.header.request_id = 7;
  ChecksumFrame(frame);
  const uint64_t header[] = {0x0005000453504448, 1, 5, 7, 0x18, 0x18, 0x934de14501428cf4,
                             0x45145e0fb210120c};
  EXPECT_EQ(std::memcmp(&frame.header, header, sizeof(header)), 0);
  EXPECT_THAT(frame.envelope.As<uint64_t>(),
              testing::ElementsAre(0x000600000000000c, 0x000000060004000c, 5));
}

TEST(Frame, NoticesEveryFlippedBit) {
  ForEachSample([](const auto& message) {
    const Frame original = Encoded(message);
    for (size_t bit = 0; bit < 8 * sizeof(FrameHeader); ++bit) {
      Frame frame = original;
      reinterpret_cast<uint8_t*>(&frame.header)[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      EXPECT_FALSE(CheckFrame(frame).ok()) << "bit " << bit;
    }
    for (const auto& part : PartsOf(original)) {
      Frame frame = original;
      const Buffer whole = part(frame);
      for (size_t at = 0; at < whole.size(); ++at) {
        part(frame) = WithFlip(whole, at, static_cast<uint8_t>(1u << (at % 8)));
        EXPECT_EQ(CheckFrame(frame).code(), Code::kCorruption) << "byte " << at;
      }
    }
  });
}

TEST(Frame, NoticesEveryTruncation) {
  ForEachSample([](const auto& message) {
    const Frame original = Encoded(message);
    for (const auto& part : PartsOf(original)) {
      Frame frame = original;
      const Buffer whole = part(frame);
      for (size_t size = 0; size < whole.size(); ++size) {
        part(frame) = Prefix(whole, size);
        EXPECT_EQ(CheckFrame(frame).code(), Code::kCorruption);
      }
    }
    Frame more = original;
    more.sections.push_back(Buffer());
    EXPECT_EQ(CheckFrame(more).code(), Code::kCorruption);
  });
}

TEST(Frame, NoticesBytesThatMoveOverABoundary) {
  Frame frame = Encoded(PushRequest{{6}, 7, 8, TwoTables(), KeysOf({1, 2, 3, 4, 5}), FloatsOf(12)});
  std::swap(frame.sections[0], frame.sections[1]);
  EXPECT_EQ(CheckFrame(frame).code(), Code::kCorruption);
}

TEST(Frame, NamesBothProtocolVersions) {
  Frame frame = Encoded(HeartbeatAck{{5}});
  frame.header.protocol = 77;
  const Status status = CheckFrame(frame);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("77"));
  EXPECT_THAT(status.message(), HasSubstr(std::to_string(kProtocolVersion)));
}

// Tests the decoder alone: the checksums are made valid after each change.
TEST(Messages, SurviveEveryFlippedByte) {
  int accepted = 0, refused = 0;
  ForEachSample([&](const auto& message) {
    using Message = std::remove_cvref_t<decltype(message)>;
    const Frame original = Encoded(message);
    for (const auto& part : PartsOf(original)) {
      Frame frame = original;
      const Buffer whole = part(frame);
      for (size_t at = 0; at < whole.size(); ++at) {
        for (const int mask : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
          part(frame) = WithFlip(whole, at, static_cast<uint8_t>(mask));
          ++(DecodesWithNewChecksums<Message>(frame) ? accepted : refused);
        }
      }
    }
  });
  // Neither all nor none: a changed number is another number, but a changed offset is invalid.
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Messages, SurviveEveryTruncation) {
  ForEachSample([](const auto& message) {
    using Message = std::remove_cvref_t<decltype(message)>;
    const Frame original = Encoded(message);
    for (const auto& part : PartsOf(original)) {
      Frame frame = original;
      const Buffer whole = part(frame);
      for (size_t size = 0; size < whole.size(); ++size) {
        part(frame) = Prefix(whole, size);
        DecodesWithNewChecksums<Message>(frame);
      }
    }
    Frame frame = original;
    frame.sections.push_back(Buffer());
    EXPECT_FALSE(DecodesWithNewChecksums<Message>(frame));
    frame.sections.clear();
    frame.envelope = Buffer();
    EXPECT_FALSE(DecodesWithNewChecksums<Message>(frame));
  });
}

TEST(Messages, SurviveRandomHarm) {
  Random random(17);
  ForEachSample([&](const auto& message) {
    using Message = std::remove_cvref_t<decltype(message)>;
    const Frame original = Encoded(message);
    for (int round = 0; round < 2000; ++round) {
      Frame frame = original;
      for (uint64_t harm = 1 + random.Below(6); harm > 0; --harm) {
        const uint8_t mask = static_cast<uint8_t>(1 + random.Below(255));
        frame.envelope = WithFlip(frame.envelope, random.Below(frame.envelope.size()), mask);
      }
      DecodesWithNewChecksums<Message>(frame);
    }
  });
}

template <typename Message>
std::string WhyRefused(const Message& message) {
  Message decoded;
  const Status status = DecodeMessage(Encoded(message), &decoded);
  EXPECT_EQ(status.code(), Code::kCorruption);
  return status.message();
}

TEST(Rules, OfTheMembership) {
  EXPECT_THAT(WhyRefused(JoinRequest{Role::kScheduler, 0, "", 0, 0, 0, ""}),
              HasSubstr("servers and workers join"));
  EXPECT_THAT(WhyRefused(JoinRequest{static_cast<Role>(9), 0, "", 0, 0, 0, ""}),
              HasSubstr("enumerators"));
  EXPECT_THAT(WhyRefused(JoinRequest{Role::kWorker, -2, "", 0, 0, 0, ""}), HasSubstr("rank"));
  EXPECT_THAT(WhyRefused(Abort{256, ""}), HasSubstr("0..255"));
  EXPECT_THAT(WhyRefused(Heartbeat{{1}, -1, 0, 0, 0, 0}), HasSubstr("clocks"));
  EXPECT_THAT(WhyRefused(Command{}), HasSubstr("numbered from 1"));
  Command command;
  command.id = {1};
  command.command = static_cast<CommandKind>(99);
  EXPECT_THAT(WhyRefused(command), HasSubstr("enumerators"));
  CommandDone done = SampleDone();
  done.labels = FloatsOf(4);
  EXPECT_THAT(WhyRefused(done), HasSubstr("one label"));
}

TEST(Rules, OfAView) {
  View view = SampleView();
  view.workers[1].rank = 2;
  EXPECT_THAT(WhyRefused(view), HasSubstr("ranks are 0..n-1"));
  view = SampleView();
  view.shards.owner[3] = {2};
  EXPECT_THAT(WhyRefused(view), HasSubstr("owners of shards are servers"));
  view = SampleView();
  view.shards.owner.pop_back();
  EXPECT_THAT(WhyRefused(view), HasSubstr("power of two"));
  view.shards.owner.assign(1u << 17, ServerId{0});
  EXPECT_THAT(WhyRefused(view), HasSubstr("limits"));
}

TEST(Rules, OfRows) {
  const Buffer keys = KeysOf({1, 2, 3, 4, 5});
  const PushRequest good{{6}, 7, 8, TwoTables(), keys, FloatsOf(12)};
  PushRequest push = good;
  push.keys = KeysOf({1, 2, 3, 4});
  EXPECT_THAT(WhyRefused(push), HasSubstr("length of keys"));
  push.keys = Prefix(keys, keys.size() - 1);
  EXPECT_THAT(WhyRefused(push), HasSubstr("length of keys"));
  push = good;
  push.gradients = FloatsOf(11);
  EXPECT_THAT(WhyRefused(push), HasSubstr("length of the rows"));
  push.gradients = FloatsOf(13);
  EXPECT_THAT(WhyRefused(push), HasSubstr("length of the rows"));
  push = good;
  push.tables[0].shard_counts[0] = 2;
  EXPECT_THAT(WhyRefused(push), HasSubstr("shard_counts"));
  push = good;
  push.tables[1].table = push.tables[0].table;
  EXPECT_THAT(WhyRefused(push), HasSubstr("ascend"));
  push = good;
  for (const Clock clock : {Clock{-1}, std::numeric_limits<Clock>::max()}) {
    push.clock = clock;
    EXPECT_THAT(WhyRefused(push), HasSubstr("clocks"));
    EXPECT_THAT(WhyRefused(AdvanceRequest{clock}), HasSubstr("clocks"));
  }
  // Sizes whose product overflows 64 bits must not wrap around to the right one.
  push = good;
  push.tables = {{{0}, 0xffffffffu, 0xffffffffu, {}}};
  EXPECT_THAT(WhyRefused(push), HasSubstr("length of"));
  push.tables = {{{0}, 5, 0, {}}};
  push.gradients = Buffer();
  EXPECT_THAT(WhyRefused(push), HasSubstr("rows have floats"));
}

// A peer on this machine may still write to the memory that it shares.
TEST(Rules, PositionsStayAsTheyWereChecked) {
  std::span<uint32_t> shared;
  const Buffer positions = Buffer::AllocateOf<uint32_t>(3, &shared);
  std::iota(shared.begin(), shared.end(), 0u);
  PullReply reply;
  reply.tables = {{{0}, 3, 1, {}}};
  reply.rows = FloatsOf(3);
  reply.positions = positions;
  Frame frame = EncodeMessage(reply);
  frame.header.shared_sections = 0b11;
  ChecksumFrame(frame);
  PullReply decoded;
  ASSERT_TRUE(DecodeMessage(frame, &decoded).ok());
  shared[1] = 1u << 30;
  EXPECT_EQ(decoded.positions.As<uint32_t>()[1], 1u);
}

TEST(Rules, TextForPeopleIsCutByTheSender) {
  StopRequest stop{std::string(1 << 20, 'x')}, decoded;
  ASSERT_TRUE(DecodeMessage(Encoded(stop), &decoded).ok());
  EXPECT_GT(decoded.reason.size(), 1000u);
  EXPECT_LT(decoded.reason.size(), stop.reason.size());
}

// Reads and writes the offsets inside a FlatBuffer, like an attacker.
class EnvelopeSurgery {
 public:
  explicit EnvelopeSurgery(const Buffer& envelope)
      : bytes_(envelope.bytes().begin(), envelope.bytes().end()) {}
  size_t Root() const { return Follow(0); }
  size_t Follow(size_t at) const { return at + Read<uint32_t>(at); }
  // Returns the address of the offset or number of a table's n-th field.
  size_t Field(size_t table, size_t n) const {
    const size_t vtable = table - static_cast<size_t>(int64_t{Read<int32_t>(table)});
    return table + Read<uint16_t>(vtable + 4 + 2 * n);
  }
  void Point(size_t at, size_t target) {
    const uint32_t offset = static_cast<uint32_t>(target - at);
    std::memcpy(bytes_.data() + at, &offset, sizeof(offset));
  }
  Buffer Result() const { return Buffer::CopyOf(std::span<const std::byte>(bytes_)); }

 private:
  template <typename T>
  T Read(size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(value));
    return value;
  }
  std::vector<std::byte> bytes_;
};

// Thousands of members whose addresses are all one long string: the envelope is small and valid,
// but decodes to a huge message.
TEST(Rules, NothingIsLargerThanItsEnvelope) {
  View view = SampleView();
  view.workers.clear();
  for (uint32_t w = 0; w < 4000; ++w) view.workers.push_back({{w + 100}, w, ""});
  view.workers.front().address = std::string(60000, 'a');
  Frame frame = EncodeMessage(view);
  EnvelopeSurgery surgery(frame.envelope);
  const size_t workers = surgery.Follow(surgery.Field(surgery.Root(), 2));
  const auto address = [&](size_t w) {
    return surgery.Field(surgery.Follow(workers + 4 + 4 * w), 2);
  };
  const size_t text = surgery.Follow(address(0));
  View decoded;
  ASSERT_TRUE(DecodeMessage(frame, &decoded).ok());
  int shared = 0;
  for (size_t w = 1; w < 4000; ++w) {
    if (text <= address(w)) continue;  // Offsets only point forward.
    surgery.Point(address(w), text);
    ++shared;
  }
  ASSERT_GT(shared, 1000);
  frame.envelope = surgery.Result();
  ChecksumFrame(frame);
  const Status status = DecodeMessage(frame, &decoded);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_THAT(status.message(), HasSubstr("limits"));
}

}  // namespace
}  // namespace hdps
