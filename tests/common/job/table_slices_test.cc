// Tests tables cut over servers by row, field and column: where rows are, and what is refused.
#include "common/job/table_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 39 features and a label.
std::string Wide(const std::string& model) {
  return R"({"data": {"train": ["a.csv"], "columns": [{"name": "y", "type": "label"},
             {"name": "f", "repeat": 39}]}, "model": )" +
         model + "}";
}

// Returns the number of features at each server.
std::vector<int> FeaturesAt(const Job& job, uint32_t servers) {
  const TableSpec& table = job.tables[1];
  std::vector<int> at(servers, 0);
  const std::vector<uint32_t> features = FeaturesOfTable(job, table.name);
  for (const uint32_t shard : FieldShards(job, table, features)) {
    ++at[static_cast<size_t>(uint64_t{shard} * servers / job.cluster.shards)];
  }
  return at;
}

TEST(TableSlicesTest, FeaturesAreDealtEvenly) {
  const Job job = Good({}, Wide(R"({"type": "wide_deep", "slice_mode": "field_slice"})"));
  EXPECT_EQ(job.tables[1].shard_by, ShardBy::kGiven);
  EXPECT_THAT(FeaturesAt(job, 4), ElementsAre(10, 10, 10, 9));
  EXPECT_THAT(FeaturesAt(job, 1), ElementsAre(39));
  EXPECT_THAT(FeaturesAt(job, 2), ElementsAre(20, 19));
  for (uint32_t servers = 1; servers <= 32; ++servers) {
    for (const int features : FeaturesAt(job, servers)) {
      EXPECT_NEAR(features, 39.0 / servers, 2.5) << servers;
    }
  }
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  EXPECT_NE(TablesDigest(Good({}, Wide(R"({"type": "wide_deep"})"))), TablesDigest(job));
}

TEST(TableSlicesTest, ManualShapesAreWhatServersHave) {
  const Job job = Good({}, Wide(R"({"type": "wide_deep", "slice_mode": "field_slice",
                                    "manual_shapes": [20, 1, 11, 2, 5]})"));
  EXPECT_THAT(FeaturesAt(job, 5), ElementsAre(20, 1, 11, 2, 5));
  EXPECT_THAT(FeaturesAt(job, 1), ElementsAre(39));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  const Job three = Good({"model.manual_shapes=[1,37,1]"},
                         Wide(R"({"type": "wide_deep", "slice_mode": "field_slice"})"));
  EXPECT_THAT(FeaturesAt(three, 3), ElementsAre(1, 37, 1));
}

TEST(TableSlicesTest, FeaturesOfOneVocabularyStayTogether) {
  const Job job =
      Good({"model.slice_mode=field_slice", "data.columns.4.vocabulary=c"});  // e beside c.
  const std::vector<uint32_t> features = FeaturesOfTable(job, "deep");
  const std::vector<uint32_t> shards = FieldShards(job, job.tables[1], features);
  ASSERT_EQ(shards.size(), 6u);  // c, d, e, range, cross, pair.
  EXPECT_EQ(shards[2], shards[0]);
  EXPECT_NE(shards[1], shards[0]);
}

TEST(TableSlicesTest, ColumnsOfARowAreApart) {
  const Job job = Good({"model.slice_mode=table_column_slice", "model.column_slices=4",
                        "model.deep_optimizer.kind=adagrad"});
  EXPECT_EQ(job.tables[0].slice_mode, SliceMode::kBatch);  // The table of dim 1.
  const TableSpec& deep = job.tables[1];
  EXPECT_EQ(deep.slice_dim(), 4u);
  std::map<uint32_t, int> rows;  // Rows at each of two servers.
  for (Key key = 0; key < 20000; ++key) {
    for (uint32_t slice = 0; slice < 4; ++slice) {
      const uint32_t shard = ColumnShard(MixBits(key), slice, 4, 32);
      EXPECT_EQ(FirstColumn(deep, {shard}, 32), slice * 4);
      ++rows[shard / 16];
    }
  }
  EXPECT_EQ(rows[0], 40000);
  EXPECT_EQ(rows[1], 40000);
  EXPECT_EQ(FirstColumn(job.tables[0], {31}, 32), 0u);
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
}

TEST(TableSlicesTest, HashesAndRangesAreBalanced) {
  for (const ShardBy by : {ShardBy::kKey, ShardBy::kRange}) {
    for (const uint32_t servers : {2u, 3u}) {
      std::vector<double> rows(servers, 0), shards(servers, 0);
      for (uint32_t s = 0; s < 32; ++s) ++shards[s * servers / 32];
      constexpr int kKeys = 100000;
      for (int i = 0; i < kKeys; ++i) {
        const Key key = FeatureKey(7, std::to_string(i));
        ++rows[ShardOf(key, by, 32).value * servers / 32];
      }
      for (uint32_t s = 0; s < servers; ++s) {
        EXPECT_NEAR(rows[s] / kKeys / (shards[s] / 32), 1, 0.05) << servers;
      }
    }
  }
}

TEST(TableSlicesTest, RowsMayMoveUnlessTheirPlaceIsUnknown) {
  TableSpec batch, row, field, manual, column, counts;
  row.slice_mode = SliceMode::kRow;
  field.slice_mode = manual.slice_mode = SliceMode::kField;
  manual.manual_shapes = {1, 2};
  column.slice_mode = SliceMode::kColumn;
  TableSpec columns = column;
  columns.column_slices = 4;
  for (const TableSpec& from : {batch, row, field, manual, column, columns}) {
    EXPECT_TRUE(SameCut(from, from));
    EXPECT_EQ(WhyNotRecut(from, from), "");
    for (const TableSpec& to : {batch, row, column, columns}) EXPECT_EQ(WhyNotRecut(from, to), "");
  }
  EXPECT_FALSE(SameCut(column, columns));
  EXPECT_FALSE(SameCut(batch, row));
  for (const TableSpec& from : {batch, column, manual}) {
    EXPECT_THAT(WhyNotRecut(from, field), HasSubstr("key of a saved row does not tell it"));
  }
  counts.policy.admit_after = 2;
  TableSpec counts_row = counts;
  counts_row.slice_mode = SliceMode::kRow;
  EXPECT_EQ(WhyNotRecut(counts, counts), "");
  EXPECT_THAT(WhyNotRecut(counts, counts_row), HasSubstr("policy.admit_after"));
}

TEST(TableSlicesTest, WhatCannotBeCutIsRefused) {
  const std::string field = "model.slice_mode=field_slice";
  const std::string column = "model.slice_mode=table_column_slice";
  const struct {
    std::vector<std::string> overrides;
    std::string needle;
  } mistakes[] = {
      {{"model.slice_mode=fields"}, "one of batch_slice, field_slice, table_row_slice"},
      {{field, "model.manual_shapes=[3,4]"},
       "has 6 features, and manual_shapes is of 7 in 2 slices"},
      {{field, "model.manual_shapes=[6,0]"}, "empty slice in manual_shapes"},
      {{field, "model.manual_shapes=[2,2,2]", "cluster.shards=2"}, "more than cluster.shards, 2"},
      {{field, "model.policy.max_rows=10"}, "limits its rows (policy)"},
      {{field, "model.vocab_cache_size=10"}, "keeps rows at the workers"},
      {{column, "model.column_slices=3"}, "has dim 16, which cannot be cut into 3 parts"},
      {{column, "model.column_slices=32"}, "has dim 16, which cannot be cut into 32 parts"},
      {{column, "model.deep_optimizer.kind=rowwise_adagrad"}, "has the optimizer rowwise_adagrad"},
      {{column, "model.policy.admit_after=2"}, "has a policy"},
      {{column, "model.weights=bf16"}, "keeps its weights in 16 bits"},
      {{column, "model.vocab_cache_size=10"}, "keeps rows at the workers"},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(mistake.overrides.back());
    EXPECT_THAT(Bad(mistake.overrides), HasSubstr(mistake.needle));
  }
}

TEST(DatasetStrategyTest, TuplesAreNotOfDataParallel) {
  EXPECT_THAT(Bad({"parallel.dataset_strategy=[[1,4]]"}),
              HasSubstr("parallel.dataset_strategy: under parallel_mode data_parallel every worker "
                        "reads its own examples"));
  EXPECT_THAT(Bad({"parallel.dataset_strategy=[[4],7]"}),
              HasSubstr("one of data_parallel, full_batch, or a tuple such as [2, 1]"));
  EXPECT_THAT(Bad({"parallel.dataset_strategy=[[0,4]]"}), HasSubstr("is not one of"));
  EXPECT_THAT(Bad({"parallel.dataset_strategy=full_bach"}),
              HasSubstr("\"full_bach\" is not one of data_parallel, full_batch"));
  EXPECT_THAT(Bad({"parallel.dataset_strategy=[[1,4]]", "parallel.full_batch=true"}),
              HasSubstr("contradicts"));
}

TEST(DatasetStrategyTest, TuplesAreOfTheModesThatCutLayers) {
  const std::vector<std::string> four = {"parallel.parallel_mode=hybrid_parallel",
                                         "parallel.device_num=4",
                                         "parallel.dense_exchange=allreduce"};
  const auto with = [&four](const std::string& strategy) {
    std::vector<std::string> overrides = four;
    overrides.push_back("parallel.dataset_strategy=" + strategy);
    return overrides;
  };
  const Job job = Good(with("[[1,4]]"));
  EXPECT_THAT(job.parallel.dataset_slices, ElementsAre(ElementsAre(1, 4)));
  EXPECT_EQ(JobDigest(Good(with("[1,4]"))), JobDigest(job));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job));
  EXPECT_NE(JobDigest(job), JobDigest(Good(four)));
  EXPECT_THAT(Bad(with("[[2,2]]")), HasSubstr("[2, 2] cuts two axes of one input"));
  EXPECT_THAT(Bad(with("[[1,2]]")), HasSubstr("2 parts for 4 workers"));
}

// Whatever a worker's reader cannot do is refused when the job is read.
TEST(DatasetStrategyTest, TuplesThatNoReaderFollowsAreRefused) {
  const std::string hybrid = "parallel.parallel_mode=hybrid_parallel";
  const std::string allreduce = "parallel.dense_exchange=allreduce";
  const std::string dense_alone =
      R"({"data": {"train": ["a.csv"], "columns": [{"name": "y", "type": "label"},
          {"name": "x", "type": "numeric"}]}, "model": {"type": "mlp", "hidden": [4]}})";
  const std::string images =
      R"({"data": {"format": "idx", "train": ["images"]},
          "model": {"type": "mlp", "classes": 10}})";
  const std::string normed =
      R"({"data": {"format": "idx", "train": ["images"]},
          "model": {"type": "graph", "loss": "softmax", "classes": 10, "layers": [
              {"name": "p", "kind": "numeric"},
              {"name": "n", "kind": "layer_norm", "inputs": ["p"]},
              {"name": "y", "inputs": ["n"], "units": 10}]}})";
  const std::string columns = R"({"data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label"}, {"name": "c"}, {"name": "d"})";
  const std::string no_numbers = columns + R"(]}, "model": {"type": "wide_deep"}})";
  const std::string unread = columns + R"(, {"name": "x", "type": "numeric"}]},
      "model": {"type": "wide_deep", "numeric": false}})";
  const std::string sparse = kShort;
  const struct {
    std::string job, strategy;
    std::vector<std::string> needles;
  } mistakes[] = {
      {dense_alone, "[[1,4],[1,1]]", {"cuts sparse features, and the job has none", "[1, 1]"}},
      {dense_alone, "[[2,2]]", {"[2, 2] cuts two axes of one input"}},
      {images, "[[1,1,1,4]]", {"[1, 1, 1, 4] has 4 axes", "data.image_shape [28, 28] have 3"}},
      {images, "[[2,1,2]]", {"[2, 1, 2] cuts two axes of one input"}},
      {normed, "[[1,1,4]]", {"[1, 1, 4] cuts an axis of images", "\"n\" is of kind layer_norm"}},
      {sparse, "[4]", {"[4] has 1 axis; an input has two"}},
      {sparse, "[1,1,1,4]", {"has 4 axes; an input has two"}},
      {sparse, "[[4,1],[1,4]]", {"and not the sparse features", "give the first [1, 4] too"}},
      {unread, "[[1,4],[1,4]]", {"cuts numeric columns, and no layer of the model reads them"}},
      {no_numbers, "[[1,4],[1,4]]", {"cuts numeric columns, and the job has none"}},
      {sparse, "[[1,1],[4,1]]", {"the sparse features not at all", "give the first [4, 1] too"}},
  };
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(mistake.strategy);
    const std::string message =
        Bad({hybrid, allreduce, "parallel.dataset_strategy=" + mistake.strategy}, mistake.job);
    EXPECT_THAT(message, HasSubstr("parallel.dataset_strategy"));
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
  for (const char* strategy :
       {"[[4,1],[1,1]]", "[[1,4],[4,1]]", "[[1,4],[1,1]]", "[[1,4],[1,4]]"}) {
    Good({hybrid, allreduce, std::string("parallel.dataset_strategy=") + strategy});
  }
  Good({hybrid, allreduce, "parallel.dataset_strategy=[[1,1],[4,1]]"}, dense_alone);
  Good({hybrid, allreduce, "parallel.dataset_strategy=[[1,1],[1,4]]"}, dense_alone);
  Good({hybrid, allreduce, "parallel.dataset_strategy=[[1,4]]"}, dense_alone);
  for (const char* strategy : {"[1,4]", "[1,1,4]", "[1,4,1]", "[4,1,1]"}) {
    Good({hybrid, allreduce, std::string("parallel.dataset_strategy=[") + strategy + "]"}, images);
  }
  // The rows of an image come first, so their parts are runs of columns that any layer reads.
  Good({hybrid, allreduce, "parallel.dataset_strategy=[[1,4,1]]"}, normed);
  // Data that is cut by features cuts the layers that read it, with all that follows from it.
  const std::string features = "parallel.dataset_strategy=[[1,4]]";
  EXPECT_THAT(Bad({hybrid, features, "parallel.dense_exchange=servers"}),
              testing::AllOf(HasSubstr("parallel.dense_exchange"), HasSubstr("use allreduce"),
                             HasSubstr("parallel.dataset_strategy cuts them")));
  EXPECT_THAT(Bad({hybrid, allreduce, features, "train.mode=async"}),
              testing::AllOf(HasSubstr("train.mode"), HasSubstr("use sync")));
  EXPECT_THAT(Bad({hybrid, allreduce, features, "parallel.enable_parallel_optimizer=true"}),
              testing::AllOf(HasSubstr("parallel.enable_parallel_optimizer"),
                             HasSubstr("parallel.dataset_strategy cuts")));
}

TEST(TableSlicesTest, TablesTimesShardsFitARequest) {
  std::string tables, layers, inputs;
  for (int t = 0; t < 70; ++t) {
    const std::string comma = t == 0 ? "" : ",", number = std::to_string(t);
    tables += comma + "{\"name\":\"t" + number + "\",\"dim\":4}";
    layers +=
        "{\"name\":\"e" + number + "\",\"kind\":\"embedding\",\"table\":\"t" + number + "\"},";
    inputs += comma + "\"e" + number + "\"";
  }
  const std::string model = "model={\"type\":\"graph\",\"tables\":[" + tables + "],\"layers\":[" +
                            layers + "{\"name\":\"all\",\"kind\":\"concat\",\"inputs\":[" + inputs +
                            "]},{\"name\":\"logit\",\"inputs\":[\"all\"],\"units\":1}]}";
  EXPECT_THAT(Bad({model, "cluster.shards=65536"}),
              ::testing::AllOf(HasSubstr("cluster.shards: 65536 is too many for 71 tables"),
                               HasSubstr("at most 32768")));
}

}  // namespace
}  // namespace hdps
