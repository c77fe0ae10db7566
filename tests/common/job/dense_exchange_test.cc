// Tests job files: how dense gradients travel with allreduce.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/spec/parallel_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char* const kAllreduce = "parallel.dense_exchange=allreduce";

TEST(DenseExchangeTest, FusionIsReadAsMindSporeWritesIt) {
  EXPECT_EQ(Good({kAllreduce}).parallel.comm_fusion, CommFusionSpec());
  const Job sizes = Good(
      {kAllreduce,
       R"(parallel.comm_fusion={"openstate": true, "allreduce": {"mode": "size", "config": 32},)"
       R"("allgather": {"mode": "auto", "config": null}, "reducescatter": {"mode": "size",)"
       R"("config": 1}})"});
  const CommFusionSpec& fusion = sizes.parallel.comm_fusion;
  EXPECT_EQ(fusion.allreduce.mode, FusionMode::kSize);
  EXPECT_EQ(fusion.allreduce.mebibytes, 32u);
  EXPECT_EQ(fusion.allgather, FusionSpec());
  EXPECT_EQ(fusion.reducescatter.mebibytes, 1u);
  const Job index = Good({kAllreduce, "model.hidden=[8,8,8]",
                          R"(parallel.comm_fusion.allreduce={"mode": "index", "config": [2, 5]})"});
  EXPECT_THAT(index.parallel.comm_fusion.allreduce.index, ElementsAre(2, 5));
  const Job short_form =
      Good({kAllreduce, "model.hidden=[8,8,8]", "parallel.all_reduce_fusion_config=[2,5]"});
  EXPECT_EQ(short_form.parallel.comm_fusion, index.parallel.comm_fusion);
  EXPECT_EQ(PrintJob(short_form), PrintJob(index));
  for (const Job* job : {&sizes, &index}) {
    const Job again = Good({}, PrintJob(*job));
    EXPECT_EQ(again.parallel.comm_fusion, job->parallel.comm_fusion);
    EXPECT_EQ(PrintJob(again), PrintJob(*job));
  }
  // The digest contains only settings that change results; rounding does.
  EXPECT_EQ(JobDigest(sizes), JobDigest(Good({kAllreduce})));
  EXPECT_NE(JobDigest(Good({kAllreduce, "parallel.gradient_fp32_sync=false"})),
            JobDigest(Good({kAllreduce})));
}

TEST(DenseExchangeTest, TheOptimizersShardsAreRead) {
  const Job job =
      Good({kAllreduce, "parallel.device_num=4", "parallel.enable_parallel_optimizer=true",
            R"(parallel.parallel_optimizer_config={"gradient_accumulation_shard": true,)"
            R"("parallel_optimizer_threshold": 24, "optimizer_weight_shard_size": 2,)"
            R"("optimizer_level": "level2"})"});
  EXPECT_EQ(job.parallel.optimizer, (OptimizerShardSpec{true, 2, 24, 2}));
  const Job again = Good({}, PrintJob(job));
  EXPECT_EQ(again.parallel.optimizer, job.parallel.optimizer);
  EXPECT_EQ(JobDigest(job), JobDigest(Good({kAllreduce, "parallel.device_num=4"})));
}

TEST(DenseExchangeTest, PlainJobsShowNoneOfIt) {
  for (const char* key :
       {"comm_fusion", "fp32_sync", "parallel_optimizer", "layerwise", "fusion"}) {
    EXPECT_THAT(PrintJob(Good({kAllreduce})), testing::Not(HasSubstr(key)));
  }
  EXPECT_THAT(Good({kAllreduce}).warnings, IsEmpty());
  EXPECT_THAT(Good({"parallel.comm_fusion.openstate=false"}).warnings,
              ElementsAre("parallel.comm_fusion is ignored: it counts only where dense_exchange "
                          "is allreduce"));
}

// Another order of addition is another rounding, so the job is another one.
TEST(DenseExchangeTest, WhoAddsUpIsOfTheJobAndCountsWhereThereIsAnAllreduce) {
  const char* const library = "parallel.reduction=library";
  const Job job = Good({kAllreduce, library});
  EXPECT_EQ(job.parallel.reduction, ReductionOrder::kLibrary);
  EXPECT_THAT(job.warnings, IsEmpty());
  EXPECT_EQ(PrintJob(Good({}, PrintJob(job))), PrintJob(job));
  EXPECT_NE(JobDigest(job), JobDigest(Good({kAllreduce})));
  EXPECT_EQ(JobDigest(Good({kAllreduce, "parallel.reduction=ordered"})),
            JobDigest(Good({kAllreduce})));
  EXPECT_THAT(PrintJob(Good({kAllreduce})), testing::Not(HasSubstr("\"reduction\"")));
  EXPECT_THAT(Good({library}).warnings,
              ElementsAre("parallel.reduction is ignored: it counts only where dense_exchange is "
                          "allreduce"));
}

struct Mistake {
  std::vector<std::string> overrides;
  std::vector<std::string> needles;
};

void ExpectAnswered(const Mistake& mistake) {
  std::vector<std::string> overrides = {kAllreduce};
  overrides.insert(overrides.end(), mistake.overrides.begin(), mistake.overrides.end());
  SCOPED_TRACE(mistake.overrides.front());
  const std::string message = Bad(overrides);
  for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
}

TEST(DenseExchangeTest, MistakesAreAnsweredWithPlaceValueAndMend) {
  const std::string layers = R"(model={"type": "graph", "tables": [{"name": "t"}], "layers": [)"
                             R"({"name": "e", "kind": "embedding", "table": "t"},)"
                             R"({"name": "out", "inputs": ["e"], "units": 1}]})";
  const Mistake mistakes[] = {
      {{"parallel.comm_fusion=true"}, {"parallel.comm_fusion", "true", "an object"}},
      {{"parallel.comm_fusion.openstat=true"}, {"openstat", "\"openstate\""}},
      {{"parallel.comm_fusion.allreduce.mode=sise"}, {"\"sise\"", "did you mean \"size\"?"}},
      {{R"(parallel.comm_fusion.allgather={"mode": "index", "config": [1]})"},
       {"parallel.comm_fusion.allgather", "one of auto, size"}},
      {{R"(parallel.comm_fusion.allreduce={"mode": "size", "config": 0})"},
       {"comm_fusion.allreduce.config", "0", "from 1"}},
      {{R"(parallel.comm_fusion.allreduce={"mode": "size"})"},
       {"comm_fusion.allreduce.config", "nothing", "a number of MiB"}},
      {{R"(parallel.comm_fusion.allreduce={"mode": "auto", "config": 32})"},
       {"comm_fusion.allreduce.config", "32", "leave it out"}},
      {{R"(parallel.comm_fusion.reducescatter={"mode": "size", "config": null})"},
       {"comm_fusion.reducescatter.config", "null", "a number of MiB"}},
      {{R"(parallel.comm_fusion.allreduce={"mode": "index", "config": 3})"},
       {"comm_fusion.allreduce.config", "3", "such as [20, 35]"}},
      {{R"(parallel.comm_fusion.allreduce={"mode": "index", "config": [3, 3]})"},
       {"comm_fusion.allreduce.config", "3 after 3", "ascend"}},
      {{"parallel.all_reduce_fusion_config=[2,100]"},
       {"parallel.all_reduce_fusion_config", "100", "at most"}},
      {{"parallel.all_reduce_fusion_config=[0]"},
       {"all_reduce_fusion_config", "[0]", "at least 1"}},
      {{"parallel.all_reduce_fusion_config=[1]", "parallel.comm_fusion.openstate=true"},
       {"all_reduce_fusion_config", "comm_fusion", "leave one of the two out"}},
      {{layers, "model.layers.1.fusion=-1"}, {"model.layers.1.fusion", "-1", "from 0"}},
      {{layers, "model.layers.0.layerwise_parallel=true"},
       {"model.layers.0.layerwise_parallel", "\"e\"", "no dense parameters"}},
      {{layers, "model.layers.1.layerwise_parallel=true", "train.clip_norm=1"},
       {"layerwise_parallel", "train.clip_norm", "leave one"}},
      {{layers, "model.layers.1.layerwise_parallel=true", "parallel.dense_exchange=servers"},
       {"layerwise_parallel", "dense_exchange = allreduce"}},
      {{layers, "model.layers.1.layerwise_parallel=true", "parallel.parallel_mode=hybrid_parallel",
        "model.layers.1.shard=[2, 1]"},
       {"model.layers.1.layerwise_parallel", "model.layers.1.shard cuts"}},
  };
  for (const Mistake& mistake : mistakes) ExpectAnswered(mistake);
}

TEST(DenseExchangeTest, MistakesInOptimizersShardsAreAnsweredToo) {
  const Mistake mistakes[] = {
      {{"parallel.enable_parallel_optimizer=true", "parallel.dense_exchange=servers"},
       {"enable_parallel_optimizer", "dense_exchange = allreduce"}},
      {{"parallel.enable_parallel_optimizer=true", "parallel.parallel_mode=hybrid_parallel",
        R"(parallel.blocks=[{"layers": ["deep1"], "shard": [1, 4]}])"},
       {"parallel.enable_parallel_optimizer", "parallel.blocks.0.shard cuts", "leave one of"}},
      {{"parallel.enable_parallel_optimizer=true", "parallel.parallel_mode=hybrid_parallel",
        R"(parallel.blocks=[{"from": "deep1", "to": "deep2", "shard": [1, 4]}])"},
       {"parallel.enable_parallel_optimizer", "parallel.blocks.0.shard cuts", "leave one of"}},
      {{"parallel.enable_parallel_optimizer=true", "parallel.parallel_mode=hybrid_parallel",
        R"(parallel.blocks=[{"layers": ["deep1"], "out_strategy": [1, 4]}])"},
       {"parallel.enable_parallel_optimizer", "parallel.blocks.0.out_strategy cuts"}},
      {{"parallel.enable_parallel_optimizer=true", "parallel.device_num=4",
        "parallel.parallel_optimizer_config.optimizer_weight_shard_size=3"},
       {"optimizer_weight_shard_size", "3", "divide", "4 workers"}},
      {{"parallel.parallel_optimizer_config.optimizer_weight_shard_size=0"},
       {"optimizer_weight_shard_size", "0", "-1 or a whole number"}},
      {{"parallel.parallel_optimizer_config.optimizer_level=level3"},
       {"optimizer_level", "\"level3\" drops weights", "take level2"}},
      {{"parallel.parallel_optimizer_config.optimizer_level=level4"},
       {"optimizer_level", "\"level4\"", "level1, level2"}},
      {{"parallel.parallel_optimizer_config.parallel_optimizer_threshold=-5"},
       {"parallel_optimizer_threshold", "-5"}},
  };
  for (const Mistake& mistake : mistakes) ExpectAnswered(mistake);
}

}  // namespace
}  // namespace hdps
