// A filter has every key it was given, and few others.
#include "embedding/key_filter.h"

#include <gtest/gtest.h>

#include "common/hash.h"

namespace hdps {
namespace {

TEST(KeyFilter, HasWhatItWasGivenAndLittleElse) {
  KeyFilter filter(7);
  EXPECT_FALSE(filter.MayHave(0));
  EXPECT_EQ(filter.bytes(), 0u);
  constexpr uint64_t kKeys = 100'000;
  for (uint64_t n = 0; n < kKeys; ++n) filter.Add(MixBits(n));
  for (uint64_t n = 0; n < kKeys; ++n) ASSERT_TRUE(filter.MayHave(MixBits(n))) << n;
  uint64_t wrong = 0;
  for (uint64_t n = kKeys; n < 2 * kKeys; ++n) wrong += filter.MayHave(MixBits(n)) ? 1 : 0;
  EXPECT_LT(wrong, kKeys / 20);
  EXPECT_GT(wrong, 0u);  // Else it has kept more than a filter would.
  EXPECT_LT(filter.bytes(), 4 * kKeys);
  // What it seems to have is not added twice.
  const size_t size = filter.size();
  for (uint64_t n = 0; n < kKeys; ++n) filter.Add(MixBits(n));
  EXPECT_EQ(filter.size(), size);
  filter.Clear();
  EXPECT_FALSE(filter.MayHave(MixBits(1)));
  EXPECT_EQ(filter.bytes(), 0u);
}

}  // namespace
}  // namespace hdps
