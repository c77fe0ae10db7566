// Tests tables that share rows against the same tables with rows of their own: every digest, every
// row read and every saved byte is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/memory/row_store.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"
#include "tests/embedding/memory_disk_store.h"
#include "tests/embedding/row_optimizers.h"

namespace hdps {
namespace {

constexpr uint32_t kJoined[] = {0, 0, 2}, kAllJoined[] = {0, 0, 0}, kApart[] = {0, 1, 2};

// Returns two tables that may share rows, and one with its own.
std::vector<TableSpec> Specs(OptimizerKind wide, OptimizerKind deep, WeightFormat format,
                             const PolicySpec& policy = {}) {
  std::vector<TableSpec> specs(3);
  specs[0].name = "wide";
  specs[0].dim = 1;
  specs[0].optimizer.record = &RecordOf(wide);
  specs[1].name = "deep";
  specs[1].dim = 17;  // An odd number of 16-bit weights, and no loop of its own.
  specs[1].optimizer.record = &RecordOf(deep);
  specs[1].weights = format;
  specs[1].init = {InitKind::kNormal, 0.1f};
  specs[1].schedule = {.kind = ScheduleKind::kStep, .decay_steps = 5};
  specs[2] = specs[0];
  specs[2].name = "own";
  for (TableSpec& spec : specs) spec.policy = policy;
  return specs;
}

// The gradients of some workers for a step: the keys of all tables are the same.
struct Step {
  std::vector<std::vector<Key>> keys;                   // [workers]
  std::vector<std::vector<std::vector<float>>> values;  // [tables][workers]

  Step(Random& random, const std::vector<TableSpec>& specs, uint64_t range, uint64_t least = 60) {
    keys.resize(1 + random.Below(3));
    for (std::vector<Key>& own : keys) {
      // More than one batch of a look-up now and then.
      const uint64_t count = random.Below(8) == 0 ? 1500 : least;
      for (uint64_t k = 0; k < count; ++k) own.push_back(MixBits(random.Below(range)));
      std::ranges::sort(own);
      own.erase(std::unique(own.begin(), own.end()), own.end());
    }
    for (const TableSpec& spec : specs) {
      auto& of_table = values.emplace_back();
      for (const std::vector<Key>& own : keys) {
        std::vector<float>& floats = of_table.emplace_back(own.size() * spec.dim);
        for (float& value : floats) value = static_cast<float>(random.Normal());
      }
    }
  }
  std::vector<TableSlice::Gradients> PartsOf(size_t table) const {
    std::vector<TableSlice::Gradients> parts;
    for (size_t w = 0; w < keys.size(); ++w) parts.push_back({keys[w], values[table][w], 0.5f});
    return parts;
  }
};

// The slices of a shard, with a disk if there is a limit.
class Slices {
 public:
  Slices(const std::vector<TableSpec>& specs, std::span<const uint32_t> first_of_group,
         uint64_t limit = 0, VectorWidth width = WidestVectors())
      : budget_(limit, [](uint64_t) { return uint64_t{0}; }) {
    if (limit > 0) memory_ = std::make_unique<ShardMemory>(budget_, *disk_);
    tables_ =
        TableSlice::OfTables(specs, first_of_group, 3, RowPlacement{{1}, 4, memory_.get()}, width);
  }

  TableSlice& at(size_t table) { return tables_[table]; }
  void Apply(const Step& step, int64_t number, const UpdateTerms& terms = {}) {
    std::vector<std::vector<TableSlice::Gradients>> parts;
    for (size_t t = 0; t < tables_.size(); ++t) parts.push_back(step.PartsOf(t));
    std::vector<TableSlice::JoinedUpdate> together;
    for (size_t t = 0; t < NumJoined(); ++t) together.push_back({&tables_[t], parts[t]});
    if (!together.empty()) TableSlice::ApplyJoined(together, 0.5f, number, terms);
    for (size_t t = together.size(); t < tables_.size(); ++t) {
      tables_[t].Apply(parts[t], 0.5f, number, terms);
    }
    for (TableSlice& table : tables_) table.EndStep(number);
  }
  // Reads rows of every table, of both lengths, and what changed since a step.
  std::vector<float> Read(std::span<const Key> keys, int64_t since) {
    std::vector<float> all;
    for (const bool with_state : {false, true}) {
      std::vector<std::vector<float>> rows;
      std::vector<TableSlice::JoinedRead> reads;
      for (TableSlice& table : tables_) {
        const uint32_t floats = table.dim() + (with_state ? table.state_floats() : 0);
        reads.push_back({&table, floats, rows.emplace_back(keys.size() * floats)});
      }
      const size_t joined = NumJoined();
      if (joined > 0) TableSlice::ReadJoined(keys, std::span(reads).first(joined));
      for (size_t t = joined; t < reads.size(); ++t) {
        tables_[t].Read(keys, reads[t].row_floats, reads[t].rows);
      }
      for (const std::vector<float>& own : rows) all.insert(all.end(), own.begin(), own.end());
      // Each table alone reads the same of rows that it shares.
      for (size_t t = 0; t < joined; ++t) {
        std::vector<float> alone(rows[t].size());
        tables_[t].Read(keys, reads[t].row_floats, alone);
        EXPECT_EQ(alone, rows[t]);
      }
    }
    for (TableSlice& table : tables_) {
      std::vector<uint32_t> positions;
      table.ReadChanged(keys, since, &positions, &all);
      for (const uint32_t position : positions) all.push_back(static_cast<float>(position));
    }
    return all;
  }
  // Describes the rows of each table.
  std::string Text() const {
    std::string text;
    for (const TableSlice& table : tables_) {
      const RowsDigest digest = *table.Digest();
      const RowCounts counts = table.counters();
      text += table.spec().name + " " + std::to_string(digest.rows) + " " +
              std::to_string(table.num_rows()) + " " + std::to_string(digest.sum[0]) + " " +
              std::to_string(digest.sum[1]) + " admitted " + std::to_string(counts.admitted) +
              " evicted " + std::to_string(counts.evicted) + "\n";
    }
    return text;
  }
  std::vector<const TableSlice*> Const() const {
    std::vector<const TableSlice*> all;
    for (const TableSlice& table : tables_) all.push_back(&table);
    return all;
  }
  std::vector<TableSlice*> All() {
    std::vector<TableSlice*> all;
    for (TableSlice& table : tables_) all.push_back(&table);
    return all;
  }

 private:
  // Returns how many tables share rows: the first ones, or none.
  size_t NumJoined() const {
    size_t joined = 1;
    while (joined < tables_.size() && tables_[0].SharesRowsWith(tables_[joined])) ++joined;
    return joined > 1 ? joined : 0;
  }

  std::unique_ptr<DiskStore> disk_ = NewMemoryDiskStore();
  MemoryBudget budget_;
  std::unique_ptr<ShardMemory> memory_;
  std::vector<TableSlice> tables_;
};

std::vector<VectorWidth> Widths() {
  std::vector<VectorWidth> widths = {VectorWidth::kPlain};
  for (const VectorWidth width : {VectorWidth::kAvx2, VectorWidth::kAvx512}) {
    if (width <= WidestVectors()) widths.push_back(width);
  }
  return widths;
}

// Trains tables with shared rows and with rows of their own, and compares them.
void ExpectAlike(const std::vector<TableSpec>& specs, VectorWidth width,
                 const UpdateTerms& terms = {}, std::span<const uint32_t> groups = kJoined) {
  Slices joined(specs, groups, 0, width), apart(specs, kApart, 0, width);
  ASSERT_TRUE(joined.at(0).SharesRowsWith(joined.at(1)));
  ASSERT_FALSE(apart.at(0).SharesRowsWith(apart.at(1)));
  ASSERT_EQ(joined.at(0).SharesRowsWith(joined.at(2)), groups[2] == 0);
  Random random(7);
  for (int64_t step = 1; step <= 10; ++step) {
    const Step gradients(random, specs, 3000);
    joined.Apply(gradients, step, terms);
    apart.Apply(gradients, step, terms);
    const std::vector<Key> next = Step(random, specs, 6000).keys[0];  // Some have no row.
    ASSERT_EQ(joined.Read(next, step - 2), apart.Read(next, step - 2)) << "step " << step;
  }
  EXPECT_EQ(joined.Text(), apart.Text());
}

TEST(JoinedRows, EveryOptimizerAndFormatBesideAnother) {
  const std::vector<OptimizerKind> rules = RowOptimizers();
  constexpr WeightFormat kFormats[] = {WeightFormat::kFp32, WeightFormat::kFp16,
                                       WeightFormat::kBf16};
  for (const VectorWidth width : Widths()) {
    for (size_t r = 0; r < rules.size(); ++r) {
      for (const WeightFormat format : kFormats) {
        SCOPED_TRACE(std::string(VectorWidthName(width)) + " rule " + std::to_string(r) +
                     " format " + std::to_string(static_cast<int>(format)));
        ExpectAlike(Specs(rules[r], rules[(r + 1) % rules.size()], format), width);
        std::vector<TableSpec> usual =
            Specs(rules[(r + 2) % rules.size()], rules[r], WeightFormat::kFp32);
        usual[0].weights = format;
        usual[1].dim = 16;  // Loops that know the dim.
        ExpectAlike(usual, width);
      }
    }
  }
}

TEST(JoinedRows, ThreeTablesShareARow) {
  for (const VectorWidth width : Widths()) {
    for (const uint32_t dim : {1u, 8u, 17u, 32u}) {
      std::vector<TableSpec> specs = Specs(OptimizerKind::kFtrl, OptimizerKind::kLazyAdam,
                                           WeightFormat::kFp16, {.evict_after_steps = 4});
      specs[2].dim = dim;
      specs[2].optimizer.record = &RecordOf(OptimizerKind::kRowwiseAdagrad);
      ExpectAlike(specs, width, {}, kAllJoined);
    }
  }
}

TEST(JoinedRows, PenaltiesAndClippingAreEachTablesOwn) {
  std::vector<TableSpec> specs =
      Specs(OptimizerKind::kAdagrad, OptimizerKind::kLazyAdam, WeightFormat::kBf16);
  specs[0].loss_l1 = 0.01f;
  specs[1].loss_l2 = 0.1f;
  ExpectAlike(specs, WidestVectors());
  ExpectAlike(specs, WidestVectors(), {.rate = 0.5, .shrink = 0.25f, .clip_value = 0.5f});
  specs[0].loss_l1 = 0;  // One is finished, the other is taken as it came.
  ExpectAlike(specs, WidestVectors());
}

TEST(JoinedRows, RowsLeaveTogether) {
  for (const PolicySpec& policy :
       {PolicySpec{.evict_after_steps = 4}, PolicySpec{.max_rows = 1500},
        PolicySpec{.evict_after_steps = 3, .max_rows = 1500, .evict_by = EvictBy::kUse}}) {
    const std::vector<TableSpec> specs =
        Specs(OptimizerKind::kFtrl, OptimizerKind::kRowwiseAdagrad, WeightFormat::kFp32, policy);
    ExpectAlike(specs, WidestVectors());
    Slices joined(specs, kJoined);
    Random random(9);
    for (int64_t step = 1; step <= 20; ++step) joined.Apply(Step(random, specs, 4000), step);
    EXPECT_GT(joined.at(1).counters().evicted, 100u);
  }
}

// Saves what both kinds of slices hold, again and again, as whole files and as deltas.
class JoinedSaves : public testing::Test {
 protected:
  CheckpointPart Save(const Slices& slices, const std::string& place, Clock clock, Clock base) {
    CheckpointPart part{place + std::to_string(clock), {}};
    const Result<SavedFile> saved =
        WriteSnapshot(*files_, part.folder, {77, {1}, 4, clock, base}, slices.Const());
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    part.manifest.tables_digest = 77;
    part.manifest.num_shards = 4;
    part.manifest.clock = clock;
    part.manifest.base_clock = base;
    part.manifest.files = {*saved};
    return part;
  }
  Status Load(const std::vector<CheckpointPart>& chain, Slices& into) {
    return ReadShard(*files_, chain, {1}, into.All());
  }

  // The shard's own keys only, because a file holds no others.
  Step StepOf(Random& random, const std::vector<TableSpec>& specs) {
    Step step(random, specs, 8000, 2000);
    step.keys.resize(1);
    std::erase_if(step.keys[0], [](Key key) { return ShardOf(key, ShardBy::kKey, 4).value != 1; });
    for (size_t t = 0; t < specs.size(); ++t) {
      step.values[t].resize(1);
      step.values[t][0].resize(step.keys[0].size() * specs[t].dim);
    }
    return step;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(JoinedSaves, FilesAndDeltasAreTheSameBytes) {
  const std::vector<TableSpec> specs =
      Specs(OptimizerKind::kAdagrad, OptimizerKind::kRowwiseAdagrad, WeightFormat::kBf16,
            {.evict_after_steps = 9});
  uint64_t fetched = 0;
  for (const uint64_t limit : {uint64_t{0}, uint64_t{128} << 10}) {
    Slices joined(specs, kJoined, limit), apart(specs, kApart, limit);
    Random random(11);
    std::vector<CheckpointPart> of_joined, of_apart;
    for (int64_t step = 1; step <= 60; ++step) {
      const Step gradients = StepOf(random, specs);
      joined.Apply(gradients, step);
      apart.Apply(gradients, step);
      if (step % 10 != 0) continue;
      const Clock base = step == 10 ? kNoClock : step - 10;
      const std::string place = "/" + std::to_string(limit);
      of_joined.push_back(Save(joined, place + "joined", step, base));
      of_apart.push_back(Save(apart, place + "apart", step, base));
      const SavedFile& file = of_joined.back().manifest.files[0];
      ASSERT_EQ(file.checksum, of_apart.back().manifest.files[0].checksum) << "step " << step;
      ASSERT_GT(file.rows, 0u);
      for (Slices* slices : {&joined, &apart}) {
        for (TableSlice* table : slices->All()) table->MarkSaved(step);
      }
      // Every mixture loads: what was saved joined into slices apart, and the other way round.
      Slices loaded(specs, kJoined, limit), loaded_apart(specs, kApart, limit);
      ASSERT_TRUE(Load(of_apart, loaded).ok());
      ASSERT_TRUE(Load(of_joined, loaded_apart).ok());
      EXPECT_TRUE(loaded.at(1).KeysAgree());
      for (size_t t = 0; t < specs.size(); ++t) {
        const RowsDigest was = *apart.at(t).Digest();
        for (Slices* slices : {&joined, &loaded, &loaded_apart}) {
          const RowsDigest is = *slices->at(t).Digest();
          ASSERT_EQ(is.rows, was.rows) << specs[t].name;
          ASSERT_EQ(is.sum[0], was.sum[0]) << specs[t].name;
          ASSERT_EQ(is.sum[1], was.sum[1]) << specs[t].name;
        }
      }
    }
    fetched += joined.at(0).counters().fetched;
  }
  EXPECT_GT(fetched, 1000u);  // Otherwise no row came back from disk.
}

TEST_F(JoinedSaves, TablesOfOtherKeysDoNotAgree) {
  const std::vector<TableSpec> specs =
      Specs(OptimizerKind::kSgd, OptimizerKind::kAdagrad, WeightFormat::kFp32);
  Slices apart(specs, kApart);
  Random random(3);
  const Step both = StepOf(random, specs), more = StepOf(random, specs);
  apart.Apply(both, 1);
  apart.at(1).Apply(more.PartsOf(1), 1, 2);
  Slices joined(specs, kJoined);
  ASSERT_TRUE(Load({Save(apart, "/c", 2, kNoClock)}, joined).ok());
  EXPECT_FALSE(joined.at(0).KeysAgree());
  EXPECT_FALSE(joined.at(1).KeysAgree());
  EXPECT_TRUE(joined.at(2).KeysAgree());
}

TEST(JoinedRows, MemoryIsDividedAmongTheTables) {
  const std::vector<TableSpec> specs =
      Specs(OptimizerKind::kAdagrad, OptimizerKind::kAdagrad, WeightFormat::kFp32);
  Slices joined(specs, kJoined), apart(specs, kApart);
  Random random(5);
  for (int64_t step = 1; step <= 30; ++step) {
    const Step gradients(random, specs, 100000);
    joined.Apply(gradients, step);
    apart.Apply(gradients, step);
  }
  EXPECT_EQ(joined.at(0).row_bytes(), 8u);
  EXPECT_EQ(joined.at(1).row_bytes(), 136u);
  EXPECT_EQ(joined.at(0).bytes() + joined.at(1).bytes(), [&] {
    const RowStore& memory = joined.at(0).memory();
    return memory.bytes();
  }());
  EXPECT_LT(joined.at(0).bytes() + joined.at(1).bytes(), apart.at(0).bytes() + apart.at(1).bytes());
}

}  // namespace
}  // namespace hdps
