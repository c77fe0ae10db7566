// Tests that a slice larger than memory behaves like one that fits.
#include "embedding/tiered_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"
#include "tests/embedding/memory_disk_store.h"
#include "tests/logged_lines.h"

namespace hdps {
namespace {

using testing::HasSubstr;

// A disk that fails on demand.
class FailingDisk : public DiskStore {
 public:
  Status Put(const DiskSpace& space, std::span<const DiskBlock> blocks) override {
    return fail ? Full() : disk_->Put(space, blocks);
  }
  Status Get(const DiskSpace& space, std::span<const uint64_t> numbers,
             const Visit& visit) override {
    return fail ? Full() : disk_->Get(space, numbers, visit);
  }
  Status Erase(const DiskSpace& space, std::span<const uint64_t> numbers) override {
    return disk_->Erase(space, numbers);
  }
  Status EraseAll(const DiskSpace& space) override { return disk_->EraseAll(space); }
  Status Damaged(const std::string& what) const override { return disk_->Damaged(what); }
  uint64_t memory_bytes() const override { return 0; }
  uint64_t disk_bytes() const override { return disk_->disk_bytes(); }

  static Status Full() { return {Code::kIoError, "no space left"}; }
  bool fail = false;

 private:
  std::unique_ptr<DiskStore> disk_ = NewMemoryDiskStore();
};

TableSpec SpecOf(const char* name, uint32_t dim, const PolicySpec& policy = {}) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(OptimizerKind::kLazyAdam);
  spec.optimizer.learning_rate = 0.1f;
  spec.policy = policy;
  return spec;
}

// A small and a large table as one shard, with one limit for both or none.
struct TwoTables {
  explicit TwoTables(uint64_t limit, const PolicySpec& policy = {})
      : budget(limit, [this](uint64_t) { return others; }) {
    if (limit > 0) memory = std::make_unique<ShardMemory>(budget, disk);
    const RowPlacement home{{0}, 1, memory.get()};
    tables.emplace_back(SpecOf("wide", 1, policy), TableId{0}, 5, home);
    tables.emplace_back(SpecOf("deep", 16, policy), TableId{1}, 5, home);
  }
  // Runs a step: reads `keys` like a worker, then updates them.
  void Step(const std::vector<Key>& keys, int64_t step, std::vector<float>* seen) {
    for (TableSlice& table : tables) {
      std::vector<float> rows(keys.size() * table.dim());
      table.Read(keys, table.dim(), rows);
      seen->insert(seen->end(), rows.begin(), rows.end());
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = rows[i] * 0.5f + 0.01f;
      const TableSlice::Gradients gradients{keys, rows, 1};
      table.Apply({&gradients, 1}, 1, step);
      table.EndStep(step);
    }
  }
  uint64_t bytes() const { return tables[0].bytes() + tables[1].bytes(); }

  uint64_t others = 0;
  FailingDisk disk;
  MemoryBudget budget;
  std::unique_ptr<ShardMemory> memory;
  std::vector<TableSlice> tables;
};

std::vector<Key> SomeKeys(Random& random, size_t count, uint64_t range) {
  std::vector<Key> keys(count);
  // Skewed: the square of a uniform number.
  for (Key& key : keys) {
    const double u = random.Unit();
    key = MixBits(static_cast<uint64_t>(u * u * static_cast<double>(range)));
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

constexpr uint64_t kLimit = 3 << 19;  // The rows take about 13 MiB.
constexpr uint64_t kKeys = 40000;

TEST(TieredRows, AreTheSameRows) {
  TwoTables whole(0), tiered(kLimit);
  Random random(1);
  uint64_t most = 0;
  for (int64_t step = 1; step <= 150; ++step) {
    const std::vector<Key> keys = SomeKeys(random, 1500, kKeys);
    std::vector<float> expected, seen;
    whole.Step(keys, step, &expected);
    tiered.Step(keys, step, &seen);
    ASSERT_EQ(seen, expected) << step;
    most = std::max(most, tiered.bytes());
  }
  ASSERT_TRUE(tiered.memory->failure().ok());
  EXPECT_LE(most, kLimit + kLimit / 50);
  EXPECT_GT(whole.bytes(), 6 * kLimit);
  for (size_t t = 0; t < 2; ++t) {
    EXPECT_EQ(tiered.tables[t].num_rows(), whole.tables[t].num_rows());
    const RowsDigest a = *tiered.tables[t].Digest(), b = *whole.tables[t].Digest();
    EXPECT_EQ(a.sum[0], b.sum[0]);
    EXPECT_EQ(a.sum[1], b.sum[1]);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_GT(tiered.tables[t].counters().fetched, 1000u);
    EXPECT_GT(tiered.tables[t].counters().on_disk, 1000u);
  }
}

TEST(TieredRows, AreVisitedInOrderWhereverTheyLie) {
  TwoTables whole(0), tiered(kLimit);
  Random random(2);
  for (int64_t step = 1; step <= 60; ++step) {
    const std::vector<Key> keys = SomeKeys(random, 1500, kKeys);
    std::vector<float> seen;
    whole.Step(keys, step, &seen);
    tiered.Step(keys, step, &seen);
  }
  for (size_t t = 0; t < 2; ++t) {
    std::vector<Key> keys[2];
    std::vector<float> rows[2];
    const TwoTables* of[2] = {&whole, &tiered};
    for (int i = 0; i < 2; ++i) {
      std::vector<size_t> blocks;
      ASSERT_TRUE(of[i]
                      ->tables[t]
                      .VisitRows(777,
                                 [&](std::span<const Key> k, std::span<const float> r) {
                                   keys[i].insert(keys[i].end(), k.begin(), k.end());
                                   rows[i].insert(rows[i].end(), r.begin(), r.end());
                                   blocks.push_back(k.size());
                                   return Status();
                                 })
                      .ok());
      EXPECT_EQ(std::ranges::count(blocks, 777u), static_cast<ptrdiff_t>(blocks.size() - 1));
    }
    EXPECT_EQ(keys[0], keys[1]);
    EXPECT_EQ(rows[0], rows[1]);
    EXPECT_TRUE(std::ranges::is_sorted(keys[0]));
  }
}

TEST(TieredRows, TellWhichRowsChanged) {
  TwoTables whole(0), tiered(kLimit);
  Random random(3);
  for (int64_t step = 1; step <= 60; ++step) {
    std::vector<float> seen;
    const std::vector<Key> keys = SomeKeys(random, 1500, kKeys);
    whole.Step(keys, step, &seen);
    tiered.Step(keys, step, &seen);
  }
  const std::vector<Key> keys = SomeKeys(random, 5000, kKeys);
  for (const int64_t since : {0, 30, 58, 60}) {
    std::vector<uint32_t> positions[2];
    std::vector<float> weights[2];
    whole.tables[1].ReadChanged(keys, since, &positions[0], &weights[0]);
    tiered.tables[1].ReadChanged(keys, since, &positions[1], &weights[1]);
    EXPECT_EQ(positions[0], positions[1]);
    EXPECT_EQ(weights[0], weights[1]);
    EXPECT_EQ(positions[0].empty(), since == 60);
  }
}

// Reading a key without a row does not access the disk, and evicts nothing.
TEST(TieredRows, AskTheDiskForWhatIsThereAlone) {
  TwoTables tiered(kLimit);
  Random random(4);
  std::vector<float> seen;
  for (int64_t step = 1; step <= 40; ++step)
    tiered.Step(SomeKeys(random, 1500, kKeys), step, &seen);
  const size_t in_memory = tiered.tables[1].memory().num_rows();
  tiered.disk.fail = true;
  size_t read = 0;
  for (uint64_t n = 0; n < 20000 && tiered.memory->failure().ok(); ++n) {
    const Key key = MixBits(kKeys + n);
    float row[16];
    tiered.tables[1].Read({&key, 1}, 16, row);
    ++read;
  }
  EXPECT_GT(read, 10u);  // At most one absent key in twenty.
  EXPECT_EQ(tiered.tables[1].memory().num_rows(), in_memory);
}

TEST(TieredRows, GiveWayWhenOthersNeedMore) {
  TwoTables tiered(2 * kLimit);
  Random random(5);
  std::vector<float> seen;
  int64_t step = 1;
  for (; step <= 60; ++step) tiered.Step(SomeKeys(random, 1500, kKeys), step, &seen);
  EXPECT_GT(tiered.bytes(), kLimit);
  tiered.others = kLimit;
  for (; step <= 70; ++step) tiered.Step(SomeKeys(random, 1500, kKeys), step, &seen);
  EXPECT_LE(tiered.bytes(), kLimit + kLimit / 50);
}

// The index of rows on disk is in memory too: a limit may be too small for it alone.
TEST(TieredRows, SayWhenTheLimitCannotBeKept) {
  for (const bool too_small : {false, true}) {
    LoggedLines lines;
    TwoTables tiered(too_small ? kLimit / 16 : kLimit);
    Random random(1);
    std::vector<float> seen;
    for (int64_t step = 1; step <= 60; ++step) {
      tiered.Step(SomeKeys(random, 1500, kKeys), step, &seen);
    }
    EXPECT_EQ(lines.CountOf("cannot be kept"), too_small ? 1u : 0u);
  }
}

TEST(TieredRows, SayWhenTheDiskFails) {
  TwoTables tiered(kLimit);
  Random random(6);
  std::vector<float> seen;
  int64_t step = 1;
  for (; step <= 30; ++step) tiered.Step(SomeKeys(random, 1500, kKeys), step, &seen);
  ASSERT_TRUE(tiered.memory->failure().ok());
  tiered.disk.fail = true;
  tiered.Step(SomeKeys(random, 1500, kKeys), step, &seen);
  EXPECT_EQ(tiered.memory->failure().code(), Code::kIoError);
  EXPECT_THAT(tiered.memory->failure().message(), HasSubstr("no space left"));
  EXPECT_EQ(tiered.tables[1].Digest().status().code(), Code::kIoError);
}

TEST(TieredRows, LeaveNothingOnDisk) {
  auto tiered = std::make_unique<TwoTables>(kLimit);
  Random random(7);
  std::vector<float> seen;
  for (int64_t step = 1; step <= 30; ++step)
    tiered->Step(SomeKeys(random, 1500, kKeys), step, &seen);
  EXPECT_GT(tiered->disk.disk_bytes(), 0u);
  tiered->tables.clear();
  EXPECT_EQ(tiered->disk.disk_bytes(), 0u);
}

// Policies erase and keep the same rows in either tier.
TEST(TieredRows, FollowThePolicyInBothTiers) {
  const PolicySpec policies[] = {{.admit_after = 2, .admit_sketch_bytes = 1 << 16},
                                 {.admit_probability = 0.4},
                                 {.evict_after_steps = 20},
                                 {.max_rows = 9000, .evict_by = EvictBy::kUse},
                                 {.max_rows = 9000, .evict_by = EvictBy::kNorm},
                                 {.evict_after_steps = 30, .max_rows = 9000}};
  for (const PolicySpec& policy : policies) {
    TwoTables whole(0, policy), tiered(kLimit, policy);
    Random random(8);
    for (int64_t step = 1; step <= 60; ++step) {
      const std::vector<Key> keys = SomeKeys(random, 1500, kKeys);
      std::vector<float> expected, seen;
      whole.Step(keys, step, &expected);
      tiered.Step(keys, step, &seen);
      ASSERT_EQ(seen, expected) << step;
      ASSERT_TRUE(policy.max_rows == 0 || whole.tables[1].num_rows() <= policy.max_rows);
    }
    const RowCounts a = whole.tables[1].counters(), b = tiered.tables[1].counters();
    EXPECT_EQ(a.admitted, b.admitted);
    EXPECT_EQ(a.refused, b.refused);
    EXPECT_EQ(a.evicted, b.evicted);
    EXPECT_EQ(a.refused > 0, policy.admit_after > 1 || policy.admit_probability < 1);
    EXPECT_EQ(a.evicted > 0, policy.capped() || policy.evict_after_steps > 0);
    EXPECT_EQ(whole.tables[1].num_rows(), a.admitted - a.evicted);
    EXPECT_EQ(tiered.tables[1].num_rows(), whole.tables[1].num_rows());
    EXPECT_EQ(whole.tables[1].Digest()->sum[0], tiered.tables[1].Digest()->sum[0]);
  }
}

// A job saved and loaded in the middle, with and without a limit, continues as if it had not
// stopped.
TEST(TieredRows, GoOnFromASnapshot) {
  const PolicySpec policy{
      .admit_after = 2, .admit_sketch_bytes = 1 << 16, .evict_after_steps = 25, .max_rows = 9000};
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const SnapshotHeader header{.tables_digest = 1, .shard = {0}, .num_shards = 1, .clock = 50};
  TwoTables whole(0, policy), saved(kLimit, policy), loaded(kLimit, policy);
  Random random(9);
  const auto step_of = [&](TwoTables& tables, const std::vector<Key>& keys, int64_t step) {
    std::vector<float> seen;
    tables.Step(keys, step, &seen);
    return seen;
  };
  for (int64_t step = 1; step <= 50; ++step) {
    const std::vector<Key> keys = SomeKeys(random, 1500, kKeys);
    ASSERT_EQ(step_of(whole, keys, step), step_of(saved, keys, step));
  }
  const Result<SavedFile> file =
      WriteSnapshot(*files, "/c", header, {&saved.tables[0], &saved.tables[1]});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Result<SavedFile> same =
      WriteSnapshot(*files, "/d", header, {&whole.tables[0], &whole.tables[1]});
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(file->checksum, same->checksum);
  EXPECT_EQ(file->rows, whole.tables[0].num_rows() + whole.tables[1].num_rows());
  const Status read =
      ReadSnapshot(*files, "/c", *file, header, {&loaded.tables[0], &loaded.tables[1]});
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_LE(loaded.bytes(), kLimit + (128 << 10));
  for (int64_t step = 51; step <= 90; ++step) {
    const std::vector<Key> keys = SomeKeys(random, 1500, kKeys);
    ASSERT_EQ(step_of(whole, keys, step), step_of(loaded, keys, step)) << step;
  }
  EXPECT_EQ(whole.tables[1].Digest()->sum[0], loaded.tables[1].Digest()->sum[0]);
  EXPECT_GT(loaded.tables[1].counters().fetched, 0u);
  const std::vector<TableSlice*> tables = {&loaded.tables[0], &loaded.tables[1]};
  const Result<SnapshotSummary> summary = SummarizeSnapshot(*files, "/c", *file, header, &tables);
  ASSERT_TRUE(summary.ok());
  ASSERT_EQ(summary->tables.size(), 2u);  // The sketch is not a table.
  EXPECT_EQ(summary->tables[1].digest.rows + summary->tables[0].digest.rows, file->rows);
}

TEST(RowStore, CompactMovesRowsAndGivesMemoryBack) {
  RowStore store(64, 1, 4096);
  const auto key_of = [](uint64_t n) { return MixBits(n); };
  std::vector<Key> keys;
  for (uint64_t n = 0; n < 5000; ++n) keys.push_back(key_of(n));
  store.ForEachMade(
      keys, 1,
      [](std::span<const Key> made, std::byte* const* rows) {
        for (size_t k = 0; k < made.size(); ++k) std::memcpy(rows[k], &made[k], sizeof(Key));
      },
      [](size_t, std::byte*) {});
  const size_t full = store.bytes();
  for (uint64_t n = 0; n < 5000; ++n) {
    EXPECT_TRUE(n % 4 == 0 || store.Erase(key_of(n)));
  }
  store.Compact(100);
  EXPECT_EQ(store.num_rows(), 1250u);
  EXPECT_EQ(store.BytesToAdd(100, 100), 0u) << "the spare rows have their places";
  EXPECT_LT(store.bytes(), full - 3500 * 64);
  for (uint64_t n = 0; n < 5000; n += 4) {
    const RowSlot* slot = store.Find(key_of(n));
    ASSERT_NE(slot, nullptr);
    Key key;
    std::memcpy(&key, store.Row(slot->row()), sizeof(key));
    EXPECT_EQ(key, key_of(n));
  }
  const size_t before = store.bytes();
  const size_t more = store.BytesToAdd(3000, 3000);
  for (uint64_t n = 10000; n < 13000; ++n) store.Insert(key_of(n), 1);
  EXPECT_LE(store.bytes(), before + more);
  EXPECT_GE(store.bytes() + (64 << 10), before + more);
}

}  // namespace
}  // namespace hdps
