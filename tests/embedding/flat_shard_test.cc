// Tests that a shard of FlatRows has the rows of the slices that were saved, after each delta.
#include "embedding/flat_shard.h"

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
#include "common/protocol/manifest.h"
#include "embedding/flat_file.h"
#include "embedding/snapshot/snapshot.h"

namespace hdps {
namespace {

using testing::HasSubstr;

TableSpec SpecOf(const char* name, uint32_t dim, OptimizerKind rule) {
  TableSpec spec;
  spec.name = name;
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(rule);
  return spec;
}

std::vector<TableSlice> EmptyTables() {
  std::vector<TableSpec> specs = {SpecOf("plain", 1, OptimizerKind::kFtrl),
                                  SpecOf("aging", 8, OptimizerKind::kLazyAdam),
                                  SpecOf("counted", 3, OptimizerKind::kAdagrad)};
  specs[1].policy.evict_after_steps = 12;
  specs[2].policy = {.admit_after = 2, .admit_sketch_bytes = 1 << 14};
  specs[2].weights = WeightFormat::kBf16;
  std::vector<TableSlice> tables;
  for (uint32_t t = 0; t < specs.size(); ++t) {
    tables.emplace_back(specs[t], TableId{t}, 3, RowPlacement{{0}, 1, nullptr});
  }
  return tables;
}

// Adds what VisitRows() shows to a digest, without the optimizer's state.
auto DigestInto(uint32_t dim, RowsDigest* digest) {
  return [=](std::span<const Key> keys, std::span<const float> rows) {
    const size_t row_floats = rows.size() / keys.size();
    for (size_t k = 0; k < keys.size(); ++k) {
      digest->AddRow(1, keys[k], rows.subspan(k * row_floats, dim));
    }
    return Status();
  };
}
std::string TextOf(const RowsDigest& digest) {
  return std::to_string(digest.rows) + " " + std::to_string(digest.sum[0]) + " " +
         std::to_string(digest.sum[1]) + "\n";
}
std::string TextOf(const std::vector<TableSlice>& tables) {
  std::string text;
  for (const TableSlice& table : tables) {
    RowsDigest digest;
    EXPECT_TRUE(table.VisitRows(100, DigestInto(table.dim(), &digest)).ok());
    text += TextOf(digest);
  }
  return text;
}
std::string TextOf(const FlatShard& shard) {
  std::string text;
  for (uint32_t t = 0; t < 3; ++t) {
    RowsDigest digest;
    EXPECT_TRUE(shard.rows({t}).VisitRows(DigestInto(shard.rows({t}).dim(), &digest)).ok());
    text += TextOf(digest);
  }
  return text;
}

class FlatShardTest : public testing::Test {
 protected:
  // Trains, and saves a full checkpoint at clock 10 and then deltas every 10 steps.
  void SetUp() override {
    std::vector<TableSlice> tables = EmptyTables();
    Random random(5);
    for (int64_t step = 1; step <= 60; ++step) {
      for (TableSlice& table : tables) {
        std::vector<Key> keys;
        for (int k = 0; k < 60; ++k) keys.push_back(MixBits(random.Below(40 + random.Below(1500))));
        std::ranges::sort(keys);
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        std::vector<float> values(keys.size() * table.dim());
        for (float& value : values) value = static_cast<float>(random.Normal());
        const TableSlice::Gradients gradients{keys, values, 1};
        table.Apply({&gradients, 1}, 1, step);
        table.EndStep(step);
      }
      if (step % 10 != 0) continue;
      erased_ += tables[1].ErasedKeys().size();
      chain_.push_back(Save(tables, step, step == 10 ? kNoClock : step - 10));
      texts_.push_back(TextOf(tables));
      for (TableSlice& table : tables) table.MarkSaved(step);
    }
    trained_ = std::move(tables);
  }
  CheckpointPart Save(const std::vector<TableSlice>& tables, Clock clock, Clock base) {
    CheckpointPart part{JoinPath("/ck", CheckpointName(clock)), {}};
    std::vector<const TableSlice*> slices;
    for (const TableSlice& table : tables) slices.push_back(&table);
    const auto saved = WriteSnapshot(*files_, part.folder, {77, {0}, 1, clock, base}, slices);
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    part.manifest.tables_digest = 77;
    part.manifest.num_shards = 1;
    part.manifest.clock = clock;
    part.manifest.base_clock = base;
    part.manifest.files = {*saved};
    return part;
  }
  std::unique_ptr<FlatShard> Load(size_t parts) {
    auto shard = std::make_unique<FlatShard>(ShardId{0}, EmptyTables());
    const std::vector<CheckpointPart> chain(chain_.begin(),
                                            chain_.begin() + static_cast<long>(parts));
    const Status loaded = shard->Load(*files_, chain);
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    return shard;
  }
  void Apply(FlatShard& shard, const CheckpointPart& delta) {
    const Status staged = shard.Stage(*files_, delta);
    ASSERT_TRUE(staged.ok()) << staged.message();
    shard.Publish();
    shard.Settle();
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::vector<CheckpointPart> chain_;
  std::vector<std::string> texts_;  // Of the slices at each part of the chain.
  std::vector<TableSlice> trained_;
  size_t erased_ = 0;
};

TEST_F(FlatShardTest, EachCheckpointComesAsAWholeAndByDeltas) {
  EXPECT_GT(erased_, 100u);
  const auto followed = Load(1);
  for (size_t parts = 1; parts <= chain_.size(); ++parts) {
    if (parts > 1) Apply(*followed, chain_[parts - 1]);
    EXPECT_EQ(TextOf(*Load(parts)), texts_[parts - 1]) << parts;
    EXPECT_EQ(TextOf(*followed), texts_[parts - 1]) << parts;
  }
}

// A file for mapping is written from the newest part of the chain to the oldest, and so that rows
// are never all in memory.
TEST_F(FlatShardTest, EachCheckpointIsMapped) {
  std::vector<TableSlice> empty = EmptyTables();
  std::vector<TableSlice*> slices;
  for (TableSlice& slice : empty) slices.push_back(&slice);
  CheckpointPart whole = Save(trained_, 70, kNoClock);
  whole.manifest.base_clock = 60;  // Other shards hold changes.
  chain_.push_back(whole);
  texts_.push_back(texts_.back());
  for (size_t parts = 1; parts <= chain_.size(); ++parts) {
    const std::vector<CheckpointPart> chain(chain_.begin(),
                                            chain_.begin() + static_cast<long>(parts));
    const Clock clock = chain.back().manifest.clock;
    ASSERT_TRUE(files_->MakeDirectories("/flat").ok());
    const auto written = WriteFlat(*files_, "/flat", chain, {0}, slices);
    ASSERT_TRUE(written.ok()) << written.status().message();
    EXPECT_EQ(*files_->List("/flat"), std::vector<std::string>({FlatName({0})}));
    FlatShard shard({0}, EmptyTables());
    const Status mapped = shard.Map(*files_, "/flat", *written, {77, {0}, 1, clock, kNoClock});
    ASSERT_TRUE(mapped.ok()) << mapped.message();
    EXPECT_EQ(TextOf(shard), texts_[parts - 1]) << parts;
    uint64_t rows = 0;
    for (const FlatRows* const table : shard.tables()) rows += table->num_rows();
    EXPECT_EQ(written->rows, rows);
  }
  std::string damaged =
      *ReadWholeFile(*files_, JoinPath(chain_[0].folder, SnapshotName({0})), 1 << 20);
  damaged[damaged.size() / 2] ^= 1;
  ASSERT_TRUE(
      WriteFileAtomically(*files_, JoinPath(chain_[0].folder, SnapshotName({0})), damaged).ok());
  ASSERT_TRUE(files_->RemoveAll("/flat").ok());
  const auto refused = WriteFlat(*files_, "/flat", {chain_[0], chain_[1]}, {0}, slices);
  EXPECT_EQ(refused.status().code(), Code::kCorruption);
  EXPECT_THAT(*files_->List("/flat"), testing::IsEmpty());
}

TEST_F(FlatShardTest, NothingIsSeenBeforeItIsPublished) {
  const auto shard = Load(1);
  ASSERT_TRUE(shard->Stage(*files_, chain_[1]).ok());
  EXPECT_EQ(TextOf(*shard), texts_[0]);
  shard->Discard();
  EXPECT_EQ(TextOf(*shard), texts_[0]);
  Apply(*shard, chain_[1]);
  EXPECT_EQ(TextOf(*shard), texts_[1]);
}

TEST_F(FlatShardTest, AWholeFileInADeltaReplacesAllRows) {
  const auto shard = Load(2);
  CheckpointPart whole = Save(trained_, 70, kNoClock);
  whole.manifest.base_clock = 20;  // Other shards hold changes.
  ASSERT_TRUE(shard->Stage(*files_, whole).ok());
  EXPECT_EQ(TextOf(*shard), texts_[1]);
  shard->Publish();
  shard->Settle();
  EXPECT_EQ(TextOf(*shard), texts_.back());
}

TEST_F(FlatShardTest, ADamagedDeltaChangesNothing) {
  const auto shard = Load(1);
  CheckpointPart delta = chain_[1];
  const std::string path = JoinPath(delta.folder, DeltaName({0}));
  const std::string bytes = *ReadWholeFile(*files_, path, 1 << 20);
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    std::string damaged = bytes;
    if (i % 3 == 0) damaged.resize(random.Below(damaged.size()));
    if (i % 3 != 0) damaged[random.Below(damaged.size())] ^= static_cast<char>(1 << (i % 8));
    ASSERT_TRUE(WriteFileAtomically(*files_, path, damaged).ok());
    delta.manifest.files[0].bytes = damaged.size();
    delta.manifest.files[0].checksum = HashString(damaged);
    const Status staged = shard->Stage(*files_, delta);
    ASSERT_EQ(staged.code(), Code::kCorruption) << i;
    EXPECT_THAT(staged.message(), HasSubstr(path));
    shard->Discard();
    ASSERT_EQ(TextOf(*shard), texts_[0]) << i;
  }
  ASSERT_TRUE(WriteFileAtomically(*files_, path, bytes).ok());
  Apply(*shard, chain_[1]);
  EXPECT_EQ(TextOf(*shard), texts_[1]);
}

TEST_F(FlatShardTest, AKeyWithoutARowReadsItsInitialValue) {
  const auto shard = Load(1);
  std::vector<TableSlice> tables = EmptyTables();
  std::vector<float> row(8), initial(8);
  EXPECT_FALSE(shard->rows({1}).Find(12345).has_value());
  shard->ReadInitial({1}, 12345, row);
  const Key key = 12345;
  tables[1].Read({&key, 1}, 8, initial);
  EXPECT_EQ(row, initial);
}

}  // namespace
}  // namespace hdps
