// Tests that a frame is decoded once, as the message it carries, and not by handlers of other
// messages.
#include "common/protocol/message_dispatch.h"
#include "common/protocol/message_kind.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace hdps {
namespace {

int decodes = 0;

// Messages whose codec counts its calls.
struct CountedProbe {
  static constexpr MessageKind kKind = MessageKind::kProbe;
};
struct CountedAck {
  static constexpr MessageKind kKind = MessageKind::kProbeAck;
};

Frame FrameOf(MessageKind kind) {
  Frame frame;
  frame.header.kind = static_cast<uint16_t>(kind);
  return frame;
}

}  // namespace

template <>
Status DecodeMessage(const Frame&, CountedProbe*) {
  ++decodes;
  return Status();
}
template <>
Status DecodeMessage(const Frame&, CountedAck*) {
  ++decodes;
  return Status(Code::kCorruption, "broken");
}

namespace {

TEST(MessageDispatchTest, DecodesOnceAsTheKindOfTheFrame) {
  int probes = 0, acks = 0;
  const auto take = [&](const Status& status, auto message) {
    constexpr bool is_probe = std::is_same_v<decltype(message), CountedProbe>;
    EXPECT_EQ(status.ok(), is_probe);
    ++(is_probe ? probes : acks);
  };
  decodes = 0;
  EXPECT_TRUE((DispatchMessage<CountedAck, CountedProbe>(FrameOf(MessageKind::kProbe), take)));
  EXPECT_EQ(decodes, 1);
  EXPECT_EQ(probes, 1);
  EXPECT_TRUE((DispatchMessage<CountedAck, CountedProbe>(FrameOf(MessageKind::kProbeAck), take)));
  EXPECT_EQ(decodes, 2) << "a failure is told, not tried again";
  EXPECT_EQ(acks, 1);
}

TEST(MessageDispatchTest, AnotherKindIsNotDecoded) {
  decodes = 0;
  const auto take = [](const Status&, const CountedProbe&) { FAIL(); };
  EXPECT_FALSE(DispatchMessage<CountedProbe>(FrameOf(MessageKind::kPullRequest), take));
  EXPECT_EQ(decodes, 0);
}

}  // namespace
}  // namespace hdps
