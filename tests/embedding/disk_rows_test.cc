// Tests that rows on disk come back unchanged, once, and that the log of these rows stays bounded.
#include "embedding/disk/disk_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include "common/platform/random.h"
#include "tests/embedding/memory_disk_store.h"

namespace hdps {
namespace {

using testing::HasSubstr;

constexpr DiskSpace kSpace{{3}, {1}};

// The expected content, and the calls that produce it.
class Model {
 public:
  Model(DiskStore& disk, size_t row_bytes) : rows_(&disk, kSpace, row_bytes), width_(row_bytes) {}

  void Put(std::vector<Key> keys, uint64_t seed) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::erase_if(keys, [this](Key key) { return expected_.contains(key); });
    std::vector<std::byte> bytes;
    for (const Key key : keys) {
      std::vector<std::byte>& row = expected_[key];
      for (size_t i = 0; i < width_; ++i) {
        row.push_back(static_cast<std::byte>(RandomAt(seed ^ key, i)));
      }
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    ASSERT_TRUE(rows_.Put(keys, bytes).ok());
  }
  void Take(std::vector<Key> keys) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    size_t here = 0, taken = 0;
    for (const Key key : keys) here += expected_.count(key);
    const Status status = rows_.Take(keys, [&](Key key, std::span<const std::byte> row) {
      ASSERT_TRUE(expected_.contains(key));
      EXPECT_TRUE(std::ranges::equal(row, expected_[key]));
      expected_.erase(key);
      ++taken;
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(taken, here);
  }
  void ExpectAll() const {
    EXPECT_EQ(rows_.size(), expected_.size());
    std::map<Key, std::vector<std::byte>> seen;
    const auto note = [&seen](Key key, std::span<const std::byte> row) {
      EXPECT_TRUE(seen.emplace(key, std::vector(row.begin(), row.end())).second);
      return Status();
    };
    ASSERT_TRUE(rows_.ForEach(note).ok());
    EXPECT_EQ(seen, expected_);
    auto next = expected_.begin();
    const auto compare = [&next, this](Key key, std::span<const std::byte> row) {
      EXPECT_NE(next, expected_.end());
      EXPECT_EQ(key, next->first);
      EXPECT_TRUE(std::ranges::equal(row, next->second));
      ++next;
      return Status();
    };
    ASSERT_TRUE(rows_.ForEachInOrder(compare).ok());
    EXPECT_EQ(next, expected_.end());
    for (const auto& [key, row] : expected_) ASSERT_TRUE(rows_.MayHave(key));
  }
  const DiskRows& rows() const { return rows_; }

 private:
  DiskRows rows_;
  const size_t width_;
  std::map<Key, std::vector<std::byte>> expected_;
};

std::vector<Key> SomeKeys(Random& random, size_t count, uint64_t range) {
  std::vector<Key> keys(count);
  for (Key& key : keys) key = MixBits(random.Below(range));  // Over all 64 bits.
  return keys;
}

TEST(DiskRows, KeepWhatManyRandomCallsLeave) {
  for (const size_t row_bytes : {4, 16, 196, 9000}) {
    const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
    Model model(*disk, row_bytes);
    Random random(row_bytes);
    const uint64_t range = row_bytes > 1000 ? 2000 : 20000;
    for (int round = 0; round < 80; ++round) {
      model.Put(SomeKeys(random, random.Below(range / 8), range), random.Next());
      model.Take(SomeKeys(random, random.Below(range / 8), range));
      if (round % 20 == 19) model.ExpectAll();
    }
  }
}

TEST(DiskRows, SmallKeysAndKeysAllAlike) {
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  Model model(*disk, 8);
  std::vector<Key> keys = {0, 1, 255, 256, uint64_t{1} << 63, ~uint64_t{0}};
  for (Key key = 1000; key < 9000; ++key) keys.push_back(key);
  model.Put(keys, 1);
  model.ExpectAll();
  model.Take({0, ~uint64_t{0}, 1001});
  model.ExpectAll();
}

// Rows come and go for long: the disk stays within twice its rows, and the index within six bytes a
// row.
TEST(DiskRows, TakeBoundedSpace) {
  constexpr size_t kRowBytes = 100;
  constexpr uint64_t kRange = 30000;
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  Model model(*disk, kRowBytes);
  Random random(5);
  for (int round = 0; round < 60; ++round) model.Put(SomeKeys(random, 2000, kRange), 1);
  const size_t rows = model.rows().size();
  uint64_t most = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<Key> keys = SomeKeys(random, 1000, kRange);
    model.Take(keys);
    model.Put(keys, random.Next());
    if (round > 50) most = std::max(most, disk->disk_bytes());
  }
  model.ExpectAll();
  EXPECT_LE(most, 2.3 * static_cast<double>(rows * (kRowBytes + sizeof(Key))));
  EXPECT_LE(model.rows().bytes(), 6 * rows + 8192);
}

// Rows leave memory a few at a time: reading them in order must not read a block for each.
TEST(DiskRows, ManySmallPutsBecomeFewRuns) {
  constexpr uint64_t kRange = 60000;
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  Model model(*disk, 40);
  Random random(11);
  size_t most = 0;
  for (int put = 0; put < 4000; ++put) {
    model.Put(SomeKeys(random, 12, kRange), random.Next());
    if (put % 3 == 0) model.Take(SomeKeys(random, 20, kRange));
    if (put % 50 == 0) most = std::max(most, model.rows().num_runs());
    if (put % 1000 == 999) model.ExpectAll();
  }
  EXPECT_LE(most, 769u);
  EXPECT_GT(most, 500u);  // There were many blocks in between.
}

TEST(DiskRows, LeaveNothing) {
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  {
    Model model(*disk, 8);
    model.Put({1, 2, 3}, 1);
    EXPECT_GT(disk->disk_bytes(), 0u);
  }
  EXPECT_EQ(disk->disk_bytes(), 0u);
}

// Large rows, each a block of its own: the oldest stay forever, later ones come and go. The numbers
// between them must not pile up.
TEST(DiskRows, OldRowsDoNotKeepNumbersOfThoseThatAreGone) {
  constexpr size_t kRowBytes = 5000;
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  Model model(*disk, kRowBytes);
  std::vector<Key> stay, move;
  for (uint64_t n = 0; n < 300; ++n) (n < 200 ? stay : move).push_back(MixBits(n));
  model.Put(stay, 1);
  size_t early = 0;
  for (int round = 0; round < 200; ++round) {
    model.Put(move, static_cast<uint64_t>(round));
    model.Take(move);
    if (round == 60) early = model.rows().bytes();
  }
  model.ExpectAll();
  EXPECT_LE(model.rows().bytes(), early);
}

// A changed block is an error, not a row.
TEST(DiskRows, SayWhenABlockIsDamaged) {
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  DiskRows rows(disk.get(), kSpace, 8);
  const std::vector<Key> keys = {1, 2, 3};
  ASSERT_TRUE(rows.Put(keys, std::vector<std::byte>(24)).ok());
  const std::vector<std::byte> bytes(30, std::byte{9});
  for (const size_t length : {size_t{0}, size_t{5}, size_t{30}}) {
    const DiskBlock block{0, std::span(bytes).first(length)};
    ASSERT_TRUE(disk->Put(kSpace, {&block, 1}).ok());
    const Status status = rows.Take(keys, [](Key, std::span<const std::byte>) { FAIL(); });
    EXPECT_EQ(status.code(), Code::kIoError);
    EXPECT_THAT(status.message(), HasSubstr("a block of " + std::to_string(length)));
  }
}

TEST(DiskIndex, FindsPairsAndFewOthers) {
  DiskIndex index(7);
  constexpr uint64_t kKeys = 1'000'000;
  size_t bytes = 0;
  for (uint64_t n = 0; n < kKeys; ++n) {
    index.WillHold(0, n / 20 + 1);
    index.Add(MixBits(n), n / 20);
    if (index.bytes() == bytes) continue;
    // At most five bytes per entry, and at most a part of the total at once.
    EXPECT_LE(index.bytes(), 5 * n + 16384);
    EXPECT_LE(index.bytes(), bytes + bytes / 8 + 8192);
    bytes = index.bytes();
  }
  EXPECT_EQ(index.size(), kKeys);
  uint64_t wrong = 0, absent = 0;
  for (uint64_t n = 0; n < kKeys; ++n) {
    bool found = false;
    index.ForEachBlock(MixBits(n), [&](uint32_t block) { found |= block == n / 20; });
    ASSERT_TRUE(found && index.Has(MixBits(n), n / 20)) << n;
    wrong += index.Has(MixBits(n), n / 20 + 1) ? 1 : 0;
    bool seems = false;
    index.ForEachBlock(MixBits(kKeys + n), [&](uint32_t) { seems = true; });
    absent += seems ? 1 : 0;
  }
  EXPECT_LT(wrong, kKeys / 100'000);
  EXPECT_LT(absent, kKeys / 100);
  EXPECT_GT(absent, 0u);  // Otherwise it stores more than it claims.
  for (uint64_t n = 0; n < kKeys; n += 2) EXPECT_TRUE(index.Remove(MixBits(n), n / 20));
  for (uint64_t n = 1; n < kKeys; n += 2) ASSERT_TRUE(index.Has(MixBits(n), n / 20));
  // Freed entries are used again.
  for (uint64_t n = 0; n < kKeys; n += 2) index.Add(MixBits(2 * kKeys + n), n / 20);
  EXPECT_LE(index.bytes(), bytes + bytes / 8);
}

// Block numbers grow forever, while few are in use; sometimes many more are.
TEST(DiskIndex, KeepsPairsWhileNumbersMoveOnAndBecomeLonger) {
  DiskIndex index(3);
  std::map<uint64_t, std::vector<Key>> blocks;  // Blocks in use, with their keys.
  Random random(4);
  uint64_t end = (uint64_t{1} << 32) - 700, pairs = 0;  // Soon beyond 32 bits.
  for (int round = 0; round < 6000; ++round) {
    const uint64_t first = blocks.empty() ? end : blocks.begin()->first;
    index.WillHold(first, end + 1);
    std::vector<Key>& keys = blocks[end];
    std::map<uint32_t, Key> by_alias;
    for (int k = 0; k < 20; ++k) {
      const Key key = random.Next();
      by_alias.emplace(index.Alias(key), key);
    }
    for (const auto& [alias, key] : by_alias) {
      index.Add(key, end);
      keys.push_back(key);
    }
    pairs += keys.size();
    ++end;
    for (const size_t kept = round % 3000 < 2000 ? 150 : 3000; blocks.size() > kept;) {
      for (const Key key : blocks.begin()->second) {
        ASSERT_TRUE(index.Remove(key, blocks.begin()->first));
        ASSERT_FALSE(index.Has(key, blocks.begin()->first));
      }
      pairs -= blocks.begin()->second.size();
      blocks.erase(blocks.begin());
    }
    ASSERT_EQ(index.size(), pairs);
    if (round % 500 != 499) continue;
    for (const auto& [block, held] : blocks) {
      for (const Key key : held) ASSERT_TRUE(index.Has(key, block));
    }
  }
  EXPECT_GT(index.block_mask(), 1000u);
}

// Keys that all want one place, as an attacker could send them, cost only time.
TEST(DiskIndex, TakesKeysThatAllWantOnePlace) {
  DiskIndex index(9);
  std::vector<Key> keys;
  for (Key key = 0; keys.size() < 3000; ++key) {
    if (index.Alias(key) % 512 == 5) keys.push_back(key);
  }
  index.WillHold(0, 100);
  for (size_t k = 0; k < keys.size(); ++k) index.Add(keys[k], k % 100);
  for (size_t k = 0; k < keys.size(); ++k) ASSERT_TRUE(index.Remove(keys[k], k % 100));
  EXPECT_EQ(index.size(), 0u);
  for (size_t k = 0; k < keys.size(); ++k) EXPECT_FALSE(index.Has(keys[k], k % 100));
}

TEST(DiskRows, MoreBlocksThanCanBeNumberedAreAFailure) {
  const std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  DiskRows rows(disk.get(), kSpace, 4096, /*blocks_max=*/64);
  std::vector<Key> keys(8);
  const std::vector<std::byte> bytes(8 * 4096);
  Status status;
  for (Key first = 0; first < 16384 && status.ok(); first += 8) {
    std::iota(keys.begin(), keys.end(), first);
    status = rows.Put(keys, bytes);
  }
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("more cluster.shards"));
}

}  // namespace
}  // namespace hdps
