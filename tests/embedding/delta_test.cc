// Tests that a full snapshot and its deltas equal the slices at every point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"
#include "tests/embedding/memory_disk_store.h"

namespace hdps {
namespace {

using testing::HasSubstr;

TableSpec SpecOf(const char* name, uint32_t dim, OptimizerKind rule, const PolicySpec& policy) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(rule);
  spec.policy = policy;
  return spec;
}

// Returns tables in which rows come, change and go in every way.
std::vector<TableSpec> Specs() {
  std::vector<TableSpec> specs = {
      SpecOf("plain", 1, OptimizerKind::kFtrl, {}),
      SpecOf("aging", 8, OptimizerKind::kLazyAdam, {.evict_after_steps = 12}),
      SpecOf("capped", 16, OptimizerKind::kAdagrad,
             {.admit_after = 2, .admit_sketch_bytes = 1 << 14, .max_rows = 700}),
      SpecOf("dense", 4, OptimizerKind::kLamb, {})};
  specs[2].weights = WeightFormat::kBf16;
  specs[3].dense = true;
  specs[3].shard_by = ShardBy::kGroup;
  return specs;
}

// The slices of a shard, with a disk if there is a limit.
struct Slices {
  explicit Slices(uint64_t limit = 0) : budget(limit, [](uint64_t) { return uint64_t{0}; }) {
    if (limit > 0) memory = std::make_unique<ShardMemory>(budget, *disk);
    const std::vector<TableSpec> specs = Specs();
    for (uint32_t t = 0; t < specs.size(); ++t) {
      tables.emplace_back(specs[t], TableId{t}, 3, RowPlacement{{0}, 1, memory.get()});
    }
  }
  std::vector<const TableSlice*> Const() const {
    std::vector<const TableSlice*> all;
    for (const TableSlice& table : tables) all.push_back(&table);
    return all;
  }
  std::vector<TableSlice*> All() {
    std::vector<TableSlice*> all;
    for (TableSlice& table : tables) all.push_back(&table);
    return all;
  }
  void Mark(Clock clock) {
    for (TableSlice& table : tables) table.MarkSaved(clock);
  }
  void Step(Random& random, int64_t step) {
    for (TableSlice& table : tables) {
      std::vector<Key> keys;
      const bool dense = table.spec().dense;
      for (uint64_t k = 0; k < (dense ? 6 : 60); ++k) {
        const uint64_t range = 40 + random.Below(1500);
        keys.push_back(dense ? (k % 2) << 32 | k / 2 : MixBits(random.Below(range)));
      }
      std::ranges::sort(keys);
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      std::vector<float> values(keys.size() * table.dim());
      for (float& value : values) value = static_cast<float>(random.Normal());
      const TableSlice::Gradients gradients{keys, values, 1};
      table.Apply({&gradients, 1}, 1, step);
      if (!dense && random.Below(4) == 0) {
        table.Store(std::span(keys).first(3), table.dim(), std::span(values).first(3 * table.dim()),
                    step);
      }
      table.EndStep(step);
    }
  }
  // Describes the rows and the counts of the policies.
  std::string Text() const {
    std::string text;
    for (const TableSlice& table : tables) {
      const RowsDigest digest = *table.Digest();
      text += table.spec().name + " " + std::to_string(digest.rows) + " " +
              std::to_string(digest.sum[0]) + " " + std::to_string(digest.sum[1]);
      if (table.sketch() != nullptr) {
        text += " " + std::to_string(HashBytes(std::as_bytes(table.sketch()->state())));
      }
      text += "\n";
    }
    return text;
  }

  std::unique_ptr<DiskStore> disk = NewMemoryDiskStore();
  MemoryBudget budget;
  std::unique_ptr<ShardMemory> memory;
  std::vector<TableSlice> tables;
};

class Delta : public testing::Test {
 protected:
  // Saves a checkpoint with the one shard.
  CheckpointPart Save(const Slices& slices, Clock clock, Clock base) {
    CheckpointPart part{JoinPath("/ck", CheckpointName(clock)), {}};
    const SnapshotHeader header{77, {0}, 1, clock, base};
    const Result<SavedFile> saved = WriteSnapshot(*files_, part.folder, header, slices.Const());
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    part.manifest.tables_digest = 77;
    part.manifest.num_shards = 1;
    part.manifest.clock = clock;
    part.manifest.base_clock = base;
    part.manifest.files = {*saved};
    return part;
  }
  Status Read(const std::vector<CheckpointPart>& chain, Slices& into) {
    return ReadShard(*files_, chain, {0}, into.All());
  }
  std::string TextOf(const std::vector<CheckpointPart>& chain, uint64_t limit = 0) {
    Slices slices(limit);
    const Status status = Read(chain, slices);
    return status.ok() ? slices.Text() : status.message();
  }
  // Saves a full checkpoint at clock 10, and deltas at 20 and 30.
  std::vector<CheckpointPart> ThreeParts(Slices& slices) {
    Random random(5);
    std::vector<CheckpointPart> chain;
    for (int64_t step = 1; step <= 30; ++step) {
      slices.Step(random, step);
      if (step % 10 != 0) continue;
      chain.push_back(Save(slices, step, step == 10 ? kNoClock : step - 10));
      slices.Mark(step);
    }
    return chain;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(Delta, EveryPointComesBack) {
  uint64_t erased = 0, fetched = 0, delta_rows = 0, all_rows = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const uint64_t limit = seed % 2 == 0 ? 0 : 128 << 10;  // The data are about 400 KiB.
    Slices slices(limit);
    Random random(seed);
    std::vector<CheckpointPart> chain;
    std::vector<std::string> texts;
    for (int64_t step = 1; step <= 120; ++step) {
      slices.Step(random, step);
      if (random.Below(5) > 0) continue;
      const bool full = chain.empty() || random.Below(6) == 0;
      if (full) chain.clear();
      chain.push_back(Save(slices, step, full ? kNoClock : chain.back().manifest.clock));
      for (const TableSlice* table : slices.Const()) {
        if (!full) erased += table->ErasedKeys().size();
        all_rows += full ? 0 : table->num_rows();
      }
      if (!full) delta_rows += chain.back().manifest.files[0].rows;
      slices.Mark(step);
      if (full) texts.clear();
      texts.push_back(slices.Text());
      ASSERT_EQ(TextOf(chain, limit), texts.back()) << "seed " << seed << " step " << step;
    }
    for (size_t parts = 1; parts <= chain.size(); ++parts) {
      const std::vector<CheckpointPart> part(chain.begin(),
                                             chain.begin() + static_cast<long>(parts));
      ASSERT_EQ(TextOf(part), texts[parts - 1]) << "seed " << seed << ", parts " << parts;
    }
    // A loaded shard continues like the saved one.
    Slices loaded(limit);
    ASSERT_TRUE(Read(chain, loaded).ok());
    Random same = random;
    Slices again(limit);
    ASSERT_TRUE(Read(chain, again).ok());
    again.Mark(chain.back().manifest.clock);
    for (int64_t step = 121; step <= 140; ++step) {
      loaded.Step(random, step);
      again.Step(same, step);
    }
    chain.push_back(Save(again, 140, chain.back().manifest.clock));
    EXPECT_EQ(TextOf(chain), loaded.Text());
    for (const TableSlice& table : slices.tables) fetched += table.counters().fetched;
  }
  // Otherwise the test would prove little.
  EXPECT_GT(erased, 1000u);
  EXPECT_GT(fetched, 1000u);
  EXPECT_LT(2 * delta_rows, all_rows);
}

TEST_F(Delta, AMarkWhoseStepsDoNotFollowIsLost) {
  Slices slices;
  Random random(1);
  slices.Step(random, 7);
  EXPECT_EQ(slices.tables[0].marked_clock(), kSinceEver);
  slices.Mark(7);
  slices.Step(random, 8);
  EXPECT_EQ(slices.tables[0].marked_clock(), 7);
  slices.Step(random, 7);  // Its rows would seem older.
  EXPECT_EQ(slices.tables[0].marked_clock(), kSinceEver);
}

TEST_F(Delta, ManyErasedKeysEndTheMark) {
  TableSlice slice(SpecOf("aging", 1, OptimizerKind::kSgd, {.evict_after_steps = 1}), {0}, 1);
  slice.MarkSaved(0);
  Key next = 0;
  for (int64_t step = 1; slice.marked_clock() == 0; ++step) {
    ASSERT_LT(step, 100) << "the keys of rows that went are kept for ever";
    std::vector<Key> keys(10000);
    for (Key& key : keys) key = next++;
    const std::vector<float> values(keys.size(), 1.0f);
    const TableSlice::Gradients gradients{keys, values, 1};
    slice.Apply({&gradients, 1}, 1, step);
    slice.EndStep(step);
  }
  EXPECT_TRUE(slice.ErasedKeys().empty());
}

// A delta without the erased rows brings them back.
TEST_F(Delta, WithoutErasedRowsItIsAnotherTable) {
  Slices slices;
  std::vector<CheckpointPart> chain = ThreeParts(slices);
  Random random(6);
  for (int64_t step = 31; step <= 50; ++step) slices.Step(random, step);
  size_t erased = 0;
  for (const TableSlice* table : slices.Const()) erased += table->ErasedKeys().size();
  ASSERT_GT(erased, 0u);
  chain.push_back(Save(slices, 50, 30));
  EXPECT_EQ(TextOf(chain), slices.Text());
  slices.Mark(30);  // Forgets the keys; the rows' versions still tell what changed.
  chain.back() = Save(slices, 50, 30);
  EXPECT_NE(TextOf(chain), slices.Text());
}

TEST_F(Delta, OrderCountsAndIsChecked) {
  Slices slices;
  const std::vector<CheckpointPart> chain = ThreeParts(slices);
  EXPECT_EQ(TextOf(chain), slices.Text());
  EXPECT_THAT(TextOf({chain[0], chain[2], chain[1]}),
              HasSubstr("shard_000.delta: holds shard 0 at clock 20 on clock 10"));
  EXPECT_THAT(TextOf({chain[0], chain[2]}), HasSubstr("at clock 30 on clock 20"));
  EXPECT_THAT(TextOf({chain[0], chain[1], chain[1]}), HasSubstr("on clock 10, expected"));
  EXPECT_THAT(TextOf({chain[1]}), HasSubstr("does not name shard_000.snapshot"));
  // Slices without this check would read other rows.
  Slices blind;
  for (const size_t p : {0, 2, 1}) {
    const Manifest& manifest = chain[p].manifest;
    const SnapshotHeader header{77, {0}, 1, manifest.clock, manifest.base_clock};
    ASSERT_TRUE(
        ReadSnapshot(*files_, chain[p].folder, manifest.files[0], header, blind.All()).ok());
  }
  EXPECT_NE(blind.Text(), slices.Text());
}

TEST_F(Delta, AFullFileInTheMiddleBeginsAnew) {
  Slices slices;
  std::vector<CheckpointPart> chain = ThreeParts(slices);
  CheckpointPart whole = Save(slices, 40, kNoClock);
  whole.manifest.base_clock = 30;  // Other files hold changes; that of this shard holds all rows.
  chain.push_back(whole);
  ASSERT_TRUE(files_->RemoveAll("/ck/step_0000000020").ok());  // The base is not needed.
  EXPECT_EQ(TextOf(chain), slices.Text());
}

TEST_F(Delta, EveryTruncationAndEveryFlippedBitIsRefused) {
  Slices slices;
  const std::vector<Key> both = {1, 2}, second = {2};
  for (TableSlice& table : slices.tables) {
    const std::vector<float> values(2 * table.dim(), 0.5f);
    const TableSlice::Gradients gradients{both, values, 1};
    table.Apply({&gradients, 1}, 1, 1);
  }
  const CheckpointPart full = Save(slices, 1, kNoClock);
  slices.Mark(1);
  for (TableSlice& table : slices.tables) {
    const std::vector<float> values(table.dim(), 0.5f);
    const TableSlice::Gradients gradients{second, values, 1};
    table.Apply({&gradients, 1}, 1, 2);
  }
  for (int64_t step = 3; step <= 20; ++step) slices.tables[1].EndStep(step);
  ASSERT_EQ(slices.tables[1].ErasedKeys(), both);
  CheckpointPart delta = Save(slices, 20, 1);
  const std::string path = JoinPath(delta.folder, "shard_000.delta");
  const std::string bytes = *ReadWholeFile(*files_, path, 1 << 20);
  ASSERT_EQ(TextOf({full, delta}), slices.Text());
  const auto expect_refused = [&](const std::string& damaged, const std::string& what) {
    ASSERT_TRUE(WriteFileAtomically(*files_, path, damaged).ok());
    // The manifest matches, so the file's own checksums must find it.
    delta.manifest.files[0].bytes = damaged.size();
    delta.manifest.files[0].checksum = HashString(damaged);
    Slices back;
    const Status status = Read({full, delta}, back);
    ASSERT_EQ(status.code(), Code::kCorruption) << what;
    EXPECT_THAT(status.message(), HasSubstr(path)) << what;
    // Nothing of the full one is stored either, because all is checked first.
    for (const TableSlice& table : back.tables) ASSERT_EQ(table.num_rows(), 0u) << what;
  };
  for (size_t length = 0; length < bytes.size(); ++length) {
    expect_refused(bytes.substr(0, length), "length " + std::to_string(length));
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    expect_refused(damaged, "bit " + std::to_string(bit));
  }
}

}  // namespace
}  // namespace hdps
