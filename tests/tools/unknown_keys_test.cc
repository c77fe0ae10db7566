// Tests keys without a row: how they read, and how many are told.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "tests/tools/predict_fixture.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/scored_data.h"
#include "tools/scoring/scored_job.h"
#include "tools/scoring/wanted_keys.h"

namespace hdps {
namespace {

constexpr const char* kColumns =
    R"("train": ["t"], "columns": [{"name": "y", "type": "label"}, {"name": "user"},
       {"name": "age", "type": "numeric"}, {"name": "tags", "type": "multi"}])";
constexpr const char* kDeepFm = R"("type": "deepfm", "embedding_dim": 4, "hidden": [8])";
constexpr const char* kTrained = "1,a,1,p|q\n0,b,2,q\n1,a,3,r\n0,c,4,\n";
// The rows ask a table for the keys a z c z b | p s q s t q; z, z, s, s and t have no row.
constexpr const char* kScored = "1,a,1,p|s\n0,z,2,q|s\n1,c,3,t\n0,z,4,\n1,b,5,q\n";
constexpr uint64_t kKeys = 11, kUnknown = 5, kDistinct = 8, kDistinctUnknown = 3;
constexpr uint64_t kTables = 2;  // One of weights, one of vectors; both are asked for all keys.

class UnknownKeysTest : public PredictTest {
 protected:
  struct Scored {
    std::vector<float> scores;
    std::string told;
  };
  Scored Score(const CommonFlags& flags) {
    auto data = ScoredData::Open(flags, *files_, *executor_);
    EXPECT_TRUE(data.ok()) << data.status().message();
    if (!data.ok()) return {};
    Scored scored;
    const auto take = [&](const ScoredBatch& batch) {
      scored.scores.insert(scored.scores.end(), batch.scores.begin(), batch.scores.end());
      return Status();
    };
    const auto sums = (*data)->Score({.labels = false}, take);
    EXPECT_TRUE(sums.ok()) << sums.status().message();
    scored.told = (*data)->UnknownKeysTold();
    return scored;
  }
  std::unique_ptr<CheckpointModel> Load(const std::string& run, RowForm form = RowForm::kFlat) {
    auto job = JobOf(FlagsOf(run), *files_);
    EXPECT_TRUE(job.ok()) << job.status().message();
    auto loaded =
        CheckpointModel::Load(*files_, job->job, run, WhichCheckpoint::kNewest, *executor_, form);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return *std::move(loaded);
  }
  static std::vector<float> Read(CheckpointModel& loaded, uint32_t table, Key key,
                                 std::optional<uint32_t> field_shard) {
    std::vector<float> row(loaded.job().tables[table].dim, NAN);
    std::vector<uint32_t> shards;
    if (field_shard) shards.push_back(*field_shard);
    loaded.Read({table}, {&key, 1}, shards, row);
    return row;
  }
};

TEST_F(UnknownKeysTest, TheCommandTellsHowManyKeysHaveNoRow) {
  WriteText(*files_, "t", kTrained);
  WriteText(*files_, "q", kScored);
  Train("run", kColumns, kDeepFm);
  const std::string counts = std::to_string(kTables * kDistinctUnknown) + " of " +
                             std::to_string(kTables * kDistinct) + " distinct keys (37.5 %), " +
                             "45.5 % of all, have no row in the checkpoint and read as ";
  static_assert(kUnknown * 1000 / kKeys == 454);
  EXPECT_EQ(Score(FlagsOf("run")).told, "") << "counting costs, so it has to be asked for";
  CommonFlags flags = FlagsOf("run");
  flags.count_unknown = true;
  const Scored initial = Score(flags);
  EXPECT_EQ(initial.told, counts + "their initial values");
  flags.unknown_are_zeros = true;
  const Scored zero = Score(flags);
  EXPECT_EQ(zero.told, counts + "zeros");
  // Rows 1 to 4 have a key without a row, and the last has none.
  ASSERT_EQ(zero.scores.size(), 5u);
  for (size_t i = 0; i < 4; ++i) EXPECT_NE(initial.scores[i], zero.scores[i]) << i;
  EXPECT_EQ(initial.scores[4], zero.scores[4]);
  // Rows in 8 bits, and several workers, count alike.
  flags.int8_rows = true;
  EXPECT_EQ(Score(flags).told, zero.told);
  flags.int8_rows = false;
  flags.workers = 2;
  const Scored by_two = Score(flags);
  EXPECT_EQ(by_two.told, zero.told);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(by_two.scores[i], zero.scores[i], 1e-6) << i;
  // Nothing is told where every key has a row.
  WriteText(*files_, "q", kTrained);
  flags.workers = 1;
  EXPECT_EQ(Score(flags).told, "");
}

// However a table is cut over the shards, and in both forms of rows.
TEST_F(UnknownKeysTest, ZerosAreReadWhereThereIsNoRow) {
  WriteText(*files_, "t", kTrained);
  for (const char* const cut :
       {"", R"(, "slice_mode": "table_column_slice", "column_slices": 2)",
        R"(, "slice_mode": "field_slice")", R"(, "slice_mode": "table_row_slice")"}) {
    Train("run", kColumns, std::string(kDeepFm) + cut, 4);
    for (const RowForm form : {RowForm::kFlat, RowForm::kInt8}) {
      const std::unique_ptr<CheckpointModel> loaded = Load("run", form);
      const uint32_t deep = 1;
      const bool by_field = std::string(cut).find("field") != std::string::npos;
      const Job& job = loaded->job();
      std::optional<uint32_t> shard;  // That of the feature `user`, which is the first.
      if (by_field) shard = FieldShards(job, job.tables[deep], FeaturesOfTable(job, "deep"))[0];
      for (const char* const value : {"a", "b", "c", "z"}) {
        const Key key = FeatureKey(HashString("user"), value);
        loaded->set_unknown_keys(UnknownKeys::kInitial);
        const std::vector<float> initial = Read(*loaded, deep, key, shard);
        EXPECT_GT(*std::ranges::max_element(initial), 0) << cut << " " << value;
        loaded->set_unknown_keys(UnknownKeys::kZero);
        const std::vector<float> zero = Read(*loaded, deep, key, shard);
        const bool unknown = value == std::string("z");
        EXPECT_EQ(loaded->FindRow({deep}, key, shard).has_value(), !unknown) << cut << value;
        EXPECT_EQ(zero, unknown ? std::vector<float>(4, 0.0f) : initial) << cut << " " << value;
      }
    }
    ASSERT_TRUE(files_->RemoveAll("run").ok());
  }
}

// However a table is cut over the shards: the wanted rows are those of the whole checkpoint, and
// all other keys are without a row.
TEST_F(UnknownKeysTest, WantedRowsAreThoseOfTheWhole) {
  WriteText(*files_, "t", kTrained);
  for (const char* const cut : {"", R"(, "slice_mode": "table_column_slice", "column_slices": 2)",
                                R"(, "slice_mode": "field_slice")", R"(, "weights": "bf16")"}) {
    Train("run", kColumns, std::string(kDeepFm) + cut, 4);
    const std::unique_ptr<CheckpointModel> whole = Load("run");
    const uint32_t deep = 1;
    const auto key_of = [](const char* value) { return FeatureKey(HashString("user"), value); };
    WantedKeys wanted(whole->job().tables.size());
    for (const char* const value : {"z", "c", "a", "c"}) {
      const Key key = key_of(value);
      wanted.Want({deep}, {&key, 1});
    }
    wanted.Seal();
    EXPECT_EQ(wanted.Of({deep}).size(), 3u);
    const auto few = CheckpointModel::LoadWanted(*files_, whole->job(), "run",
                                                 WhichCheckpoint::kNewest, *executor_, wanted);
    ASSERT_TRUE(few.ok()) << few.status().message();
    std::optional<uint32_t> shard;
    if (std::string(cut).find("field") != std::string::npos) {
      shard = FieldShards(whole->job(), whole->job().tables[deep],
                          FeaturesOfTable(whole->job(), "deep"))[0];
    }
    for (const char* const value : {"a", "b", "c", "z"}) {
      const Key key = key_of(value);
      const bool there = value == std::string("a") || value == std::string("c");
      EXPECT_EQ((*few)->FindRow({deep}, key, shard).has_value(), there) << cut << value;
      if (there) {
        EXPECT_EQ(Read(**few, deep, key, shard), Read(*whole, deep, key, shard)) << cut << value;
      }
    }
    EXPECT_EQ((*few)->RowsOfTables()[deep], 2 * whole->job().tables[deep].row_slices()) << cut;
    EXPECT_EQ((*few)->DenseWeights(), whole->DenseWeights()) << cut;
    ASSERT_TRUE(files_->RemoveAll("run").ok());
  }
}

// Repeats do not add up: the keys that wait are at most as many again as the different ones.
TEST(WantedKeys, AscendWithoutRepeats) {
  WantedKeys wanted(1);
  std::vector<Key> block(WantedKeys::kUnsortedMax / 4);
  for (size_t k = 0; k < block.size(); ++k) block[k] = (k * 7919) % 1000;
  for (int i = 0; i < 40; ++i) {
    wanted.Want({0}, block);
    EXPECT_LE(wanted.Of({0}).size(), 2 * WantedKeys::kUnsortedMax);
  }
  wanted.Seal();
  ASSERT_EQ(wanted.Of({0}).size(), 1000u);
  for (size_t k = 0; k < 1000; ++k) EXPECT_EQ(wanted.Of({0})[k], k);
}

// The dense table has no unknown keys: a tensor without a row keeps its initial values.
TEST_F(UnknownKeysTest, DenseWeightsStay) {
  WriteText(*files_, "t", kTrained);
  Train("run", kColumns, kDeepFm);
  const std::unique_ptr<CheckpointModel> loaded = Load("run");
  const std::vector<float> dense = loaded->DenseWeights();
  loaded->set_unknown_keys(UnknownKeys::kZero);
  EXPECT_EQ(loaded->DenseWeights(), dense);
  const TableId table{static_cast<uint32_t>(loaded->job().tables.size() - 1)};
  const Key beyond = Key{1000} << 32;
  std::vector<float> chunk(kDenseChunkFloats, NAN);
  loaded->Read(table, {&beyond, 1}, {}, chunk);
  EXPECT_TRUE(std::ranges::none_of(chunk, [](float w) { return std::isnan(w); }));
}

}  // namespace
}  // namespace hdps
