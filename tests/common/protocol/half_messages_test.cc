// Tests messages with 16-bit numbers: sizes and formats from outside are checked.
#include <string>

#include "common/protocol/message_frames.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/protocol/message_samples.h"

namespace hdps {
namespace {

using testing_samples::FloatsOf;
using testing_samples::KeysOf;
using testing_samples::TwoTables;

Buffer Prefix(const Buffer& bytes, size_t size) {
  return Buffer::CopyOf(bytes.bytes().first(size));
}

template <typename Message>
std::string WhyRefused(const Message& message) {
  Message decoded;
  const Status status = DecodeMessage(EncodeMessage(message), &decoded);
  EXPECT_EQ(status.code(), Code::kCorruption);
  return status.message();
}

// 16-bit numbers take half the space, and an unknown format is refused.
TEST(Rules, OfRowsInTwoBytes) {
  const Buffer keys = KeysOf({1, 2, 3, 4, 5});
  for (const DType format : {DType::kFp16, DType::kBf16}) {
    PushRequest push{{6}, 7, 8, TwoTables(), keys, FloatsOf(6), 0, format}, back;
    EXPECT_TRUE(DecodeMessage(EncodeMessage(push), &back).ok());
    EXPECT_EQ(back.format, format);
    for (const size_t bytes : {0u, 12u, 22u, 23u, 26u, 48u}) {
      push.gradients = Prefix(FloatsOf(12), bytes);
      EXPECT_THAT(WhyRefused(push), testing::HasSubstr("length of the rows")) << bytes;
    }
    push.tables.clear();  // A list contains the count.
    push.keys = Buffer();
    push.list = 3;
    push.gradients = Prefix(FloatsOf(12), 23);
    EXPECT_THAT(WhyRefused(push), testing::HasSubstr("whole numbers"));
    push.gradients = Prefix(FloatsOf(12), 22);
    EXPECT_TRUE(DecodeMessage(EncodeMessage(push), &back).ok());
    PullReply reply{Code::kOk, "", 4, TwoTables(), FloatsOf(12), Buffer(), format};
    EXPECT_THAT(WhyRefused(reply), testing::HasSubstr("length of the rows"));
    reply.rows = FloatsOf(6);
    PullReply again;
    EXPECT_TRUE(DecodeMessage(EncodeMessage(reply), &again).ok());
  }
  PushRequest scaled{{6}, 7, 8, TwoTables(), keys, FloatsOf(6), 0, DType::kFp16};
  for (scaled.scale_exponent = -127; scaled.scale_exponent < 128; scaled.scale_exponent += 254) {
    EXPECT_THAT(WhyRefused(scaled), testing::HasSubstr("scales"));
  }
  const auto unknown = static_cast<DType>(3);
  EXPECT_THAT(WhyRefused(PushRequest{{6}, 7, 8, TwoTables(), keys, FloatsOf(6), 0, unknown}),
              testing::HasSubstr("enumerators"));
  EXPECT_THAT(WhyRefused(PullReply{Code::kOk, "", 4, TwoTables(), FloatsOf(6), Buffer(), unknown}),
              testing::HasSubstr("enumerators"));
  PullRequest pull{8, PullMode::kTrain, TwoTables(), keys};
  pull.format = unknown;
  EXPECT_THAT(WhyRefused(pull), testing::HasSubstr("enumerators"));
  pull.mode = PullMode::kWithState;
  pull.format = DType::kFp16;
  EXPECT_THAT(WhyRefused(pull), testing::HasSubstr("32 bits"));
}

}  // namespace
}  // namespace hdps
