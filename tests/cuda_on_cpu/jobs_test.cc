// Tests whole jobs on the device: the place of dense weights and their updates, the number of
// workers and the exchange of gradients change no bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/telemetry/trace_file.h"
#include "kernels/product_workspace.h"
#include "tests/cuda_on_cpu/stand_in.h"
#include "tests/logged_lines.h"
#include "tests/share.h"
#include "tests/worker/role/small_job.h"
#include "tools/plan/cost_model.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

using cuda_on_cpu::Counters;
using cuda_on_cpu::CountersNow;

const Overrides kAllReduce = {"parallel.dense_exchange=allreduce"};
const Overrides kHostTarget = {"model.dense_target=cpu"};
const Overrides kCpu = {"model.device=cpu"};
const Overrides kKept = {"model.vocab_cache_size=20"};

std::string Rows(uint64_t count, uint64_t seed) {
  const Zipf zipf(60, 1.1);
  return SmallRows(count, seed, [&](Random& random, uint64_t row) {
    const uint64_t a = zipf.Draw(random);
    return std::pair(a, zipf.Draw(random) + (row < count / 2 ? 0 : 40));
  });
}

class JobOnDeviceTest : public SmallJobTest {
 protected:
  JobOnDeviceTest()
      : SmallJobTest({"model.device=cuda", "data.shuffle_rows=0", "train.batch_size=20",
                      "train.cache_refresh_steps=3"},
                     Rows(330, 1), Rows(101, 2)) {}
  ~JobOnDeviceTest() override { cuda_on_cpu::SetMemory(size_t{4} << 30); }

  std::string Digest(const ClusterSize& cluster, const Overrides& overrides) {
    return Summary(cluster, overrides)["digest"];
  }
};

TEST_F(JobOnDeviceTest, WhereDenseWeightsAreUpdatedChangesNoBit) {
  std::vector<Overrides> variants = {
      {},
      {"train.micro_batches=3"},
      {"parallel.cross_batch=true"},
      {"model.batch_norm=true"},
      {"train.clip_value=0.01", "model.deep_loss_l2=0.01"},
      {"train.schedule={\"kind\": \"step\", \"decay_steps\": 5, \"decay\": 0.5}"},
      {"train.batch_size=47"},
  };
  for (const OptimizerRecord& optimizer : kOptimizers) {
    if (optimizer.whole_tensors) continue;
    variants.push_back({std::string("model.deep_optimizer.kind=") + optimizer.name});
  }
  for (const Overrides& variant : ThirdOf(variants, "settings and optimizers")) {
    SCOPED_TRACE(variant.empty() ? "plain" : variant[0]);
    const std::string at_servers = Digest({1, 2}, variant);
    EXPECT_EQ(Digest({1, 2}, variant + kAllReduce), at_servers);
    EXPECT_EQ(Digest({1, 1}, variant + kAllReduce + kHostTarget), at_servers);
  }
}

// Layers whose weights the device, the host and the servers update, in one job.
TEST_F(JobOnDeviceTest, EachLayerMayBeUpdatedElsewhere) {
  const auto of = [](const char* layer, const char* setting) {
    return Overrides{std::string("model.layer_settings.") + layer + "." + setting};
  };
  const Overrides host = of("deep1", "dense_target=cpu") + of("wide_bias", "dense_target=cpu");
  const Overrides device = kHostTarget + of("deep2", "dense_target=cuda");
  const Overrides servers = of("deep_logit", "dense_exchange=servers");
  const std::vector<Overrides> variants = {
      {},
      {"train.micro_batches=3", "train.epochs=2"},
      {"model.batch_norm=true", "parallel.comm_fusion.openstate=false"},
      {"train.lookahead=1", "model.deep_optimizer.kind=adagrad"}};
  const Overrides ways[] = {host, device, servers, host + servers, device + servers};
  for (const Overrides& variant : ThirdOf(variants, "settings")) {
    SCOPED_TRACE(variant.empty() ? "plain" : variant[0]);
    const auto whole = Summary({1, 2}, variant);
    for (const Overrides& way : ways) {
      const auto one = Summary({1, 2}, variant + kAllReduce + way);
      EXPECT_EQ(one["digest"], whole["digest"]) << way.back();
      EXPECT_EQ(one["eval_logloss"], whole["eval_logloss"]) << way.back();
    }
  }
  const std::string two = Digest({2, 2}, {});
  for (const Overrides& way : ways) EXPECT_EQ(Digest({2, 2}, kAllReduce + way), two) << way.back();
}

// Returns the two numbers of the last line that tells where the optimizer's state is.
std::pair<double, double> StateBytes(const std::string& log) {
  double host = -1, device = -1;
  const size_t at = log.rfind("optimizer state kept here: ");
  if (at != std::string::npos) {
    std::sscanf(log.c_str() + at,
                "optimizer state kept here: %lf bytes in the host's memory, %lf on the GPU", &host,
                &device);
  }
  return {host, device};
}

TEST_F(JobOnDeviceTest, TheStateOfAnOptimizerIsWhereItsLayerIsUpdated) {
  const auto state = [this](const Overrides& way) {
    const LoggedLines log;
    const int before = std::exchange(FLAGS_minloglevel, google::GLOG_INFO);
    Summary({1, 1}, kAllReduce + way);
    FLAGS_minloglevel = before;
    return StateBytes(log.text());
  };
  const auto all_there = state({}), all_here = state(kHostTarget);
  EXPECT_EQ(all_there.first, 0);
  EXPECT_GT(all_there.second, 0);
  EXPECT_EQ(all_here, std::pair(all_there.second, all_there.first));
  const auto apart = state({"model.layer_settings.deep1.dense_target=cpu"});
  EXPECT_GT(apart.first, 0);
  EXPECT_GT(apart.second, 0);
  EXPECT_EQ(apart.first + apart.second, all_there.second);
  const auto left = state({"model.layer_settings.deep1.dense_exchange=servers"});
  EXPECT_EQ(left, std::pair(0.0, apart.second)) << "a server has it then";
}

TEST_F(JobOnDeviceTest, WorkersAndTheWayBetweenThemChangeNoBit) {
  for (const uint32_t workers : {2u, 3u}) {
    const std::string parts = "train.micro_batches=" + std::to_string(workers);
    const std::string one = Digest({1, 1}, kAllReduce + Overrides{parts});
    for (const char* collective : {"gloo", "nccl", "auto"}) {
      const Overrides way = {std::string("parallel.collective=") + collective};
      EXPECT_EQ(Digest({workers, 2}, kAllReduce + way), one) << workers << " by " << collective;
      EXPECT_EQ(Digest({workers, 1}, kAllReduce + kHostTarget + way), one) << collective;
    }
    EXPECT_EQ(Digest({workers, 1}, {}), one);
    const Overrides buckets = {"parallel.comm_fusion.openstate=false"};
    EXPECT_EQ(Digest({workers, 1}, kAllReduce + buckets), one);
  }
}

// The stand-ins add from the last rank to the first, and halves with a rounding each.
TEST_F(JobOnDeviceTest, TheLibrarysOwnSumsDifferByTheirRounding) {
  const Overrides library = {"parallel.reduction=library"};
  const Overrides level2 = {"parallel.enable_parallel_optimizer=true",
                            "parallel.parallel_optimizer_config={\"optimizer_level\": \"level2\", "
                            "\"parallel_optimizer_threshold\": 0}"};
  const Overrides halves = {"parallel.gradient_fp32_sync=false"};
  const std::vector<Overrides> variants = {{}, level2, halves, kKept};
  for (const Overrides& variant : ThirdOf(variants, "settings")) {
    SCOPED_TRACE(variant.empty() ? "plain" : variant[0]);
    for (const char* collective : {"gloo", "nccl"}) {
      const Overrides way =
          kAllReduce + variant + Overrides{std::string("parallel.collective=") + collective};
      const auto ordered = Summary({3, 1}, way), own = Summary({3, 1}, way + library);
      // Gloo's own reduce-scatter is not used.
      const bool same = variant == level2 && std::string(collective) == "gloo";
      EXPECT_EQ(own["digest"] == ordered["digest"], same) << collective;
      const double apart = double{own["train_logloss"]} - double{ordered["train_logloss"]};
      std::printf("figure: %s, %s: the loss is apart by %.3g\n", collective,
                  variant.empty() ? "plain" : variant[0].c_str(), apart);
      EXPECT_LE(std::fabs(apart), variant == halves ? 1e-3 : 1e-6) << collective;
    }
  }
}

TEST_F(JobOnDeviceTest, TwoWorkersOnOneGpuAreRefusedByNameUnderNccl) {
  // There are four devices.
  const std::string message = Refusal({5, 1}, kAllReduce + Overrides{"parallel.collective=nccl"});
  EXPECT_NE(message.find("share the GPU"), std::string::npos) << message;
  EXPECT_NE(message.find("--gpu"), std::string::npos) << message;
}

TEST_F(JobOnDeviceTest, RowsKeptOnTheDeviceChangeNothing) {
  for (const uint32_t workers : {1u, 2u}) {
    const auto off = Summary({workers, 2}, kAllReduce);
    const auto on = Summary({workers, 2}, kAllReduce + kKept);
    EXPECT_EQ(on["digest"], off["digest"]) << workers;
    EXPECT_GT(on["cache"]["hit_rate"], 0.3);
    std::printf("figure: %u workers keep rows on their devices: hit rate %.3f, %.0f bytes\n",
                workers, double{on["cache"]["hit_rate"]}, double{on["cache"]["bytes"]});
    EXPECT_EQ(Digest({workers, 1}, kKept), off["digest"]);
  }
}

TEST_F(JobOnDeviceTest, NorDoTheyWithWhatElseBecomesOfTheirGradients) {
  const Overrides penalties = {"model.deep_loss_l2=0.01", "model.wide_loss_l1=0.001"};
  const std::vector<Overrides> variants = {
      penalties,
      {"train.clip_value=0.01"},
      penalties + Overrides{"train.clip_norm=0.05", "train.clip_value=0.01"},
      {"parallel.cross_batch=true", "model.deep_loss_l2=0.01"},
      {"train.micro_batches=3"},
      {"train.micro_batches=2", "parallel.interleave_num=2", "train.clip_value=0.01"},
  };
  bool nccl = false;
  for (const Overrides& variant : ThirdOf(variants, "settings")) {
    SCOPED_TRACE(variant[0]);
    EXPECT_EQ(Digest({1, 2}, variant + kKept), Digest({1, 1}, variant));
    nccl = !nccl;
    const Overrides way = {std::string("parallel.collective=") + (nccl ? "nccl" : "gloo")};
    EXPECT_EQ(Digest({2, 1}, variant + kKept + way), Digest({2, 2}, variant)) << way[0];
  }
}

// --trace shows the device beside the host, for the requested number of steps or all; the
// computation stays the same.
TEST_F(JobOnDeviceTest, ATraceShowsCopiesAndComputing) {
  const std::string untraced = Digest({1, 1}, kKept);
  for (const Overrides& size : {Overrides{}, Overrides{"train.max_steps=2"}}) {
    RunTrace trace;
    TraceInto(&trace);
    const std::string digest = Digest({1, 1}, kKept + size);
    if (size.empty()) {
      EXPECT_EQ(digest, untraced);
    }
    std::map<std::string, int> spans;
    const nlohmann::json told = nlohmann::json::parse(trace.Json());
    for (const auto& event : told["traceEvents"]) {
      if (event["ph"] != "X") continue;
      EXPECT_GE(event["dur"], 0);
      ++spans[event["name"]];
    }
    const int steps = spans["forward and backward"];
    EXPECT_EQ(steps, size.empty() ? kTracedSteps : 2);
    EXPECT_GE(spans["copy up"], steps);
    EXPECT_GE(spans["copy down"], steps);
    EXPECT_GE(spans["compute"], steps);
    RunTrace on_host;
    TraceInto(&on_host);
    Summary({1, 1}, size + kCpu);
    EXPECT_EQ(on_host.Json().find("device, "), std::string::npos);
    TraceInto(nullptr);
  }
}

TEST_F(JobOnDeviceTest, ARunMayStopAndGoOnOnTheOtherSide) {
  const std::string straight = Digest({1, 1}, kAllReduce);
  SummaryInto("stopped", {1, 1}, kAllReduce + Overrides{"train.max_steps=9"});
  const auto resumed = SummaryInto("stopped", {1, 2}, kAllReduce + kHostTarget);
  EXPECT_EQ(resumed["resumed_from"], 9);
  EXPECT_EQ(resumed["digest"], straight);
}

// If all dense weights are on the device, a worker starts a step as two graphs: forward and
// backward; and the gradients of the first layers, while those of rows travel. The update is
// started separately, and so is the rest of a step whose memory grows.
TEST_F(JobOnDeviceTest, AStepIsHandedOverAsGraphs) {
  const auto run = [&](int steps) {
    const Counters before = CountersNow();
    Summary({1, 1},
            kAllReduce + Overrides{"train.epochs=4", "train.max_steps=" + std::to_string(steps)});
    const Counters after = CountersNow();
    Counters of;
    of.kernels = after.kernels + after.products - before.kernels - before.products;
    of.in_graphs = after.in_graphs - before.in_graphs;
    of.graph_launches = after.graph_launches - before.graph_launches;
    of.graphs_built = after.graphs_built - before.graphs_built;
    return of;
  };
  const Counters few = run(8), many = run(14);  // An epoch has 17 steps.
  const uint64_t kernels = many.kernels - few.kernels, in_graphs = many.in_graphs - few.in_graphs;
  std::printf(
      "a step: %.1f kernels and products, %.1f of them in %.1f graphs; %lu graphs built in 14 "
      "steps\n",
      double(kernels) / 6, double(in_graphs) / 6,
      double(many.graph_launches - few.graph_launches) / 6, many.graphs_built);
  EXPECT_LE(many.graph_launches - few.graph_launches, 2u * 6);
  EXPECT_GE(in_graphs * 5, kernels * 4);
  EXPECT_LE(many.graphs_built, 4u);
}

// The device holds what a step needs, whatever the number of keys: ten times as many change its
// memory by less than 1 %, and a table many times larger than all it ever held is trained.
TEST_F(JobOnDeviceTest, TheDevicesMemoryDoesNotDependOnTheVocabulary) {
  const Overrides wide =
      kAllReduce + Overrides{"model.embedding_dim=64", "train.batch_size=200", "train.epochs=1"};
  const auto peak_of = [&](uint64_t keys) {
    // Each row has its own keys, until all have been seen.
    const auto draw = [keys](Random&, uint64_t row) {
      return std::pair(row % keys, 2 * (row % keys) + 1);
    };
    EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", SmallRows(20000, 3, draw)).ok());
    const uint64_t before = cuda_on_cpu::CountersNow().bytes_in_use;
    cuda_on_cpu::ForgetPeak();
    const auto summary = Summary({1, 1}, wide);
    EXPECT_GE(summary["rows"], 2 * keys);
    return double(cuda_on_cpu::CountersNow().bytes_peak - before);
  };
  const double few = peak_of(2000), many = peak_of(20000);
  EXPECT_NEAR(many / few, 1.0, 0.01);
  const double table = 2.0 * 20000 * 64 * 4 * 3;  // Weights and the two moments of Adam.
  cuda_on_cpu::SetMemory(static_cast<size_t>(table / 4));
  EXPECT_EQ(peak_of(20000), many) << "a quarter of the table's bytes are enough";
  std::printf(
      "the device held at most %.0f bytes with 4,000 keys and %.0f with 40,000, whose rows "
      "are %.0f bytes\n",
      few, many, table);
}

// `hdps plan` predicts a worker's memory on its GPU: not less than it uses, and, besides the memory
// of the product library, of which the emulation uses almost none, not twice as much.
TEST_F(JobOnDeviceTest, ThePlanKnowsTheDevicesMemory) {
  const auto draw = [](Random&, uint64_t row) { return std::pair(row % 2000, 2 * (row % 2000)); };
  ASSERT_TRUE(WriteFileAtomically(*files_, "train.csv", SmallRows(20000, 3, draw)).ok());
  for (const Overrides& way :
       {kAllReduce, Overrides{}, kAllReduce + Overrides{"model.hidden=[128,64]"},
        kAllReduce + Overrides{"model.vocab_cache_size=100"},
        kAllReduce + Overrides{"model.vocab_cache_size=1000"},
        kAllReduce + Overrides{"model.deep_optimizer.kind=adam", "model.embedding_dim=16"},
        Overrides{"train.batch_size=1000", "train.micro_batches=2"}}) {
    SCOPED_TRACE(way.empty() ? "plain" : way.back());
    const Overrides set = Overrides{"model.device=cuda", "model.embedding_dim=64",
                                    "train.batch_size=200", "train.epochs=1"} +
                          way;
    const uint64_t before = cuda_on_cpu::CountersNow().bytes_in_use;
    cuda_on_cpu::ForgetPeak();
    Summary({1, 1}, set);
    const auto held = double(cuda_on_cpu::CountersNow().bytes_peak - before);

    const auto job = LoadJob(*files_, "job.json", set);
    ASSERT_TRUE(job.ok());
    PlanQuestion question;
    question.shape = *ShapeOf(*job);
    question.batch = job->train.batch_size;
    question.micro_batches = job->train.micro_batches;
    question.allreduce = job->parallel.dense_exchange == DenseExchange::kAllreduce;
    question.rows = 4000;
    question.unique_share = 1;
    const double planned =
        Plan(question, MachineConstants()).device_bytes - double(kProductWorkspaceBytes);
    std::printf("planned %.0f bytes, held %.0f: %.2f\n", planned, held, planned / held);
    EXPECT_GE(planned, held);
    EXPECT_LT(planned, 2 * held);
  }
}

TEST_F(JobOnDeviceTest, WhatDoesNotFitEndsWithTheMend) {
  const uint64_t before = cuda_on_cpu::CountersNow().bytes_in_use;
  cuda_on_cpu::ForgetPeak();
  Summary({1, 1}, kAllReduce);
  const uint64_t needed = cuda_on_cpu::CountersNow().bytes_peak - before;
  for (const Overrides& way : {kAllReduce, kAllReduce + kKept, Overrides{}}) {
    for (uint64_t sixteenths = 1; sixteenths < 15; sixteenths += 4) {
      cuda_on_cpu::SetMemory(before + needed * sixteenths / 16);
      const ProcessEnd end = RunJob({1, 1}, way);
      if (end.status == kExitDone) continue;  // Conversions other than the first may need less.
      EXPECT_EQ(end.status, kExitFailed);
      EXPECT_NE(end.reason.find("the GPU's memory is full"), std::string::npos) << end.reason;
      EXPECT_NE(end.reason.find("train.batch_size"), std::string::npos) << end.reason;
    }
  }
  EXPECT_EQ(cuda_on_cpu::CountersNow().bytes_in_use, before) << "all of it was given back";
}

TEST_F(JobOnDeviceTest, ShorterFactorsLearnTheSame) {
  const auto whole = Summary({1, 1}, kAllReduce);
  for (const char* precision : {"tf32", "bf16"}) {
    const Overrides rounded = {std::string("model.precision=") + precision};
    const auto summary = Summary({1, 1}, kAllReduce + rounded);
    EXPECT_NE(summary["digest"], whole["digest"]) << precision;
    // The same on every machine, so this allows only the requested rounding.
    const double apart = double{summary["eval_logloss"]} - double{whole["eval_logloss"]};
    std::printf("%s: evaluation logloss differs by %.1e\n", precision, apart);
    EXPECT_LT(std::fabs(apart), 1e-3);
    EXPECT_EQ(Digest({1, 2}, rounded), summary["digest"]) << "dense weights at the servers";
  }
}

// Products are summed in another order than on the host.
TEST_F(JobOnDeviceTest, TheHostLearnsTheSame) {
  const Overrides steps = {"train.max_steps=50", "train.epochs=4"};
  const auto host = Summary({1, 1}, kCpu + steps);
  for (const Overrides& way : {Overrides{}, kAllReduce}) {
    const auto device = Summary({1, 1}, way + steps);
    const double wanted = host["train_logloss"];
    EXPECT_NEAR(device["train_logloss"], wanted, 1e-5 * std::fabs(wanted));
    const double wanted_eval = host["eval_logloss"];
    EXPECT_NEAR(device["eval_logloss"], wanted_eval, 1e-5 * std::fabs(wanted_eval));
    std::printf("logloss after 50 steps, device over host - 1: %.1e train, %.1e eval\n",
                double{device["train_logloss"]} / wanted - 1,
                double{device["eval_logloss"]} / wanted_eval - 1);
  }
}

}  // namespace
}  // namespace hdps
