// Tests an optimizer that a program adds itself: job files know it, and it gives the bits of the
// library's version of the same rule.
#include "embedding/own_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/platform/random.h"
#include "embedding/memory/optimizer.h"
#include "embedding/table.h"

namespace hdps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kJob[] = R"({
  "name": "own",
  "data": {"train": ["a.csv"], "columns": [{"name": "y", "type": "label"}, {"name": "c"}]},
  "model": {"type": "graph", "layers": [
    {"name": "e", "kind": "embedding", "table": "t"},
    {"name": "logit", "inputs": ["e"], "units": 1}],
    "tables": [{"name": "t", "dim": 4, "optimizer": {"kind": "soft_sign", "softness": 0.25}}],
    "dense_optimizer": {"kind": "soft_sign"}}
})";

// Momentum whose step has the sign of the mean gradient, and its size only if that is small.
struct SoftSign : OptimizerRule {
  static constexpr char kName[] = "soft_sign";
  static constexpr char kFormula[] =
      "m = momentum m + (1 - momentum) g; w -= lr m / (|m| + softness)";
  static constexpr char kPaper[] = "none";
  static constexpr OptimizerSetting kSoftness = {
      "softness", &OptimizerSettings::own_a, 1e-30, 1e6, "Half a step where |m| is this.", 0.5f};
  static constexpr OptimizerSetting kSettings[] = {optimizers::kLearningRate.WithDefault(0.001f),
                                                   optimizers::kMomentum, kSoftness};
  static constexpr size_t kStateArrays = 1;

  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w, float& m) {
    m = s.momentum * m + (1 - s.momentum) * g;
    w -= s.learning_rate * m / (__builtin_fabsf(m) + s.own_a);
  }
};

// Rules of the library under other names: one for each feature of a row update, and one for whole
// tensors.
struct OwnMomentum : optimizers::Momentum {
  static constexpr char kName[] = "own_momentum";
};
struct OwnLazyAdam : optimizers::LazyAdam {
  static constexpr char kName[] = "own_lazy_adam";
  static constexpr bool kLoopsKnowDims = false;
};
struct OwnAdam : optimizers::Adam {
  static constexpr char kName[] = "own_adam";
};
struct OwnRowwiseAdagrad : optimizers::RowwiseAdagrad {
  static constexpr char kName[] = "own_rowwise_adagrad";
  static constexpr bool kLoopsKnowDims = false;
};
struct OwnLamb : optimizers::Lamb {
  static constexpr char kName[] = "own_lamb";
};

struct Twin {
  OptimizerKind built_in;
  const OptimizerRecord* own;
};
const Twin kTwins[] = {{OptimizerKind::kMomentum, OwnOptimizer<OwnMomentum>()},
                       {OptimizerKind::kLazyAdam, OwnOptimizer<OwnLazyAdam>()},
                       {OptimizerKind::kAdam, OwnOptimizer<OwnAdam>()},
                       {OptimizerKind::kRowwiseAdagrad, OwnOptimizer<OwnRowwiseAdagrad>()}};

JobRegistry WithSoftSign() {
  JobRegistry registry = BuiltInRegistry();
  EXPECT_TRUE(registry.optimizers.Add(OwnOptimizer<SoftSign>()).ok());
  return registry;
}

std::vector<float> RandomFloats(Random& random, size_t n) {
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Unit()) - 0.5f;
  return values;
}

// Hashes all rows and their state after a few steps.
uint64_t TableBits(const OptimizerSpec& optimizer, WeightFormat format, uint32_t dim) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = dim;
  spec.weights = format;
  spec.optimizer = optimizer;
  TableSlice slice(spec, TableId{3}, 5);
  Random random(dim);
  for (int64_t step = 1; step <= 6; ++step) {
    std::vector<Key> keys;
    for (Key key = 0; key < 40; ++key) {
      if (random.Below(3) > 0) keys.push_back(MixBits(key));
    }
    const std::vector<float> gradients = RandomFloats(random, keys.size() * dim);
    const TableSlice::Gradients part{keys, gradients, 0.3f};
    slice.Apply({&part, 1}, 0.7f, step);
  }
  return slice.Digest()->sum[0];
}

TEST(OptimizerOwn, ChangesRowsOfServersAsTheLibraryDoes) {
  for (const Twin& twin : kTwins) {
    for (const WeightFormat format :
         {WeightFormat::kFp32, WeightFormat::kFp16, WeightFormat::kBf16}) {
      for (const uint32_t dim : {1u, 7u, 64u}) {
        SCOPED_TRACE(testing::Message() << twin.own->name << " " << WordOf(format) << " " << dim);
        EXPECT_EQ(TableBits(DefaultsOf(*twin.own), format, dim),
                  TableBits(DefaultsOf(twin.built_in), format, dim));
      }
    }
  }
}

// Returns the rows of a slab after a few steps.
std::vector<float> SlabAfterUpdates(const OptimizerSpec& optimizer, uint32_t dim) {
  constexpr uint32_t kRows = 30;
  const uint32_t state = StateFloats(optimizer, dim);
  Random random(dim);
  std::vector<float> rows = RandomFloats(random, kRows * (dim + state));
  const RowSlab slab{rows.data(), dim, state};
  std::vector<uint32_t> slots(kRows);
  for (uint32_t s = 0; s < kRows; ++s) {
    InitState(optimizer, dim, {slab.Row(s) + dim, state});
    slots[s] = s % 5 == 0 ? kNotInSlab : s;
  }
  for (int64_t step = 1; step <= 5; ++step) {
    const std::vector<float> gradients = RandomFloats(random, kRows * dim);
    EXPECT_TRUE(
        UpdateSlabRows({optimizer, step, 0.3f, 0.7f}, slots, gradients.data(), 0, kRows, slab));
  }
  return rows;
}

TEST(OptimizerOwn, ChangesRowsOfWorkersAsTheLibraryDoes) {
  for (const Twin& twin : kTwins) {
    for (const uint32_t dim : {1u, 7u, 64u}) {
      SCOPED_TRACE(testing::Message() << twin.own->name << " " << dim);
      EXPECT_EQ(SlabAfterUpdates(DefaultsOf(*twin.own), dim),
                SlabAfterUpdates(DefaultsOf(twin.built_in), dim));
    }
  }
}

TEST(OptimizerOwn, ChangesWholeTensorsAsTheLibraryDoes) {
  const OptimizerSpec own = DefaultsOf(*OwnOptimizer<OwnLamb>());
  EXPECT_EQ(TableBits(own, WeightFormat::kFp32, 16),
            TableBits(DefaultsOf(OptimizerKind::kLamb), WeightFormat::kFp32, 16));
}

TEST(OptimizerOwn, FollowsItsFormula) {
  OptimizerSpec spec = DefaultsOf(*OwnOptimizer<SoftSign>());
  spec.learning_rate = 0.25f;
  spec.momentum = 0.5f;
  std::vector<float> w = {1}, g = {1}, m(StateFloats(spec, 1));
  InitState(spec, 1, m);
  UpdateRow(spec, 1, g, w, m);  // m = 1/2, half a step.
  EXPECT_EQ(m[0], 0.5f);
  EXPECT_EQ(w[0], 0.875f);
}

TEST(OptimizerOwn, IsAWordOfItsProgramsJobs) {
  const JobRegistry registry = WithSoftSign();
  const Result<Job> job = ParseJob(kJob, "own.json", {}, registry);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_TRUE(job->warnings.empty());
  OptimizerSpec expected = DefaultsOf(*OwnOptimizer<SoftSign>());
  EXPECT_EQ(job->tables[1].optimizer, expected);
  EXPECT_EQ(expected.learning_rate, 0.001f);
  expected.own_a = 0.25f;
  EXPECT_EQ(job->tables[0].optimizer, expected);

  const std::string printed = PrintJob(*job);
  EXPECT_THAT(printed, HasSubstr("\"softness\": 0.25"));
  const Result<Job> again = ParseJob(printed, "own.json", {}, registry);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->tables[0].optimizer, expected);
  EXPECT_EQ(JobDigest(*again), JobDigest(*job));
  EXPECT_EQ(TablesDigest(*again), TablesDigest(*job));

  const std::string place = "model.tables.0.optimizer.";
  const Result<Job> other = ParseJob(kJob, "own.json", {place + "softness=0.5"}, registry);
  EXPECT_NE(TablesDigest(*other), TablesDigest(*job));
  const auto refusal = [&](const std::string& text) {
    return ParseJob(kJob, "own.json", {text}, registry).status().message();
  };
  EXPECT_THAT(refusal(place + "softness=0"), HasSubstr(place + "softness: 0 is not a number"));
  EXPECT_THAT(refusal(place + "kind=soft_sine"), HasSubstr("did you mean \"soft_sign\"?"));
  const Result<Job> sgd = ParseJob(kJob, "own.json", {place + "kind=sgd"}, registry);
  ASSERT_TRUE(sgd.ok()) << sgd.status().message();
  EXPECT_THAT(sgd->warnings, ElementsAre(AllOf(HasSubstr(place + "softness is ignored"),
                                               HasSubstr("kind is soft_sign"))));
}

TEST(OptimizerOwn, AnotherProgramDoesNotKnowIt) {
  const Result<Job> job = ParseJob(kJob, "own.json", {});
  EXPECT_EQ(job.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(job.status().message(),
              AllOf(HasSubstr("model.tables.0.optimizer"), HasSubstr("sgd, momentum, adagrad")));
}

// An added rule changes no job that does not use it: the checkpoints are the same.
TEST(OptimizerOwn, JobsWithoutItStayAsTheyAre) {
  const std::vector<std::string> built_in = {"model.tables.0.optimizer={\"kind\":\"adam\"}",
                                             "model.dense_optimizer={\"kind\":\"ftrl\"}"};
  const Result<Job> mine = ParseJob(kJob, "own.json", built_in, WithSoftSign());
  const Result<Job> theirs = ParseJob(kJob, "own.json", built_in);
  ASSERT_TRUE(mine.ok() && theirs.ok());
  EXPECT_EQ(PrintJob(*mine), PrintJob(*theirs));
  EXPECT_EQ(JobDigest(*mine), JobDigest(*theirs));
  EXPECT_THAT(PrintJob(*mine), Not(HasSubstr("soft")));
}

TEST(OptimizerOwn, RowsOnAGpuAreRefused) {
  const JobRegistry registry = WithSoftSign();
  const auto with = [&registry](std::vector<std::string> overrides) {
    return ParseJob(kJob, "own.json", overrides, registry);
  };
  const std::string kept = "model.tables.0.vocab_cache_size=10", cuda = "model.device=cuda";
  EXPECT_THAT(with({kept, cuda}).status().message(),
              AllOf(HasSubstr("model.device"), HasSubstr("\"t\""), HasSubstr("soft_sign"),
                    HasSubstr("set model.device = cpu, or leave vocab_cache_size out")));
  EXPECT_TRUE(with({cuda}).ok()) << "rows of servers and dense weights are updated on the host";
  const Result<Job> either = with({kept});
  ASSERT_TRUE(either.ok()) << either.status().message();
  EXPECT_THAT(WhyNotOnCuda(*either), HasSubstr("soft_sign")) << "told by a worker with a GPU";
  EXPECT_EQ(WhyNotOnCuda(*with({kept, "model.tables.0.optimizer.kind=sgd"})), "");
}

TEST(OptimizerOwn, WholeTensorsAreForDenseWeights) {
  JobRegistry registry = WithSoftSign();
  ASSERT_TRUE(registry.optimizers.Add(OwnOptimizer<OwnLamb>()).ok());
  const Result<Job> dense =
      ParseJob(kJob, "own.json", {"model.dense_optimizer.kind=own_lamb"}, registry);
  ASSERT_TRUE(dense.ok()) << dense.status().message();
  EXPECT_EQ(dense->tables.back().shard_by, ShardBy::kGroup);
  EXPECT_THAT(ParseJob(kJob, "own.json", {"model.tables.0.optimizer.kind=own_lamb"}, registry)
                  .status()
                  .message(),
              HasSubstr("own_lamb needs whole tensors"));
}

OptimizerRecord WithSetting(const OptimizerSetting& setting) {
  OptimizerRecord record = *OwnOptimizer<OwnMomentum>();
  record.settings = {&setting, 1};
  return record;
}

TEST(OptimizerOwn, MistakenRecordsAreRefused) {
  OptimizerRegistry registry = WithSoftSign().optimizers;
  const auto refusal = [&registry](const OptimizerRecord& record) {
    return registry.Add(&record).message();
  };
  EXPECT_THAT(refusal(*OwnOptimizer<SoftSign>()), HasSubstr("all different"));
  EXPECT_THAT(refusal(RecordOf(OptimizerKind::kSgd)), HasSubstr("all different"));
  OptimizerRecord record = *OwnOptimizer<OwnMomentum>();
  record.loops = nullptr;
  EXPECT_THAT(refusal(record), HasSubstr("OwnOptimizer<Rule>()"));
  const auto with = [&](const OptimizerSetting& setting) { return refusal(WithSetting(setting)); };
  constexpr auto kFree = &OptimizerSettings::own_b;
  EXPECT_THAT(with({"kind", kFree, 0, 1, "", 0}), HasSubstr("\"kind\" cannot name a setting"));
  EXPECT_THAT(with({"size", kFree, 0, 1, "", 2}), HasSubstr("not in its range"));
  EXPECT_THAT(with({"momentum", &OptimizerSettings::momentum, 0, 2}),
              AllOf(HasSubstr("another range"), HasSubstr("\"momentum\"")));
  EXPECT_THAT(with({"softness", kFree, 1e-30, 1e6, "", 0.5f}),
              AllOf(HasSubstr("another range or value in \"soft_sign\""), HasSubstr("own_a")));
  EXPECT_THAT(with({"size", &OptimizerSettings::beta1, 0, 1}), HasSubstr("the value of \"beta1\""));
  const OptimizerSetting twice[] = {{"size", kFree, 0, 1, "", 0}, {"length", kFree, 0, 1, "", 0}};
  record = *OwnOptimizer<OwnMomentum>();
  record.settings = twice;
  EXPECT_THAT(refusal(record), AllOf(HasSubstr("\"size\""), HasSubstr("\"length\"")));
  EXPECT_EQ(registry.records().size(), std::size(kOptimizers) + 1) << "none of them was added";
}

}  // namespace
}  // namespace hdps
