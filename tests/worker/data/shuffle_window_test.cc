// Tests that every line comes out once, mixed evenly, in bounded memory.
#include "worker/data/shuffle_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace hdps {
namespace {

std::string TextOf(uint64_t number) {
  return std::to_string(number) + std::string(number % 97, static_cast<char>('a' + number % 26));
}

// Passes `rows` lines through a window, checks each that comes out, and returns their numbers.
std::vector<uint64_t> PassThrough(ShuffleWindow& window, uint64_t seed, uint64_t rows,
                                  size_t held_bytes_max = SIZE_MAX,
                                  std::string (*text_of)(uint64_t) = TextOf) {
  window.Restart(seed);
  std::vector<uint64_t> out;
  size_t held_bytes = 0;
  const auto remove = [&] {
    const Line line = window.RemoveAny();
    EXPECT_EQ(line.text, text_of(line.place.number));
    EXPECT_EQ(line.place.file, line.place.number % 3);
    held_bytes = std::max(held_bytes, window.held_bytes());
    out.push_back(line.place.number);
  };
  for (uint64_t number = 0; number < rows; ++number) {
    const std::string text = text_of(number);  // Freed at once: the window keeps its own copy.
    window.Add({text, {static_cast<uint32_t>(number % 3), number}});
    if (window.full()) remove();
  }
  while (!window.empty()) remove();
  EXPECT_LE(held_bytes, held_bytes_max);
  return out;
}

TEST(ShuffleWindowTest, EveryLineComesOutOnce) {
  for (uint64_t rows : {0u, 1u, 5u, 64u, 65u, 5000u}) {
    ShuffleWindow window(64, size_t{1} << 30);
    std::vector<uint64_t> out = PassThrough(window, 1, rows);
    std::sort(out.begin(), out.end());
    ASSERT_EQ(out.size(), rows);
    for (uint64_t i = 0; i < rows; ++i) EXPECT_EQ(out[i], i);
  }
}

TEST(ShuffleWindowTest, HeldBytesAreBounded) {
  ShuffleWindow window(1000, size_t{1} << 30);
  PassThrough(window, 1, 200000, 2 * 1001 * 120 + (1 << 20));
}

TEST(ShuffleWindowTest, EveryLineComesOutOnceOfALogOfHugePages) {
  constexpr uint64_t kRows = 400'000, kWindow = 100'000;  // 6 MB of lines and more inside at once.
  ShuffleWindow window(kWindow, size_t{1} << 30);
  std::vector<uint64_t> out = PassThrough(window, 3, kRows, 2 * kWindow * 120 + (8 << 20));
  std::sort(out.begin(), out.end());
  ASSERT_EQ(out.size(), kRows);
  for (uint64_t i = 0; i < kRows; ++i) ASSERT_EQ(out[i], i);
}

// Blocks of one length are useless for lines of another: they must not pile up.
TEST(ShuffleWindowTest, HeldBytesAreBoundedWhereLengthsChange) {
  constexpr uint64_t kRows = 20'000, kWindow = 1000, kLong = 1000;
  const auto text_of = [](uint64_t number) {
    const bool is_long = number / 5000 % 2 == 0;
    return TextOf(number) + std::string(is_long ? kLong - number % 500 : 0, 'x');
  };
  ShuffleWindow window(kWindow, size_t{1} << 30);
  // Half as much again as the blocks of long lines, and chunks.
  std::vector<uint64_t> out =
      PassThrough(window, 1, kRows, kWindow * (kLong + 200) * 3 / 2 + (1 << 20), text_of);
  std::sort(out.begin(), out.end());
  ASSERT_EQ(out.size(), kRows);
  for (uint64_t i = 0; i < kRows; ++i) ASSERT_EQ(out[i], i);
  EXPECT_LE(window.held_bytes(), 1u << 20) << "what long lines took is free again";
}

TEST(ShuffleWindowTest, ManyBytesMakeItFullToo) {
  ShuffleWindow window(1u << 30, 1000);
  uint64_t held = 0;
  while (!window.full()) window.Add({TextOf(held), {0, held++}});
  EXPECT_GE(held, 10u);
  EXPECT_LE(held, 100u);
}

TEST(ShuffleWindowTest, EveryLineOfTheWindowHasTheSameChance) {
  constexpr uint64_t kRows = 8, kRuns = 8000;
  std::map<std::pair<uint64_t, size_t>, uint64_t> counts;  // (line, place in the output)
  ShuffleWindow window(kRows, size_t{1} << 30);
  for (uint64_t seed = 0; seed < kRuns; ++seed) {
    const std::vector<uint64_t> out = PassThrough(window, RandomAt(99, seed), kRows);
    for (size_t place = 0; place < out.size(); ++place) ++counts[{out[place], place}];
  }
  ASSERT_EQ(counts.size(), kRows * kRows);
  double chi_squared = 0;
  constexpr double kExpected = double(kRuns) / kRows;
  for (const auto& [cell, count] : counts) {
    const double off = static_cast<double>(count) - kExpected;
    chi_squared += off * off / kExpected;
  }
  EXPECT_LT(chi_squared, 100) << "49 degrees of freedom: 99.9 % lie below 85";
}

}  // namespace
}  // namespace hdps
