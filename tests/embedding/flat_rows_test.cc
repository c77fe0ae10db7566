// Tests rows without their optimizer's state: what readers see, and the memory of it.
#include "embedding/flat_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/random.h"
#include "embedding/memory/weight_format.h"

namespace hdps {
namespace {

using Rows = std::map<Key, std::vector<float>>;

constexpr WeightFormat kFormats[] = {WeightFormat::kFp32, WeightFormat::kFp16, WeightFormat::kBf16};

// Small whole numbers, which all formats hold.
std::vector<float> SomeRow(Random& random, uint32_t dim) {
  std::vector<float> row(dim);
  for (float& weight : row) weight = static_cast<float>(random.Below(200)) - 100;
  return row;
}

void Stage(FlatRows& flat, const Rows& rows) {
  ASSERT_TRUE(flat.Begin(rows.size()).ok());
  for (const auto& [key, row] : rows) {
    std::vector<float> with_state = row;
    with_state.push_back(1e30f);
    ASSERT_TRUE(flat.Store({&key, 1}, with_state).ok());
  }
}
void Publish(FlatRows& flat) {
  flat.Publish();
  flat.Settle();
}

Rows RowsOf(const FlatRows& flat) {
  Rows rows;
  const Status visited = flat.VisitRows([&](std::span<const Key> keys, std::span<const float> all) {
    for (size_t k = 0; k < keys.size(); ++k) {
      const auto row = all.subspan(k * flat.dim(), flat.dim());
      EXPECT_TRUE(rows.emplace(keys[k], std::vector<float>(row.begin(), row.end())).second);
    }
    return Status();
  });
  EXPECT_TRUE(visited.ok());
  return rows;
}

// Reads the rows of keys in one call; those without one are missing.
Rows Found(const FlatRows& flat, const std::vector<Key>& keys) {
  const std::vector<const FlatRows*> of(keys.size(), &flat);
  Rows found;
  size_t next = 0;
  FlatRows::ForEachFound(of, keys, [&](size_t k, const std::byte* row) {
    EXPECT_EQ(k, next++);
    if (row == nullptr) return;
    flat.ReadWeightsOf(row, found.emplace(keys[k], flat.dim()).first->second);
  });
  EXPECT_EQ(next, keys.size());
  return found;
}

// Compares the rows of all keys, and that those in `without` have none.
void ExpectRows(const FlatRows& flat, const Rows& rows, const std::vector<Key>& without) {
  EXPECT_EQ(flat.num_rows(), rows.size());
  std::vector<Key> keys = without;
  for (const auto& [key, row] : rows) keys.push_back(key);
  ASSERT_EQ(Found(flat, keys), rows);
  for (const Key key : without) ASSERT_EQ(flat.Find(key).has_value(), rows.contains(key)) << key;
  ASSERT_EQ(RowsOf(flat), rows);
}

TEST(FlatRowsTest, StagedRowsAreSeenOnceTheyArePublished) {
  for (const WeightFormat format : kFormats) {
    for (const uint32_t dim : {1u, 3u, 16u}) {
      Random random(dim);
      FlatRows flat(format, dim);
      ExpectRows(flat, {}, {0, 1, 2});
      Rows before;
      for (Key key = 0; key < 1000; ++key) before[key * 7] = SomeRow(random, dim);
      Stage(flat, before);
      ExpectRows(flat, {}, {0, 7, 14});
      Publish(flat);
      ExpectRows(flat, before, {1, 2, 3});
      // Changed, new, removed, and removed rows that are there again.
      const std::vector<Key> erased = {0, 7, 14, 1};
      flat.Erase(erased);
      Rows changes;
      for (const Key key : {Key{1}, Key{14}, Key{21}, ~Key{0}}) changes[key] = SomeRow(random, dim);
      Stage(flat, changes);
      ExpectRows(flat, before, {1, ~Key{0}});
      Publish(flat);
      Rows after = before;
      for (const Key key : erased) after.erase(key);
      for (const auto& [key, row] : changes) after[key] = row;
      ExpectRows(flat, after, {0, 7});
    }
  }
}

// The index grows, places are used again, and changes are forgotten, in any order.
TEST(FlatRowsTest, RandomChangesEqualAMap) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    FlatRows flat(WeightFormat::kFp32, 2);
    Rows rows;
    std::vector<Key> keys(6000);
    for (Key& key : keys) key = random.Next();
    for (int round = 0; round < 60; ++round) {
      Rows next = rows, stored;
      std::vector<Key> erased;
      const size_t changes = random.Below(random.Below(4) == 0 ? 2000 : 50);
      for (size_t i = 0; i < changes; ++i) {
        const Key key = keys[random.Below(1 + random.Below(keys.size()))];
        if (random.Below(3) == 0) erased.push_back(key);
        if (random.Below(3) != 0) stored[key] = SomeRow(random, 2);
      }
      flat.Erase(erased);
      for (const Key key : erased) next.erase(key);
      Stage(flat, stored);
      for (const auto& [key, row] : stored) next[key] = row;
      if (random.Below(4) == 0) {
        flat.Discard();
      } else {
        Publish(flat);
        rows = next;
      }
      ExpectRows(flat, rows, round % 20 == 0 ? keys : std::vector<Key>());
    }
  }
}

TEST(FlatRowsTest, MemoryIsThatOfWeightsAndKeys) {
  constexpr uint64_t kRows = 200'000;
  for (const WeightFormat format : kFormats) {
    for (const uint32_t dim : {1u, 16u, 64u}) {
      const std::vector<float> row(dim, 1.0f);
      FlatRows flat(format, dim);
      ASSERT_TRUE(flat.Begin(kRows).ok());
      for (Key key = 0; key < kRows; ++key) ASSERT_TRUE(flat.Store({&key, 1}, row).ok());
      Publish(flat);
      EXPECT_EQ(flat.bytes(), FlatRows::PredictBytes(format, dim, kRows));
      const uint64_t needed = kRows * FlatRows::RowBytes(format, dim);
      const double whole = static_cast<double>(flat.bytes()) / static_cast<double>(needed);
      // Deltas of a tenth of the rows, with some new ones and as many that go.
      for (uint64_t delta = 0; delta < 30; ++delta) {
        ASSERT_TRUE(flat.Begin(kRows / 10).ok());
        for (Key k = 0; k < kRows / 10; ++k) {
          const Key key = k < kRows / 100 ? kRows + delta * kRows + k : delta * 1000 + k * 5;
          ASSERT_TRUE(flat.Store({&key, 1}, row).ok());
        }
        Publish(flat);
        std::vector<Key> gone;
        for (Key k = 0; k < kRows / 100; ++k) gone.push_back(kRows + delta * kRows + k);
        flat.Erase(gone);
        Publish(flat);
      }
      const double later = static_cast<double>(flat.bytes()) / static_cast<double>(needed);
      std::printf("dim %u, format %d: %.2f of the bytes of weights and keys, after deltas %.2f\n",
                  dim, static_cast<int>(format), whole, later);
      if (dim < 16) continue;
      EXPECT_LE(whole, 1.4);
      EXPECT_LE(later, 1.2 * whole);
    }
  }
}

TEST(FlatRowsTest, ArraysLieInOtherMemory) {
  Random random(4);
  Rows rows;
  for (Key key = 0; key < 500; ++key) rows[MixBits(key)] = SomeRow(random, 3);
  const size_t row_bytes = FlatRows::RowBytes(WeightFormat::kBf16, 3);
  std::vector<std::byte> bytes(rows.size() * row_bytes);
  std::vector<uint32_t> slots(FlatRows::SlotsFor(rows.size()));
  uint32_t place = 0;
  for (const auto& [key, row] : rows) {
    std::byte* const at = &bytes[place * row_bytes];
    std::memcpy(at, &key, sizeof(key));
    WriteWeights(WeightFormat::kBf16, row, at + sizeof(key));
    FlatRows::AddSlot(slots, key, place++);
  }
  const std::vector<uint32_t> whole = slots;
  auto over = FlatRows::Over(WeightFormat::kBf16, 3, {bytes, slots, nullptr});
  ASSERT_TRUE(over.ok()) << over.status().message();
  ExpectRows(**over, rows, {1, 2, 3});
  Rows more = {{1, SomeRow(random, 3)}, {rows.begin()->first, SomeRow(random, 3)}};
  for (Key key = 10'000; key < 12'000; ++key) more[key] = SomeRow(random, 3);
  Stage(**over, more);
  Publish(**over);
  Rows all = rows;
  for (const auto& [key, row] : more) all[key] = row;
  ExpectRows(**over, all, {2, 3});

  const auto refused = [&](std::span<const std::byte> some, std::vector<uint32_t> of) {
    const auto made = FlatRows::Over(WeightFormat::kBf16, 3, {some, of, nullptr});
    return made.ok() ? Code::kOk : made.status().code();
  };
  slots = whole;
  EXPECT_EQ(refused(bytes, slots), Code::kOk);
  EXPECT_EQ(refused(std::span(bytes).first(bytes.size() - 1), slots), Code::kCorruption);
  EXPECT_EQ(refused(std::span(bytes).first(bytes.size() / 32 * 16), slots), Code::kCorruption);
  EXPECT_EQ(refused(bytes, {}), Code::kCorruption);
  std::ranges::replace(slots, 0u, 1u);
  EXPECT_EQ(refused(bytes, slots), Code::kCorruption) << "a probe would not end";
}

}  // namespace
}  // namespace hdps
