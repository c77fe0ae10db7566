// Tests whole jobs with dense gradients by allreduce: fusion, 16 bits, the split optimizer, a
// worker's own layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "tests/worker/role/small_job.h"

namespace hdps {
namespace {

// Five dense layers, wide weights and biases.
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
  std::map<Overrides, std::string> known;  // Digests by the settings other than the fusion.
  for (uint32_t workers = 2; const Overrides& setting : settings) {
    const Overrides rest(setting.begin() + 1, setting.end());
    workers = rest.empty() ? 3 : 5 - workers;
    const std::string of = std::to_string(workers);
    std::string& digest = known[rest + Overrides{of}];
    if (digest.empty()) digest = Digest(workers, rest);
    EXPECT_EQ(Digest(workers, setting), digest) << of << " workers, " << setting.back();
  }
  EXPECT_EQ(Digest(1, {"parallel.comm_fusion.openstate=false"}), Digest(1, {}));
  // More workers than rows in the last step: those without rows take part in every bucket.
  const Overrides ragged = {"train.batch_size=6", "train.max_steps=70"};
  EXPECT_EQ(Digest(4, ragged + Overrides{"parallel.comm_fusion.openstate=false"}),
            Digest(4, ragged));
}

TEST_F(DenseExchangeJobTest, SixteenBitsAreRoundedAlikeWhateverTheBuckets) {
  const double whole = Summary({3, 1}, kDeep)["train_logloss"];
  std::vector<std::string> digests = {Digest(3, {})};
  for (const char* wire : {"fp32", "bf16"}) {  // With fp32 the gradients can use fp16.
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

// The ranks agree on the scale of each tensor, so it depends neither on the buckets nor on who
// updates it.
TEST_F(DenseExchangeJobTest, ALossScaleIsThatOfATensorWhateverTheBuckets) {
  const Overrides halves = {"parallel.gradient_fp32_sync=false"};
  const std::string plain = Digest(3, halves);
  for (const char* scale : {"train.loss_scale=1024", "train.loss_scale=dynamic"}) {
    const Overrides scaled = halves + Overrides{scale};
    const std::string one = Digest(3, scaled);
    EXPECT_NE(one, plain);
    EXPECT_EQ(Digest(3, scaled + Overrides{"parallel.comm_fusion.openstate=false"}), one);
    EXPECT_EQ(Digest(3, scaled + Overrides{"parallel.enable_parallel_optimizer=true"}), one);
    EXPECT_EQ(Digest(1, scaled), Digest(1, halves));  // Alone a worker sends no gradient.
  }
}

// Returns a figure of a summary; NaN if it is missing.
double Figure(const nlohmann::json& summary, const char* name) {
  const auto told = summary.find("collectives");
  if (told == summary.end() || !told->contains(name)) return std::nan("");
  return (*told)[name].get<double>();
}

// Returns a job with five dense layers and ten tensors, plus `settings`.
Overrides TenTensors(const std::vector<std::string>& settings) {
  std::string text = R"(model={"type": "graph", "tables": [{"name": "t"}], "layers": [
      {"name": "d", "kind": "embedding", "table": "t"})";
  std::string below = "d";
  for (size_t l = 0; l < settings.size(); ++l) {
    const std::string name = "d" + std::to_string(l);
    text += R"(, {"name": ")" + name + R"(", "inputs": [")" + below + R"("], "units": )" +
            (l + 1 < settings.size() ? "8" : "1") + settings[l] + "}";
    below = name;
  }
  return {"parallel.dense_exchange=allreduce", text + "]}", "train.max_steps=5"};
}

TEST_F(DenseExchangeJobTest, CallsAreCountedAsTheBucketsSay) {
  const std::vector<std::string> plain(5);
  const auto calls = [&](const Overrides& job, uint32_t workers = 2) {
    const nlohmann::json summary = Summary({workers, 1}, job);
    EXPECT_EQ(summary["steps"], 5);
    return Figure(summary, "allreduce_calls") / 5;
  };
  EXPECT_EQ(calls(TenTensors(plain)), 1);
  EXPECT_EQ(calls(TenTensors(plain) + Overrides{"parallel.all_reduce_fusion_config=[4,7]"}), 3);
  const Overrides off = {"parallel.comm_fusion.openstate=false"};
  EXPECT_EQ(calls(TenTensors(plain) + off, 3), 10);
  EXPECT_TRUE(std::isnan(calls(TenTensors(plain) + off, 1))) << "one worker sends nothing";
  const auto id = [](int number) { return ", \"fusion\": " + std::to_string(number); };
  EXPECT_EQ(calls(TenTensors({id(1), id(1), id(2)})), 2);
  EXPECT_EQ(calls(TenTensors({id(1), id(0), id(1)})), 3) << "two tensors alone, and the rest";
  EXPECT_EQ(calls(TenTensors({"", id(4), ""})), 2);
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

// Measures state and bytes of a split optimizer, with 4 MiB of parameters, nearly all of them
// split.
TEST_F(DenseExchangeJobTest, ASplitOptimizerKeepsAndSendsItsShare) {
  const Overrides big = {"parallel.dense_exchange=allreduce", "model.hidden=[1024,1024]",
                         "train.max_steps=3"};
  for (const uint32_t workers : {2, 4}) {
    const nlohmann::json whole = Summary({workers, 1}, big);
    const nlohmann::json split = Summary({workers, 1}, big + kSplit);
    EXPECT_EQ(split["digest"], whole["digest"]);
    const double chunk = 4096, row = 2 * chunk + 4;  // Adam's state.
    const double all = Figure(whole, "optimizer_state_bytes");
    const double small = all - 1024 * 1024 / 1024 * row;  // All but the matrix of 4 MiB.
    EXPECT_LE(Figure(split, "optimizer_state_bytes"), all / workers + small + row);
    const double parameters = 1024.0 * 1024 * 4;
    const double sent = Figure(split, "reduce_scatter_bytes") + Figure(split, "allgather_bytes");
    EXPECT_NEAR(sent / 3, 2.0 * (workers - 1) / workers * parameters, 0.02 * parameters);
    EXPECT_LT(sent + Figure(split, "allreduce_bytes"), 1.02 * Figure(whole, "allreduce_bytes"));
    RecordProperty("state_bytes_of_" + std::to_string(workers),
                   std::to_string(Figure(split, "optimizer_state_bytes")));
  }
}

// A checkpoint of a split optimizer equals that of a whole one: it continues in any other form.
TEST_F(DenseExchangeJobTest, ACheckpointOfASplitOptimizerGoesOnInAnyForm) {
  const Overrides lamb = {"model.dense_optimizer.kind=lamb"};
  const Overrides until_8 = {"train.max_steps=8"};
  const std::string whole = SummaryInto("whole", {3, 2}, kWide + lamb)["digest"];
  const Overrides forms[] = {kSplitFinely, {}, kSplit};
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

// Every worker trains its own layers on its own rows, and nothing of them is sent. Worker 0's
// layers, which a checkpoint keeps, are those of a job that has only its rows.
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
  EXPECT_EQ(Figure(own, "allreduce_bytes"), own["steps"].get<double>() * 16)
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

// Some layers by the servers, the others by allreduce; the first and the last layers are in both.
Overrides ServersFor(std::initializer_list<const char*> layers) {
  Overrides all;
  for (const char* layer : layers) {
    all.push_back(std::string("model.layer_settings.") + layer + ".dense_exchange=servers");
  }
  return all;
}

TEST_F(DenseExchangeJobTest, LayersOfServersBesideSummedOnesChangeNoBit) {
  const Overrides mixes[] = {ServersFor({"deep2", "deep4"}),
                             ServersFor({"wide_numeric", "wide_bias", "deep1", "deep_logit"}),
                             ServersFor({"deep3"})};
  const Overrides at_servers = {"parallel.dense_exchange=servers"};
  const Overrides settings[] = {{"train.epochs=2"},
                                {"train.micro_batches=3"},
                                {"train.lookahead=2", "parallel.cross_batch=true"},
                                {"train.clip_norm=0.05", "model.dense_optimizer.kind=lamb"},
                                {"model.batch_norm=true", "train.micro_batches=2"},
                                {"model.vocab_cache_size=9", "train.cache_refresh_steps=3"},
                                {"parallel.interleave_num=2", "model.dense_loss_l2=0.01"},
                                {"train.batch_size=6", "train.max_steps=70"}};
  for (uint32_t n = 0; const Overrides& setting : settings) {
    const uint32_t workers = 1 + n % 4;
    SCOPED_TRACE(setting.back() + ", " + std::to_string(workers) + " workers");
    const nlohmann::json whole = Summary({workers, 2}, kDeep + at_servers + setting);
    const nlohmann::json mixed = Summary({workers, 2}, kDeep + setting + mixes[n++ % 3]);
    EXPECT_EQ(mixed["digest"], whole["digest"]);
    EXPECT_EQ(mixed["eval_logloss"], whole["eval_logloss"]) << "weights of servers are read";
    EXPECT_EQ(mixed["train_logloss"], whole["train_logloss"]);
  }
  // Only what the workers keep has its optimizer's state here, and may be split.
  const Overrides big = {"parallel.dense_exchange=allreduce", "model.hidden=[160,120]",
                         "train.max_steps=6"};
  const nlohmann::json whole = Summary({3, 2}, big);
  const nlohmann::json mixed = Summary({3, 2}, big + ServersFor({"deep1"}) + kSplitFinely);
  EXPECT_EQ(mixed["digest"], whole["digest"]);
  const nlohmann::json few = Summary({3, 2}, big + ServersFor({"deep2"}));
  EXPECT_EQ(few["digest"], whole["digest"]);
  // The matrix [160, 120] and its bias are 19 + 1 chunks; of each Adam has two more, and its step.
  const double apart =
      Figure(whole, "optimizer_state_bytes") - Figure(few, "optimizer_state_bytes");
  EXPECT_EQ(apart, 20 * (2 * 4096.0 + 4));
  EXPECT_LT(Figure(few, "allreduce_bytes"), Figure(whole, "allreduce_bytes") - 6 * 19200 * 4);
}

// Rows and some layers are asynchronous, the others take each step together.
TEST_F(DenseExchangeJobTest, AsyncWorkersShareSomeLayersAndPushOthers) {
  const Overrides mix = ServersFor({"deep2", "deep_logit"});
  for (const char* mode : {"train.mode=async", "train.mode=ssp"}) {
    const Overrides one = {mode, "train.max_steps=15"};
    const Overrides at_servers = {"parallel.dense_exchange=servers"};
    EXPECT_EQ(Summary({1, 2}, kDeep + one + mix)["digest"],
              Summary({1, 2}, kDeep + one + at_servers)["digest"])
        << "one worker waits for nobody";
    const nlohmann::json three = Summary({3, 2}, kDeep + one + mix);
    EXPECT_EQ(three["steps"], 15);
    EXPECT_GT(Figure(three, "allreduce_calls"), 0);
    EXPECT_LT(three["train_logloss"], 0.8);
  }
}

// A checkpoint has all tensors as rows, whoever keeps them. With other layers at the servers the
// job is another one, to go on by --resume=changed (end_to_end.checkpoint).
TEST_F(DenseExchangeJobTest, AJobGoesOnWithTheLayersThatServersKeep) {
  const Overrides some = ServersFor({"deep1", "deep3"}), until = {"train.max_steps=12"};
  const std::string whole = Digest(2, until);
  Summary({2, 2}, kDeep + some + Overrides{"train.max_steps=5"});
  EXPECT_EQ(SummaryInto(out(), {2, 3}, kDeep + some + until)["digest"], whole);
  EXPECT_EQ(SummaryInto(out(), {2, 1}, kDeep + some + until)["digest"], whole);
}

}  // namespace
}  // namespace hdps
