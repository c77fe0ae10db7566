// Whole jobs whose dense gradients travel by allreduce: fusion, 16 bits, the split optimizer,
// layers of a worker's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizers.h"
#include "tests/worker/role/small_job.h"

namespace hdps {
namespace {

// Ten dense tensors, those of five layers: 4 hidden ones and the logit.
const Overrides kDeep = {"parallel.dense_exchange=allreduce", "model.hidden=[40,24,16,8]"};

class DenseExchangeJobTest : public SmallJobTest {
 protected:
  DenseExchangeJobTest() : SmallJobTest({}, SmallRows(400, 1, Draw), SmallRows(200, 2, Draw)) {}

  static std::pair<uint64_t, uint64_t> Draw(Random& random, uint64_t) {
    return {random.Below(20), random.Below(15)};
  }

  std::string Digest(uint32_t workers, const Overrides& overrides) {
    return Summary({workers, 2}, kDeep + overrides)["digest"];
  }
};

TEST_F(DenseExchangeJobTest, FusionChangesNoBit) {
  const Overrides settings[] = {
      {"parallel.comm_fusion.openstate=false"},
      {R"(parallel.comm_fusion.allreduce={"mode": "size", "config": 1})"},
      {"parallel.all_reduce_fusion_config=[4,7]"},
      {"parallel.all_reduce_fusion_config=[1]", "train.micro_batches=3"},
      {"parallel.comm_fusion.openstate=false", "train.clip_norm=0.05"},
      {"parallel.comm_fusion.openstate=false", "model.vocab_cache_size=9"},
      {"parallel.comm_fusion.openstate=false", "parallel.cross_batch=true"},
      {"parallel.comm_fusion.openstate=false", "model.batch_norm=true", "train.micro_batches=2"},
  };
  for (const uint32_t workers : {1, 2, 3}) {
    for (const Overrides& setting : settings) {
      const Overrides rest(setting.begin() + 1, setting.end());
      EXPECT_EQ(Digest(workers, setting), Digest(workers, rest))
          << workers << " workers, " << setting.back();
    }
  }
  // More workers than rows of the last step: those without one take part in every bucket.
  const Overrides ragged = {"train.batch_size=6", "train.max_steps=70"};
  EXPECT_EQ(Digest(4, ragged + Overrides{"parallel.comm_fusion.openstate=false"}),
            Digest(4, ragged));
}

TEST_F(DenseExchangeJobTest, SixteenBitsAreRoundedAlikeWhateverTheBuckets) {
  const double whole = Summary({3, 1}, kDeep)["train_logloss"];
  std::vector<std::string> digests = {Digest(3, {})};
  for (const char* wire : {"fp32", "bf16"}) {  // fp32 leaves fp16 for the gradients.
    const Overrides halves = {"parallel.gradient_fp32_sync=false",
                              std::string("parallel.wire=") + wire};
    const nlohmann::json one = Summary({3, 1}, kDeep + halves);
    EXPECT_NEAR(one["train_logloss"], whole, 2e-3);
    digests.push_back(one["digest"]);
    EXPECT_EQ(Digest(3, halves + Overrides{"parallel.comm_fusion.openstate=false"}),
              digests.back());
    EXPECT_EQ(Digest(3, halves + Overrides{"parallel.all_reduce_fusion_config=[3]"}),
              digests.back());
  }
  EXPECT_NE(digests[0], digests[1]);
  EXPECT_NE(digests[1], digests[2]);
}

TEST_F(DenseExchangeJobTest, CallsAreCountedAsTheBucketsSay) {
  const auto calls = [&](uint32_t workers, const Overrides& overrides) {
    const nlohmann::json summary =
        Summary({workers, 1}, kDeep + Overrides{"train.max_steps=5"} + overrides);
    const nlohmann::json& told = summary["collectives"];
    EXPECT_EQ(summary["steps"], 5);
    return told.is_null() ? 0.0 : told["allreduce_calls"].get<double>() / 5;
  };
  // Ten tensors.
  EXPECT_EQ(calls(2, {}), 1);
  EXPECT_EQ(calls(2, {"parallel.all_reduce_fusion_config=[4,7]"}), 3);
  EXPECT_EQ(calls(3, {"parallel.comm_fusion.openstate=false"}), 10);
  EXPECT_EQ(calls(1, {"parallel.comm_fusion.openstate=false"}), 0) << "one worker sends nothing";
  const std::string layers = R"(model={"type": "graph", "tables": [{"name": "t"}], "layers": [
      {"name": "e", "kind": "embedding", "table": "t"},
      {"name": "d1", "inputs": ["e"], "units": 8, "fusion": %1},
      {"name": "d2", "inputs": ["d1"], "units": 8, "fusion": %2},
      {"name": "out", "inputs": ["d2"], "units": 1, "fusion": %3}]})";
  const auto with_ids = [&](const char* a, const char* b, const char* c) {
    std::string text = layers;
    text.replace(text.find("%1"), 2, a);
    text.replace(text.find("%2"), 2, b);
    text.replace(text.find("%3"), 2, c);
    return Overrides{"parallel.dense_exchange=allreduce", text};
  };
  const auto graph_calls = [&](const Overrides& job) {
    const auto told = Summary({2, 1}, job + Overrides{"train.max_steps=5"})["collectives"];
    return told["allreduce_calls"].get<double>() / 5;
  };
  EXPECT_EQ(graph_calls(with_ids("1", "1", "2")), 2);
  EXPECT_EQ(graph_calls(with_ids("1", "0", "1")), 3) << "two tensors alone, and the rest";
  EXPECT_EQ(Summary({2, 1}, with_ids("1", "0", "1"))["digest"],
            Summary({2, 1}, with_ids("3", "3", "3"))["digest"]);
}

// Two tensors of 5.6 and 75 KiB, and smaller ones.
const Overrides kWide = {"parallel.dense_exchange=allreduce", "model.hidden=[160,120]",
                         "train.max_steps=12"};
const Overrides kSplit = {"parallel.enable_parallel_optimizer=true"};
const Overrides kSplitFinely =
    kSplit + Overrides{"parallel.parallel_optimizer_config.parallel_optimizer_threshold=4"};

TEST_F(DenseExchangeJobTest, ASplitOptimizerIsTheWholeOne) {
  for (const uint32_t workers : {2, 3, 4}) {
    const std::string whole = Summary({workers, 2}, kWide)["digest"];
    EXPECT_EQ(Summary({workers, 2}, kWide + kSplit)["digest"], whole) << workers;
    EXPECT_EQ(Summary({workers, 1}, kWide + kSplitFinely)["digest"], whole) << workers;
  }
  const std::string whole = Summary({4, 2}, kWide)["digest"];
  const Overrides pairs = {"parallel.parallel_optimizer_config.optimizer_weight_shard_size=2"};
  EXPECT_EQ(Summary({4, 2}, kWide + kSplitFinely + pairs)["digest"], whole);
  const Overrides one_by_one = {"parallel.comm_fusion.openstate=false", "train.micro_batches=2"};
  EXPECT_EQ(Summary({3, 2}, kWide + kSplitFinely + one_by_one)["digest"],
            Summary({3, 2}, kWide + Overrides{"train.micro_batches=2"})["digest"]);
}

TEST_F(DenseExchangeJobTest, ASplitOptimizerIsTheWholeOneWhateverItIs) {
  std::vector<Overrides> variants;
  for (const OptimizerRecord& optimizer : kOptimizers) {
    variants.push_back({std::string("model.dense_optimizer.kind=") + optimizer.name});
  }
  variants.push_back({"train.clip_norm=0.05"});
  variants.push_back({"train.clip_norm=0.05", "model.dense_optimizer.kind=lamb"});
  variants.push_back({"train.clip_value=0.001", "model.dense_loss_l2=0.01"});
  variants.push_back({"model.batch_norm=true", "model.dense_optimizer.kind=lamb"});
  variants.push_back({"parallel.gradient_fp32_sync=false"});
  for (const Overrides& variant : variants) {
    const std::string whole = Summary({3, 2}, kWide + variant)["digest"];
    EXPECT_EQ(Summary({3, 2}, kWide + variant + kSplitFinely)["digest"], whole) << variant[0];
  }
  const Overrides pairs = {"parallel.parallel_optimizer_config.optimizer_weight_shard_size=2",
                           "model.dense_optimizer.kind=lamb", "train.clip_norm=0.05"};
  const Overrides lamb = {pairs[1], pairs[2]};
  EXPECT_EQ(Summary({4, 2}, kWide + kSplitFinely + pairs)["digest"],
            Summary({4, 2}, kWide + lamb)["digest"]);
}

// State and bytes that a split optimizer takes: of 4 MiB of parameters, nearly all of them split.
TEST_F(DenseExchangeJobTest, ASplitOptimizerKeepsAndSendsItsShare) {
  const Overrides big = {"parallel.dense_exchange=allreduce", "model.hidden=[1024,1024]",
                         "train.max_steps=3"};
  for (const uint32_t workers : {2, 4}) {
    const nlohmann::json whole = Summary({workers, 1}, big);
    const nlohmann::json split = Summary({workers, 1}, big + kSplit);
    EXPECT_EQ(split["digest"], whole["digest"]);
    const auto of = [](const nlohmann::json& summary, const char* figure) {
      return summary["collectives"][figure].get<double>();
    };
    const double chunk = 4096, row = 2 * chunk + 4;  // Adam's state.
    const double all = of(whole, "optimizer_state_bytes");
    const double small = all - 1024 * 1024 / 1024 * row;  // But for the matrix of 4 MiB.
    EXPECT_LE(of(split, "optimizer_state_bytes"), all / workers + small + row);
    const double parameters = 1024.0 * 1024 * 4;
    const double sent = of(split, "reduce_scatter_bytes") + of(split, "allgather_bytes");
    EXPECT_NEAR(sent / 3, 2.0 * (workers - 1) / workers * parameters, 0.02 * parameters);
    EXPECT_LT(sent + of(split, "allreduce_bytes"), 1.02 * of(whole, "allreduce_bytes"));
    RecordProperty("state_bytes_of_" + std::to_string(workers),
                   std::to_string(of(split, "optimizer_state_bytes")));
  }
}

// A checkpoint of a split optimizer is that of a whole one: it goes on in any other form.
TEST_F(DenseExchangeJobTest, ACheckpointOfASplitOptimizerGoesOnInAnyForm) {
  const Overrides lamb = {"model.dense_optimizer.kind=lamb"};
  const Overrides until_8 = {"train.max_steps=8"};
  const std::string whole = SummaryInto("whole", {3, 2}, kWide + lamb)["digest"];
  const Overrides forms[] = {kSplitFinely, {}, {"parallel.dense_exchange=servers"}};
  int run = 0;
  for (const Overrides& first : forms) {
    for (const Overrides& second : forms) {
      const std::string out = "form" + std::to_string(run++);
      const auto half = SummaryInto(out, {3, 1}, kWide + lamb + first + until_8);
      EXPECT_EQ(half["steps"], 8);
      const auto rest = SummaryInto(out, {3, 2}, kWide + lamb + second);
      EXPECT_EQ(rest["resumed_from"], 8);
      EXPECT_EQ(rest["digest"], whole) << run;
    }
  }
}

// Every worker trains the layers that are its own on its own rows: worker 0's, which a checkpoint
// keeps, are those of a job that has only these rows. Of them nothing is sent.
TEST_F(DenseExchangeJobTest, LayersOfAWorkersOwnAreTrainedOnItsRows) {
  const auto model = [](const char* own) {
    const std::string mark = own[0] == 0 ? "" : std::string(", ") + own;
    return R"(model={"type": "graph", "layers": [{"name": "x", "kind": "numeric"},
        {"name": "d", "inputs": ["x"], "units": 8, "activation": "relu")" +
           mark + R"(}, {"name": "out", "inputs": ["d"], "units": 1)" + mark + "}]}";
  };
  const Overrides always = {"parallel.dense_exchange=allreduce", "data.shuffle_rows=0"};
  const nlohmann::json own = Summary(
      {2, 1}, always + Overrides{"train.batch_size=40", model("\"layerwise_parallel\": true")});
  const nlohmann::json shared =
      Summary({2, 1}, always + Overrides{"train.batch_size=40", model("")});
  EXPECT_NE(own["digest"], shared["digest"]);
  EXPECT_EQ(own["collectives"]["allreduce_bytes"].get<uint64_t>(),
            own["steps"].get<uint64_t>() * 16)
      << "how many examples there are, and whether to pause";
  // Worker 0 has every other row.
  std::istringstream rows(SmallRows(400, 1, Draw));
  std::string even;
  size_t number = 0;
  for (std::string row; std::getline(rows, row); ++number)
    even += number % 2 == 0 ? row + "\n" : "";
  ASSERT_TRUE(WriteFileAtomically(*files_, "train.csv", even).ok());
  EXPECT_EQ(Summary({1, 1}, always + Overrides{"train.batch_size=20", model("")})["digest"],
            own["digest"]);
}

}  // namespace
}  // namespace hdps
