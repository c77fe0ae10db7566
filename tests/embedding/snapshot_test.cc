// Tests that snapshots come back bit for bit, and damaged ones are refused.
#include "embedding/snapshot/snapshot.h"

#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/snapshot/snapshot_format.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

constexpr uint32_t kShards = 4;

std::vector<TableSpec> Specs() {
  TableSpec wide, deep, dense;
  wide.name = "wide";
  wide.dim = 1;
  wide.optimizer.record = &RecordOf(OptimizerKind::kFtrl);
  deep.name = "deep";
  deep.dim = 3;
  deep.optimizer.record = &RecordOf(OptimizerKind::kAdam);
  dense.name = "dense";
  dense.dim = 8;
  dense.dense = true;
  dense.shard_by = ShardBy::kGroup;
  dense.optimizer.record = &RecordOf(OptimizerKind::kLamb);
  return {wide, deep, dense};
}

// The slices of one shard.
struct Slices {
  explicit Slices(const std::vector<TableSpec>& specs) {
    for (uint32_t t = 0; t < specs.size(); ++t) tables.emplace_back(specs[t], TableId{t}, 1);
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
  bool Empty() const {
    for (const TableSlice& table : tables) {
      if (table.num_rows() > 0) return false;
    }
    return true;
  }
  void Fill(ShardId shard, size_t rows, uint64_t seed) {
    Random random(seed);
    for (TableSlice& table : tables) {
      std::vector<Key> keys;
      while (keys.size() < rows) {
        const Key key = random.Next();
        if (ShardOf(key, table.spec().shard_by, kShards) == shard) keys.push_back(key);
      }
      std::vector<float> values(rows * table.dim());
      for (float& value : values) value = static_cast<float>(random.Normal());
      table.Apply(std::vector<TableSlice::Gradients>{{keys, values, 1}}, 1, 1);
    }
  }
  std::vector<TableSlice> tables;
};

class Snapshot : public testing::Test {
 protected:
  SavedFile Write(const Slices& slices) {
    Result<SavedFile> saved = WriteSnapshot(*files_, "/ck", header_, slices.Const());
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    return *saved;
  }
  std::string Bytes(const SavedFile& saved) {
    return *ReadWholeFile(*files_, JoinPath("/ck", saved.name), 1 << 26);
  }
  void Put(const SavedFile& saved, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath("/ck", saved.name), bytes).ok());
  }
  Status Read(const SavedFile& saved, Slices& slices) {
    return ReadSnapshot(*files_, "/ck", saved, header_, slices.All());
  }

  Result<SnapshotSummary> Summarize(const SavedFile& saved, const SnapshotHeader& expected,
                                    Slices& slices) {
    const std::vector<TableSlice*> tables = slices.All();
    return SummarizeSnapshot(*files_, "/ck", saved, expected, &tables);
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const SnapshotHeader header_{.tables_digest = 77, .shard = {2}, .num_shards = 4, .clock = 120};
  const std::vector<TableSpec> specs_ = Specs();
};

TEST_F(Snapshot, RoundTrip) {
  // 100,000 rows of 44 bytes and more: several blocks.
  for (const size_t rows : {0u, 1u, 100000u}) {
    Slices slices(specs_), back(specs_);
    slices.Fill({2}, rows, 1);
    const SavedFile saved = Write(slices);
    EXPECT_EQ(saved.name, "shard_002.snapshot");
    EXPECT_EQ(saved.rows, 3 * rows);
    const std::string bytes = Bytes(saved);
    EXPECT_EQ(saved.bytes, bytes.size());
    EXPECT_EQ(saved.checksum, HashString(bytes));
    const Status status = Read(saved, back);
    ASSERT_TRUE(status.ok()) << status.message();
    const Result<SnapshotSummary> summary = Summarize(saved, header_, back);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    EXPECT_EQ(summary->header.clock, 120);
    for (size_t t = 0; t < specs_.size(); ++t) {
      const RowsDigest digest = *slices.tables[t].Digest();
      EXPECT_EQ(back.tables[t].Digest()->sum[0], digest.sum[0]);
      EXPECT_EQ(back.tables[t].Digest()->sum[1], digest.sum[1]);
      EXPECT_EQ(back.tables[t].num_rows(), rows);
      EXPECT_EQ(summary->tables[t].digest.sum[0], digest.sum[0]);
      EXPECT_EQ(summary->tables[t].name, specs_[t].name);
      EXPECT_EQ(summary->tables[t].dim, specs_[t].dim);
    }
    // Writing what was read gives the same bytes.
    Write(back);
    EXPECT_EQ(Bytes(saved), bytes);
  }
}

// Files that are intact and have valid checksums, but contradict the manifest and the job, are
// neither loaded nor shown by `hdps inspect`.
TEST_F(Snapshot, AForgedOneIsRefusedByAllWhoReadIt) {
  Slices slices(specs_);
  slices.Fill({2}, 100, 1);
  const SavedFile saved = Write(slices);
  const auto expect_refused = [&](const SnapshotHeader& expected,
                                  const std::vector<TableSpec>& specs, const char* why) {
    Slices empty(specs);
    const Status read = ReadSnapshot(*files_, "/ck", saved, expected, empty.All());
    const auto summary = Summarize(saved, expected, empty);
    for (const Status& status : {read, summary.status()}) {
      EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
      EXPECT_FALSE(status.ok());
    }
  };
  SnapshotHeader other = header_;
  other.shard = {1};
  expect_refused(other, specs_, "holds shard 2 at clock 120, expected shard 1");
  EXPECT_FALSE(SummarizeSnapshot(*files_, "/ck", saved, other, nullptr).ok());
  EXPECT_TRUE(SummarizeSnapshot(*files_, "/ck", saved, header_, nullptr).ok());
  other = header_;
  other.clock = 121;
  expect_refused(other, specs_, "expected shard 2 at clock 121");
  other = header_;
  other.num_shards = 5;
  expect_refused(other, specs_, "another job");
  other = header_;
  other.tables_digest = 78;
  expect_refused(other, specs_, "another job");
  std::vector<TableSpec> specs = specs_;
  specs[0].name += "x";
  expect_refused(header_, specs, "this job's is");
}

TEST_F(Snapshot, AWeightThatIsNoNumberIsRefused) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    Slices slices(specs_), empty(specs_);
    slices.Fill({2}, 3, 1);
    TableSlice& table = slices.tables[1];
    std::vector<Key> keys = {1};
    while (ShardOf(keys[0], table.spec().shard_by, kShards) != ShardId{2}) ++keys[0];
    std::vector<float> row(table.dim(), 0.5f);
    row.back() = bad;
    table.Store(keys, table.dim(), row, 1);
    const SavedFile saved = Write(slices);
    const Status read = Read(saved, empty);
    EXPECT_EQ(read.code(), Code::kCorruption);
    EXPECT_NE(read.message().find("is no finite number"), std::string::npos) << read.message();
    EXPECT_EQ(empty.tables[0].num_rows() + empty.tables[1].num_rows(), 0u);
    EXPECT_FALSE(Summarize(saved, header_, empty).ok());
    EXPECT_FALSE(SummarizeSnapshot(*files_, "/ck", saved, header_, nullptr).ok());
  }
}

// A copied snapshot has the bytes of that time, whatever the slices become.
TEST_F(Snapshot, TakenNowAndPackedLaterIsTheSameBytes) {
  Slices slices(specs_), other(specs_);
  slices.Fill({2}, 30000, 1);
  other.Fill({3}, 10, 2);
  const SavedFile written = Write(slices);
  SnapshotHeader second = header_;
  second.shard = {3};
  const SavedFile written_second = *WriteSnapshot(*files_, "/ck", second, other.Const());
  CopyBudget budget(uint64_t{1} << 30);
  std::vector<TakenSnapshot> taken;
  taken.push_back(**TakeSnapshot(header_, slices.Const(), &budget));
  taken.push_back(**TakeSnapshot(second, other.Const(), &budget));
  slices.Fill({2}, 30000, 7);
  const Result<std::vector<SavedFile>> saved = WritePack(*files_, "/ck", ViewId{5}, taken);
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  ASSERT_EQ(saved->size(), 2u);
  const std::string pack = *ReadWholeFile(*files_, "/ck/shards_002_of_view_5.pack", 1 << 26);
  EXPECT_EQ(pack, Bytes(written) + Bytes(written_second));
  Slices back(specs_);
  const Status status = ReadSnapshot(*files_, "/ck", saved->back(), second, back.All());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(back.tables[1].Digest()->sum[0], other.tables[1].Digest()->sum[0]);
  // Damage in one part does not affect the other.
  std::string damaged = pack;
  damaged[100] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(*files_, "/ck/shards_002_of_view_5.pack", damaged).ok());
  Slices empty(specs_), again(specs_);
  const Status refused = Read(saved->front(), empty);
  EXPECT_EQ(refused.code(), Code::kCorruption);
  EXPECT_NE(refused.message().find("/ck/shards_002_of_view_5.pack: shard_002.snapshot: "),
            std::string::npos);
  EXPECT_TRUE(ReadSnapshot(*files_, "/ck", saved->back(), second, again.All()).ok());
  ASSERT_TRUE(
      WriteFileAtomically(*files_, "/ck/shards_002_of_view_5.pack", pack.substr(0, pack.size() - 1))
          .ok());
  EXPECT_EQ(ReadSnapshot(*files_, "/ck", saved->back(), second, empty.All()).code(),
            Code::kCorruption);
  EXPECT_TRUE(empty.Empty());
}

TEST_F(Snapshot, WhatTheBudgetDoesNotHoldIsNotTaken) {
  Slices slices(specs_);
  slices.Fill({2}, 1000, 1);
  CopyBudget budget(20000);
  const auto taken = TakeSnapshot(header_, slices.Const(), &budget);
  ASSERT_TRUE(taken.ok());
  EXPECT_FALSE(taken->has_value());
}

TEST_F(Snapshot, HasTheLengthThatTheReadmeSays) {
  TableSpec spec;
  spec.name = "w";
  spec.dim = 1;
  spec.optimizer.record = &RecordOf(OptimizerKind::kSgd);
  Slices slices({spec});
  EXPECT_EQ(Write(slices).bytes, 129u);
  slices.Fill({2}, 1, 1);
  EXPECT_EQ(Write(slices).bytes, 165u);
}

TEST_F(Snapshot, EveryTruncationIsRefused) {
  Slices slices(specs_);
  slices.Fill({2}, 5, 2);
  const SavedFile saved = Write(slices);
  const std::string bytes = Bytes(saved);
  for (size_t length = 0; length < bytes.size(); ++length) {
    Put(saved, bytes.substr(0, length));
    Slices back(specs_);
    Status status = Read(saved, back);
    ASSERT_EQ(status.code(), Code::kCorruption) << length;
    EXPECT_NE(status.message().find(saved.name), std::string::npos);
    ASSERT_TRUE(back.Empty());
    // Also if the manifest has the shorter length: the file's own marks must detect it.
    SavedFile shorter = saved;
    shorter.bytes = length;
    shorter.checksum = HashString(bytes.substr(0, length));
    status = Read(shorter, back);
    ASSERT_EQ(status.code(), Code::kCorruption) << length;
    EXPECT_NE(status.message().find("at byte"), std::string::npos);
    ASSERT_TRUE(back.Empty());
  }
  Put(saved, bytes + "x");
  Slices back(specs_);
  EXPECT_EQ(Read(saved, back).code(), Code::kCorruption);
}

TEST_F(Snapshot, EveryFlippedBitIsRefused) {
  Slices slices(specs_);
  slices.Fill({2}, 4, 3);
  const SavedFile saved = Write(slices);
  const std::string bytes = Bytes(saved);
  ASSERT_LT(bytes.size(), 4000u);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      Put(saved, damaged);
      // The manifest matches, so the file's own checksums must find it.
      SavedFile of_damaged = saved;
      of_damaged.checksum = HashString(damaged);
      Slices back(specs_);
      const Status status = Read(of_damaged, back);
      ASSERT_EQ(status.code(), Code::kCorruption) << "byte " << at << " bit " << bit;
      ASSERT_TRUE(back.Empty());
    }
  }
}

TEST_F(Snapshot, AnotherWholeFileIsNotTheOneInTheManifest) {
  Slices slices(specs_), other(specs_), back(specs_);
  slices.Fill({2}, 4, 3);
  other.Fill({2}, 4, 4);
  const SavedFile saved = Write(slices);
  Write(other);
  EXPECT_EQ(Read(saved, back).code(), Code::kCorruption);
  EXPECT_TRUE(back.Empty());
}

TEST_F(Snapshot, AnotherJobIsToldFromDamage) {
  Slices slices(specs_);
  slices.Fill({2}, 4, 3);
  const SavedFile saved = Write(slices);
  auto code_with = [&](SnapshotHeader expected, std::vector<TableSpec> specs) {
    Slices back(specs);
    const Status status = ReadSnapshot(*files_, "/ck", saved, expected, back.All());
    EXPECT_NE(status.message().find(saved.name), std::string::npos);
    EXPECT_TRUE(back.Empty());
    return status.code();
  };
  SnapshotHeader expected = header_;
  expected.tables_digest = 78;
  EXPECT_EQ(code_with(expected, specs_), Code::kInvalidArgument);
  expected = header_;
  expected.num_shards = 8;
  EXPECT_EQ(code_with(expected, specs_), Code::kInvalidArgument);
  std::vector<TableSpec> specs = specs_;
  specs[1].dim = 4;
  EXPECT_EQ(code_with(header_, specs), Code::kInvalidArgument);
  specs = specs_;
  specs.pop_back();
  EXPECT_EQ(code_with(header_, specs), Code::kInvalidArgument);
  expected = header_;
  expected.clock = 121;
  EXPECT_EQ(code_with(expected, specs_), Code::kCorruption);
  expected = header_;
  expected.shard = {3};
  EXPECT_EQ(code_with(expected, specs_), Code::kCorruption);
}

TEST_F(Snapshot, RowsOfAnotherShardAreRefused) {
  Slices slices(specs_), back(specs_);
  slices.Fill({1}, 4, 3);  // Written under shard 2's name.
  EXPECT_EQ(Read(Write(slices), back).code(), Code::kCorruption);
  EXPECT_TRUE(back.Empty());
}

TEST_F(Snapshot, MissingFileIsCorruption) {
  Slices back(specs_);
  const SavedFile saved{.name = "shard_002.snapshot", .bytes = 10, .checksum = 1, .rows = 1};
  const Status status = Read(saved, back);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_NE(status.message().find("/ck/shard_002.snapshot"), std::string::npos);
}

}  // namespace
}  // namespace hdps
