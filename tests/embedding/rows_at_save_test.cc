// Tests that a save reads rows as they were when it began, whatever becomes of them meanwhile.
#include "embedding/rows_at_save.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/file_system.h"
#include "common/platform/random.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/tiered_rows.h"
#include "tests/embedding/memory_disk_store.h"

namespace hdps {
namespace {

constexpr size_t kFloats = 16;
using Row = std::array<float, kFloats>;

// Rows of which few fit in memory, and what they should be.
class SmallMemory {
 public:
  explicit SmallMemory(uint64_t seed)
      : random_(seed), rows_(sizeof(Row), 7, TableId{3}, {{2}, 4, &memory_}, true) {}

  // Sets random rows, a third of them new, as a change of `step`, and now and then removes some.
  void Change(int64_t step) {
    std::vector<Key> keys;
    for (uint64_t n = 20 + random_.Below(200); keys.size() < n;) keys.push_back(RandomKey());
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    rows_.OnChange(step);
    rows_.InParts(keys, true, [&](size_t, std::span<const Key> part, RowStore& memory) {
      memory.ForEachMade(
          part, RowVersion(step), [](std::span<const Key>, std::byte* const*) {},
          [&](size_t k, std::byte* at) {
            Row& row = now_[part[k]];
            row.fill(static_cast<float>(step) + static_cast<float>(part[k] % 97) / 100);
            std::memcpy(at, row.data(), sizeof(row));
            changed_[part[k]] = step;
          });
    });
    if (random_.Below(4) == 0) Remove();
    if (random_.Below(2) == 0) ReadSome();
  }
  void Remove() {
    std::vector<Key> keys;
    for (int k = 0; k < 60; ++k) keys.push_back(RandomKey());
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    rows_.Erase(keys);
    for (const Key key : keys) now_.erase(key);
  }
  // Brings rows back into memory without a change.
  void ReadSome() {
    std::vector<Key> keys;
    for (int k = 0; k < 100; ++k) keys.push_back(RandomKey());
    rows_.InParts(keys, false, [](size_t, std::span<const Key>, RowStore&) {});
  }
  std::map<Key, Row> ChangedSince(int64_t since) const {
    std::map<Key, Row> rows;
    for (const auto& [key, row] : now_) {
      if (changed_.at(key) > since) rows[key] = row;
    }
    return rows;
  }
  TieredRows& rows() { return rows_; }
  Random& random() { return random_; }
  const Status& failure() const { return memory_.failure(); }

 private:
  Key RandomKey() {
    const Key key = random_.Below(3000);
    return key == 2999 ? ~Key{0} : key * 0x9e3779b97f4a7c15u;
  }

  Random random_;
  MemoryDiskStore disk_;
  MemoryBudget budget_{200 << 10, [](uint64_t) { return 0; }};
  ShardMemory memory_{budget_, disk_};
  TieredRows rows_;
  std::map<Key, Row> now_;
  std::map<Key, int64_t> changed_;
};

// Reads rows of a save until there are no more or up to `reads` times.
Status ReadOn(RowsAtSave::Reader& reader, size_t rows, int reads,
              std::vector<std::pair<Key, Row>>* seen) {
  for (int i = 0; i < reads; ++i) {
    const size_t before = seen->size();
    HDPS_RETURN_IF_ERROR(reader.Read(rows, [&](Key key, std::span<const std::byte> bytes) {
      Row row;
      std::memcpy(row.data(), bytes.data(), sizeof(row));
      seen->emplace_back(key, row);
    }));
    if (seen->size() - before > rows) return {Code::kCorruption, "more rows than asked for"};
    if (seen->size() - before < rows) return {};
  }
  return {};
}

TEST(RowsOfASave, AreThoseOfItsBeginningWhileAllElseChanges) {
  size_t spilled = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SmallMemory slice(seed);
    int64_t step = 0;
    const int64_t since = seed % 2 == 0 ? kSinceEver : 30;
    for (; step < 60; ++step) {
      if (step == 30) slice.rows().MarkSaved();
      slice.Change(step + 1);
    }
    const std::map<Key, Row> expected = slice.ChangedSince(since);
    spilled += slice.rows().rows_on_disk();
    std::shared_ptr<RowsAtSave> save = slice.rows().BeginSave(step, since);
    ASSERT_NE(save, nullptr);
    EXPECT_EQ(save->num_rows(), expected.size()) << seed;
    slice.rows().MarkSaved();
    // Two tables that share rows read them one after the other.
    EXPECT_EQ(slice.rows().BeginSave(step, since), save);
    for (int table = 0; table < 2; ++table) {
      RowsAtSave::Reader reader(save);
      std::vector<std::pair<Key, Row>> seen;
      for (size_t before = 1; before != seen.size();) {
        for (uint64_t n = slice.random().Below(4); n > 0; --n) slice.Change(++step);
        before = seen.size();
        const size_t rows = 1 + slice.random().Below(300);
        const Status read = ReadOn(reader, rows, 1, &seen);
        ASSERT_TRUE(read.ok()) << read.message();
        if (seen.size() - before < rows) break;
      }
      const std::vector<std::pair<Key, Row>> all(expected.begin(), expected.end());
      ASSERT_TRUE(seen == all) << "seed " << seed << ", table " << table << ": " << seen.size()
                               << " rows, expected " << all.size();
    }
    ASSERT_TRUE(slice.failure().ok()) << slice.failure().message();
    EXPECT_EQ(slice.rows().BeginSave(step, kSinceEver), nullptr);  // Of another time.
    save.reset();
    const std::map<Key, Row> later = slice.ChangedSince(kSinceEver);
    EXPECT_EQ(slice.rows().BeginSave(step, kSinceEver)->num_rows(), later.size());
  }
  EXPECT_GT(spilled, 40 * 500u);
}

TEST(RowsOfASave, TakeNoMemoryOnceTheyAreRead) {
  SmallMemory slice(1);
  int64_t step = 0;
  for (; step < 60; ++step) slice.Change(step + 1);
  std::shared_ptr<RowsAtSave> save = slice.rows().BeginSave(step, kSinceEver);
  const auto kept = [&] {
    return slice.rows().bytes() - slice.rows().memory().bytes() - slice.rows().disk().bytes();
  };
  EXPECT_EQ(kept(), 0u);
  for (int i = 0; i < 20; ++i) slice.Change(++step);
  EXPECT_GT(kept(), 0u);
  save.reset();
  EXPECT_EQ(kept(), 0u);
}

TEST(RowsOfASave, EndWithTheirSlice) {
  auto slice = std::make_unique<SmallMemory>(1);
  slice->Change(1);
  const std::shared_ptr<RowsAtSave> save = slice->rows().BeginSave(1, kSinceEver);
  RowsAtSave::Reader reader(save);
  std::vector<std::pair<Key, Row>> seen;
  ASSERT_TRUE(ReadOn(reader, 3, 1, &seen).ok());
  slice.reset();
  EXPECT_EQ(ReadOn(reader, 3, 1, &seen).code(), Code::kUnavailable);
}

TEST(RowsOfASave, AreRefusedOnceAnEarlierStepChangedThem) {
  SmallMemory slice(1);
  for (int64_t step = 1; step <= 5; ++step) slice.Change(step);
  const std::shared_ptr<RowsAtSave> save = slice.rows().BeginSave(5, kSinceEver);
  slice.Change(5);
  RowsAtSave::Reader reader(save);
  std::vector<std::pair<Key, Row>> seen;
  const Status read = ReadOn(reader, 3, 1, &seen);
  EXPECT_EQ(read.code(), Code::kIoError);
  EXPECT_NE(read.message().find("as of step 5"), std::string::npos) << read.message();
}

TEST(RowsOfASave, AreNotKeptIfSomeChangedAsOfAStepAfterIt) {
  SmallMemory slice(1);
  for (int64_t step = 1; step <= 5; ++step) slice.Change(step);
  slice.Change(6);  // A store of workers after 5 steps counts as a change of the sixth.
  EXPECT_EQ(slice.rows().BeginSave(5, kSinceEver), nullptr);
  slice.rows().MarkSaved();
  slice.Change(7);
  // A delta does not look at rows on disk that were stored before the mark.
  EXPECT_EQ(slice.rows().BeginSave(7, 5), nullptr);
  EXPECT_NE(slice.rows().BeginSave(7, kSinceEver), nullptr);
  slice.rows().MarkSaved();
  EXPECT_NE(slice.rows().BeginSave(7, 7), nullptr);
}

// The shard of two tables that share rows.
struct JoinedShard {
  explicit JoinedShard(uint64_t limit) : budget(limit, [](uint64_t) { return 0; }) {
    const RowPlacement home{{0}, 1, &memory};
    const std::vector<uint32_t> first_of_group = {0, 0};
    tables = TableSlice::OfTables(Specs(), first_of_group, 5, home);
  }
  static std::vector<TableSpec> Specs() {
    std::vector<TableSpec> specs(2);
    for (size_t t = 0; t < 2; ++t) {
      specs[t].name = t == 0 ? "wide" : "deep";
      specs[t].dim = t == 0 ? 1 : 16;
      specs[t].optimizer.record = &RecordOf(OptimizerKind::kLazyAdam);
      specs[t].optimizer.learning_rate = 0.1f;
    }
    return specs;
  }
  void Step(int64_t step) {
    Random random(static_cast<uint64_t>(step));
    std::vector<Key> keys(500);
    for (Key& key : keys) key = random.Below(20000) * 0x9e3779b97f4a7c15u;
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const std::vector<float> wide(keys.size(), 0.5f), deep(keys.size() * 16, 0.25f);
    const TableSlice::Gradients first{keys, wide, 1}, second{keys, deep, 1};
    const TableSlice::JoinedUpdate updates[] = {{&tables[0], {&first, 1}},
                                                {&tables[1], {&second, 1}}};
    TableSlice::ApplyJoined(updates, 1, step);
  }
  // Sets rows, as workers that keep rows do when a round has ended after `clock` steps.
  void StoreAt(int64_t clock) {
    std::vector<Key> keys(300);
    for (size_t k = 0; k < keys.size(); ++k) keys[k] = k * 0x9e3779b97f4a7c15u;
    const std::vector<float> wide(keys.size(), 2.0f), deep(keys.size() * 16, 3.0f);
    tables[0].Store(keys, 1, wide, clock + 1);
    tables[1].Store(keys, 16, deep, clock + 1);
  }
  std::vector<const TableSlice*> Const() const { return {&tables[0], &tables[1]}; }

  MemoryDiskStore disk;
  MemoryBudget budget;
  ShardMemory memory{budget, disk};
  std::vector<TableSlice> tables;
};

TEST(RowsOfASave, AreWrittenByAnotherThreadAsIfTheJobStoodStill) {
  JoinedShard shard(1 << 20);
  int64_t step = 0;
  while (step < 100) shard.Step(++step);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("/beside").ok());
  const SnapshotHeader header{1, {0}, 1, step, kNoClock};
  const Result<SavedFile> direct = WriteSnapshot(*files, "/direct", header, shard.Const());
  ASSERT_TRUE(direct.ok()) << direct.status().message();
  CopyBudget none(0);
  std::vector<TakenSnapshot> taken;
  auto of_shard = TakeSnapshot(header, shard.Const(), &none);
  ASSERT_TRUE(of_shard.ok() && *of_shard);
  taken.push_back(**std::move(of_shard));
  Result<std::vector<SavedFile>> saved = std::vector<SavedFile>();
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    saved = WritePack(*files, "/beside", ViewId{1}, taken);
    taken.clear();
    ended = true;
  });
  while (!ended || step < 200) shard.Step(++step);
  writer.join();
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  const std::string pack = *ReadWholeFile(*files, "/beside/" + saved->front().pack, 1 << 26);
  EXPECT_EQ(pack, *ReadWholeFile(*files, "/direct/" + direct->name, 1 << 26));
  EXPECT_TRUE(shard.memory.failure().ok());
  // The next save is as good.
  const SnapshotHeader later{1, {0}, 1, step, kNoClock};
  of_shard = TakeSnapshot(later, shard.Const(), &none);
  ASSERT_TRUE(of_shard.ok() && *of_shard);
}

TEST(RowsOfASave, AreCopiedOrLeftToBeWrittenAtOnceIfSomeWereStoredAtItsClock) {
  JoinedShard shard(1 << 20);
  int64_t step = 0;
  while (step < 100) shard.Step(++step);
  shard.StoreAt(step);
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("/beside").ok());
  const SnapshotHeader header{1, {0}, 1, step, kNoClock};
  CopyBudget none(0), enough(1 << 30);
  const auto not_taken = TakeSnapshot(header, shard.Const(), &none);
  ASSERT_TRUE(not_taken.ok()) << not_taken.status().message();
  EXPECT_FALSE(not_taken->has_value());
  auto copied = TakeSnapshot(header, shard.Const(), &enough);
  ASSERT_TRUE(copied.ok() && *copied);
  const Result<SavedFile> direct = WriteSnapshot(*files, "/direct", header, shard.Const());
  ASSERT_TRUE(direct.ok()) << direct.status().message();
  shard.Step(++step);
  std::vector<TakenSnapshot> taken;
  taken.push_back(**std::move(copied));
  const Result<std::vector<SavedFile>> saved = WritePack(*files, "/beside", ViewId{1}, taken);
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(*ReadWholeFile(*files, "/beside/" + saved->front().pack, 1 << 26),
            *ReadWholeFile(*files, "/direct/" + direct->name, 1 << 26));
}

}  // namespace
}  // namespace hdps
