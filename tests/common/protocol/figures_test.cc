// Tests what a worker with a program of its own says: its figures, and its wish for a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

template <typename Message>
std::string WhyRefused(const Message& message) {
  Message decoded;
  const Status status = DecodeMessage(EncodeMessage(message), &decoded);
  EXPECT_EQ(status.code(), Code::kCorruption);
  return status.message();
}

TEST(FiguresTest, HaveNamesAndAreFinite) {
  CommandDone done;
  const std::string long_name(65, 'a');
  for (const NamedFigure& figure : std::vector<NamedFigure>{{"", 1},
                                                            {"a b", 1},
                                                            {"1st", 1},
                                                            {"_a", 1},
                                                            {"a\"b", 1},
                                                            {long_name, 1},
                                                            {"auc", std::nan("")},
                                                            {"auc", HUGE_VAL}}) {
    done.figures = {figure};
    EXPECT_THAT(WhyRefused(done), HasSubstr("figures")) << figure.name;
  }
  done.figures.assign(kFiguresMax + 1, {"auc", 1});
  EXPECT_THAT(WhyRefused(done), HasSubstr("64 figures"));
  done.figures.pop_back();
  CommandDone back;
  EXPECT_TRUE(DecodeMessage(EncodeMessage(done), &back).ok());
  EXPECT_EQ(back.figures, done.figures);
}

TEST(WishesTest, AreOfAClock) {
  Heartbeat heartbeat;
  heartbeat.wants_checkpoint = -1;
  EXPECT_THAT(WhyRefused(heartbeat), HasSubstr("clocks"));
}

}  // namespace
}  // namespace hdps
