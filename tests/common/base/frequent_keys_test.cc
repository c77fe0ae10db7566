// Tests counts in bounded memory against exact counts.
#include "common/base/frequent_keys.h"

#include <gtest/gtest.h>

#include <map>

#include "common/platform/random.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

std::map<Key, uint64_t> Counts(const FrequentKeys& keys) {
  std::map<Key, uint64_t> counts;
  for (const FrequentKeys::Counted& c : keys.All())
    EXPECT_TRUE(counts.emplace(c.key, c.count).second);
  return counts;
}

TEST(FrequentKeys, CountsExactlyWhileThereIsRoom) {
  FrequentKeys keys(1000);
  std::map<Key, uint64_t> expected;
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const Key key = random.Below(900) << 40;
    keys.Add({&key, 1});
    ++expected[key];
  }
  EXPECT_EQ(Counts(keys), expected);
  keys.Halve();
  for (auto& [key, count] : expected) count /= 2;
  std::erase_if(expected, [](const auto& entry) { return entry.second == 0; });
  EXPECT_EQ(Counts(keys), expected);
}

// A bounded table keeps the most frequent keys, and never counts too much.
TEST(FrequentKeys, KeepsWhatIsFrequentInBoundedMemory) {
  FrequentKeys keys(2000);
  std::map<Key, uint64_t> exact;
  Random random(2);
  const Zipf zipf(1000000, 1.1);
  for (int i = 0; i < 300000; ++i) {
    const Key key = zipf.Draw(random);
    keys.Add({&key, 1});
    ++exact[key];
    ASSERT_LT(keys.size(), 2000u);
  }
  EXPECT_EQ(keys.bytes(), 4096 * sizeof(FrequentKeys::Counted));
  EXPECT_LE(keys.error(), 2u * 300000 / 2000);
  const std::map<Key, uint64_t> counts = Counts(keys);
  for (const auto& [key, count] : counts) {
    ASSERT_LE(count, exact[key]) << key;
    ASSERT_GE(count + keys.error(), exact[key]) << key;
    ASSERT_EQ(keys.CountOf(key), count);
  }
  for (const auto& [key, count] : exact) {
    if (count > 2 * 300000 / 2000) {
      EXPECT_EQ(counts.count(key), 1u) << key << " was seen " << count;
    }
  }
}

}  // namespace
}  // namespace hdps
