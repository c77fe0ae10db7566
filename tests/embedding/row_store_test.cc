// Tests the store and its index against a plain map, through growth and erasure.
#include "embedding/memory/row_store.h"

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "common/platform/random.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

constexpr uint64_t kSalt = 99;

// Writes its key at the beginning of each row.
void WriteKeys(std::span<const Key> keys, std::byte* const* rows) {
  for (size_t k = 0; k < keys.size(); ++k) std::memcpy(rows[k], &keys[k], sizeof(Key));
}

// Returns the key whose hash with kSalt is `hash`, by inverting MixBits.
Key KeyWithHash(uint64_t hash) {
  const auto unshift = [](uint64_t x, int by) {
    uint64_t out = x;
    for (int done = by; done < 64; done += by) out = x ^ (out >> by);
    return out;
  };
  uint64_t x = unshift(hash, 31);
  x = unshift(x * 0x319642b2d24d8ec3u, 27);
  x = unshift(x * 0x96de1b173f119089u, 30);
  return x ^ kSalt;
}

TEST(RowIndex, HashesCanBeUndone) {
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    const uint64_t hash = random.Next();
    ASSERT_EQ(MixBits(KeyWithHash(hash) ^ kSalt), hash);
  }
}

// The distribution of a test's keys over the array.
enum class Spread { kEven, kFewHomes, kAroundTheEnd };

Key KeyAt(Spread spread, uint64_t n) {
  switch (spread) {
    case Spread::kEven:
      return KeyWithHash(RandomAt(5, n));
    case Spread::kFewHomes:  // Runs of hundreds of slots.
      return KeyWithHash((n % 5) << 61 | RandomAt(5, n) >> 20);
    case Spread::kAroundTheEnd:  // All want the last slots: runs that wrap around the end.
      return KeyWithHash(~(RandomAt(5, n) >> 12));
  }
  return 0;
}

class RowIndexSpread : public testing::TestWithParam<Spread> {};

TEST_P(RowIndexSpread, FindsWhatIsThereThroughGrowthAndErasure) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    RowIndex index(kSalt);
    std::map<Key, uint32_t> map;
    const uint64_t vocabulary = GetParam() == Spread::kEven ? 60000 : 6000;
    bool grew_under_way = false;
    for (int turn = 0; turn < 2000; ++turn) {
      const size_t more = 1 + random.Below(40);
      index.Prepare(more);
      for (size_t i = 0; i < more; ++i) {
        const Key key = KeyAt(GetParam(), random.Below(vocabulary));
        RowSlot* const slot = index.Find(key, index.Home(key));
        const auto known = map.find(key);
        ASSERT_EQ(slot->used(), known != map.end());
        if (!slot->used()) {
          const auto row = static_cast<uint32_t>(random.Below(kRowNumbersMax)) + 1;
          index.Fill(slot, {.key = key, .row_and_one = row, .version = 7});
          map[key] = row;
        } else {
          ASSERT_EQ(slot->row_and_one, known->second);
          if (random.Below(4) == 0) {
            index.Erase(slot);
            map.erase(known);
          }
        }
      }
      grew_under_way |= index.growing();
      ASSERT_EQ(index.size(), map.size());
      if (turn % 100 != 0) continue;
      std::map<Key, uint32_t> seen;
      index.ForEach([&](const RowSlot& slot) { seen[slot.key] = slot.row_and_one; });
      ASSERT_EQ(seen, map);
      for (const auto& [key, row] : map) {
        ASSERT_EQ(index.Find(key, index.Home(key))->row_and_one, row);
      }
    }
    EXPECT_TRUE(grew_under_way);
  }
}

INSTANTIATE_TEST_SUITE_P(Spreads, RowIndexSpread,
                         testing::Values(Spread::kEven, Spread::kFewHomes, Spread::kAroundTheEnd));

TEST(RowIndex, GrowsAPieceAtATime) {
  RowIndex index(kSalt);
  Random random(3);
  size_t bytes_max = 0, growths = 0;
  bool was_growing = false;
  for (size_t n = 0; n < 1u << 20; n += 64) {
    index.Prepare(64);
    for (size_t i = 0; i < 64; ++i) {
      const Key key = random.Next();
      index.Fill(index.Find(key, index.Home(key)), {key, 1, 0});
    }
    growths += index.growing() && !was_growing ? 1 : 0;
    was_growing = index.growing();
    bytes_max = std::max(bytes_max, index.bytes());
  }
  EXPECT_GE(growths, 8u);
  // At the last growth the old array exists beside the new one of 2^21 slots.
  EXPECT_LE(bytes_max, (size_t{3} << 20) * sizeof(RowSlot));
  EXPECT_LE(index.bytes(), (size_t{2} << 20) * sizeof(RowSlot));
}

TEST(RowIndex, ASweepSeesEveryKeyAboutOnceARound) {
  for (const size_t keys : {0u, 1u, 100u, 1400u, 3000u}) {
    RowIndex index(kSalt);
    for (uint64_t n = 0; n < keys; ++n) {
      index.Prepare(1);
      const Key key = KeyAt(Spread::kEven, n);
      index.Fill(index.Find(key, index.Home(key)), {key, 1, 0});
    }
    std::set<Key> seen;
    uint64_t hand = 0;
    size_t visits = 0, steps = 0;
    do {
      index.Sweep(&hand, 1, [&](const RowSlot& slot) {
        seen.insert(slot.key);
        ++visits;
      });
      ++steps;
    } while (hand != 0);
    EXPECT_GE(4 * steps, keys);  // Four slots per home.
    EXPECT_LE(visits, keys);
    EXPECT_GE(seen.size() + 8, keys) << (index.growing() ? "growing" : "");
    if (!index.growing()) {
      EXPECT_EQ(seen.size(), keys);
    }
  }
}

// ---- RowStore.

uint64_t First(const std::byte* row) {
  uint64_t value;
  std::memcpy(&value, row, sizeof(value));
  return value;
}

struct StoreCase {
  size_t row_bytes;
  uint64_t vocabulary;
  Spread spread = Spread::kEven;
};

TEST(RowStore, AgreesWithAMap) {
  for (const auto& [row_bytes, vocabulary, spread] :
       {StoreCase{8, 20000}, StoreCase{12, 20000}, StoreCase{64, 20000}, StoreCase{260, 20000},
        StoreCase{70000, 3000}, StoreCase{68, 600, Spread::kFewHomes},
        StoreCase{68, 600, Spread::kAroundTheEnd}}) {
    RowStore store(row_bytes, kSalt);
    std::map<Key, std::pair<uint64_t, uint32_t>> map;  // First eight bytes and version.
    Random random(row_bytes);
    for (uint32_t version = 1; version <= 60; ++version) {
      std::vector<Key> keys(random.Below(3000));
      for (Key& key : keys) {
        const uint64_t id = random.Below(vocabulary);
        key = id == 0 ? 0 : KeyAt(spread, id);
      }
      size_t next = 0;
      store.ForEachMade(keys, version, WriteKeys, [&](size_t i, std::byte* row) {
        EXPECT_EQ(i, next++);
        auto& known = map.try_emplace(keys[i], keys[i], 0).first->second;
        EXPECT_EQ(First(row), known.first);
        known = {known.first + version, version};
        std::memcpy(row, &known.first, sizeof(known.first));
      });
      ASSERT_EQ(next, keys.size());
      for (size_t i = 0; i < keys.size(); i += 5) {
        ASSERT_EQ(store.Erase(keys[i]), map.erase(keys[i]) > 0);
        ASSERT_FALSE(store.Erase(keys[i]));
      }
      ASSERT_EQ(store.num_rows(), map.size());
      next = 0;
      store.ForEachFound(keys, 8, [&](size_t i, const RowSlot* slot, const std::byte* row) {
        EXPECT_EQ(i, next++);
        const auto known = map.find(keys[i]);
        ASSERT_EQ(slot != nullptr, known != map.end());
        ASSERT_EQ(row != nullptr, known != map.end());
        if (slot == nullptr) return;
        EXPECT_EQ(First(row), known->second.first);
        EXPECT_EQ(slot->version, known->second.second);
      });
      ASSERT_EQ(next, keys.size());
    }
    size_t rows = 0;
    store.ForEach([&](const RowSlot& slot) {
      EXPECT_EQ(First(store.Row(slot.row())), map.at(slot.key).first);
      ++rows;
    });
    EXPECT_EQ(rows, map.size());
  }
}

TEST(RowStore, ErasedRowsAreGivenOutAgain) {
  RowStore store(16, kSalt);
  std::vector<Key> keys(1000);
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = k;
  const auto make_all = [&] {
    store.ForEachMade(
        keys, 1, [](auto, auto) {}, [](size_t, std::byte*) {});
  };
  make_all();
  const size_t bytes = store.bytes();
  for (int round = 0; round < 3; ++round) {
    for (Key& key : keys) {
      EXPECT_TRUE(store.Erase(key));
      key += 1000;
    }
    make_all();
  }
  EXPECT_LE(store.bytes(), bytes + 1024 * sizeof(uint32_t));
}

TEST(RowStore, BytesAreWhatRowsAndIndexTake) {
  RowStore store(256, kSalt);
  std::vector<Key> keys(200000);
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = k;
  store.ForEachMade(
      keys, 1,
      [](std::span<const Key> made, std::byte* const* rows) {
        for (size_t k = 0; k < made.size(); ++k) std::memset(rows[k], 1, 256);
      },
      [](size_t, std::byte*) {});
  const size_t index = (size_t{1} << 19) * sizeof(RowSlot), rows = keys.size() * 256;
  EXPECT_GE(store.bytes(), index + rows);
  EXPECT_LE(store.bytes(), index + rows + kHugePageBytes);
}

TEST(RowStore, SmallestKeysComeInOrder) {
  RowStore store(4, kSalt);
  std::set<Key> sorted;
  std::vector<Key> keys(5000);
  for (size_t k = 0; k < keys.size(); ++k) {
    keys[k] = k < 10 ? ~Key{0} - k : MixBits(k);
    sorted.insert(keys[k]);
  }
  store.ForEachMade(
      keys, 1, [](auto, auto) {}, [](size_t, std::byte*) {});
  for (const size_t count : {1u, 7u, 5000u, 9000u}) {
    for (const Key first : {Key{0}, *std::next(sorted.begin(), 2500), ~Key{0}}) {
      std::vector<Key> found, expected(sorted.lower_bound(first), sorted.end());
      expected.resize(std::min<size_t>(count, expected.size()));
      store.SmallestKeys(first, count, &found);
      EXPECT_EQ(found, expected);
    }
  }
}

// The shards of a table fill at the same rate. The memory of all: most in one call with `rows` rows
// each, and in total.
struct Taken {
  size_t at_once = 0, bytes = 0;
};
Taken FillAlike(bool by_turns, size_t row_bytes, size_t rows_of_call, size_t calls) {
  constexpr uint32_t kStores = 64;
  std::vector<std::unique_ptr<RowStore>> stores;
  for (uint32_t s = 0; s < kStores; ++s) {
    stores.push_back(
        std::make_unique<RowStore>(row_bytes, kSalt, kHugePageBytes, true, by_turns ? s : 0));
  }
  Taken taken;
  for (size_t call = 0; call < calls; ++call) {
    size_t bytes = 0;
    for (const auto& store : stores) {
      for (size_t r = 0; r < rows_of_call; ++r) store->Insert(call * rows_of_call + r, 0);
      bytes += store->bytes();
    }
    taken.at_once = std::max(taken.at_once, bytes - std::min(bytes, taken.bytes));
    taken.bytes = bytes;
  }
  return taken;
}

TEST(RowStore, ThoseThatFillAlikeTakeMemoryByTurns) {
  const Taken alike = FillAlike(false, 64, 500, 200), by_turns = FillAlike(true, 64, 500, 200);
  EXPECT_GE(alike.at_once, 64 * kHugePageBytes);
  EXPECT_LE(by_turns.at_once, alike.at_once / 3);
}

TEST(RowStore, WhatRowsWillTakeIsForeseen) {
  for (const size_t rows : {1000u, 20'000u, 25'000u, 30'000u, 45'000u, 70'000u, 120'000u}) {
    const double predicted = 64 * static_cast<double>(RowStore::PredictBytes(80, rows));
    const double taken = static_cast<double>(FillAlike(true, 80, rows, 1).bytes);
    EXPECT_NEAR(taken / predicted, 1, 0.1) << rows;
  }
}

}  // namespace
}  // namespace hdps
