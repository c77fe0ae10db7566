// Tests the meaning of a cell's text: a number, or a label.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "common/platform/random.h"
#include "worker/data/formats/label.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

TEST(NumberTest, TakesNumbersAndNothingElse) {
  const std::pair<const char*, double> good[] = {
      {"7", 7},       {" -12 ", -12},
      {"+3", 3},      {"1.5", 1.5},
      {"-.5", -0.5},  {"2e3", 2000},
      {"0", 0},       {"123456789012345", 123456789012345},
      {"260.0", 260}, {"12345678901234567890", 12345678901234567890.0},
      {"\t4\r", 4},   {"0007", 7}};
  for (const auto& [text, value] : good) {
    const auto number = ParseNumber(text);
    ASSERT_TRUE(number.has_value()) << text;
    EXPECT_EQ(*number, value) << text;
  }
  EXPECT_FALSE(std::signbit(*ParseNumber("-0")));
  EXPECT_FALSE(std::signbit(*ParseNumber("-0.0")));
  for (const char* text :
       {"",   " ",   "nan", "inf", "-inf", "infinity", "NaN(1)", "0x10", "1e999", "7a",
        "a7", "1 2", "--1", "+-1", "-+1",  "1,5",      "e5",     ".",    "-",     "+"}) {
    EXPECT_FALSE(ParseNumber(text).has_value()) << text;
  }
}

TEST(NumberTest, TheShortWayAgreesWithTheLongOne) {
  for (const char* text : {"0", "7", "0007", "4096", "999999999999999", "000000000000000"}) {
    double number = -1;
    ASSERT_TRUE(ParseDigits(text, &number)) << text;
    EXPECT_EQ(number, ParseNumber(text)) << text;
  }
  for (const char* text : {"", " 7", "7 ", "-7", "+7", "7.", "1e3", "1/2", "1:2", "7a", "nan",
                           "1000000000000000", "9999999999999999"}) {
    double number = -1;
    EXPECT_FALSE(ParseDigits(text, &number)) << text;
  }
}

TEST(LabelTest, FollowsTheRule) {
  const LabelRule number({}, 2), ten({}, 10), text({">50K", ">50K."}, 2);
  EXPECT_EQ(number.Parse("1"), 1.0f);
  EXPECT_EQ(number.Parse(" 0.0 "), 0.0f);
  for (const char* bad : {"2", "-2", "-1.5", "0.5", "", "yes", "nan"})
    EXPECT_FALSE(number.Parse(bad));
  EXPECT_EQ(number.Parse("-1"), 0.0f);
  EXPECT_EQ(number.Parse("+1"), 1.0f);
  EXPECT_EQ(ten.Parse("9"), 9.0f);
  EXPECT_FALSE(ten.Parse("10"));
  EXPECT_FALSE(ten.Parse("-1"));
  EXPECT_EQ(text.Parse(" >50K. "), 1.0f);
  EXPECT_EQ(text.Parse("<=50K"), 0.0f);
}

}  // namespace
}  // namespace hdps
