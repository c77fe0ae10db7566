// Tests requests in which one table's keys are those of another.
#include "common/protocol/table_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/common/protocol/message_samples.h"

namespace hdps {
namespace {

using testing::HasSubstr;
using testing_samples::KeysOf;

std::string WhyRefused(const PullRequest& pull) {
  PullRequest back;
  return DecodeMessage(EncodeMessage(pull), &back).message();
}

TEST(TableKeys, NameTheTableWhoseKeysTheyAre) {
  PullRequest pull;
  pull.keys = KeysOf({1, 2, 3});
  pull.tables = {{{1}, 3, 2, {1, 2}, 0}, {{4}, 3, 16, {}, 1}};
  EXPECT_EQ(WhyRefused(pull), "");
  const auto refused = [&](const TableKeys& second) {
    PullRequest bad = pull;
    bad.tables[1] = second;
    return WhyRefused(bad);
  };
  const std::string rule = "keys_of names a table before it";
  EXPECT_THAT(refused({{4}, 3, 16, {}, 2}), HasSubstr(rule)) << "its own";
  EXPECT_THAT(refused({{4}, 3, 16, {}, 3}), HasSubstr(rule)) << "none";
  EXPECT_THAT(refused({{4}, 3, 16, {}, 0xffffffffu}), HasSubstr(rule));
  EXPECT_THAT(refused({{4}, 2, 16, {}, 1}), HasSubstr(rule)) << "fewer keys";
  EXPECT_THAT(refused({{4}, 3, 16, {1, 2}, 1}), HasSubstr(rule)) << "counts of its own";
  EXPECT_THAT(refused({{4}, 3, 16, {1, 2}, 0}), HasSubstr("length of keys"));
  pull.tables.push_back({{5}, 3, 1, {}, 2});
  EXPECT_THAT(WhyRefused(pull), HasSubstr(rule)) << "of a table that has none itself";
  pull.tables[2].keys_of = 1;
  EXPECT_EQ(WhyRefused(pull), "");
}

}  // namespace
}  // namespace hdps
