// Tests digests of jobs against fixed values, because checkpoints contain them and no version may
// change them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/table_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

struct KnownDigests {
  const char* example;  // Empty: kShort of job_samples.h.
  std::vector<std::string> overrides;
  uint64_t job, tables;
};

const KnownDigests kKnown[] = {
    {"census/census", {}, 0x6626e6985cb281df, 0x62e35c79ce4bdf98},
    {"criteo_synthetic", {}, 0x1d9aed2a438b14fe, 0x2bf8303848b21f00},
    {"deepfm", {}, 0x96a0e9ec5f412caa, 0xe5aa3bd6050ad9f2},
    {"dcn_v2", {}, 0xdf3dfff6d416227e, 0x87208d14ddabdf2c},
    {"dlrm", {}, 0x67a5fc0f65449120, 0xb13fc3d283cfc59e},
    {"logistic",
     {R"(model.wide_optimizer={"kind":"ftrl","learning_rate":0.5,"initial_accumulator":0.1})",
      "model.dense_optimizer.learning_rate=0.003"},
     0xc7833456a4ec604a,
     0x50884276e0811180},
    {"mlp", {}, 0x123f8d4244a2f220, 0x952a9a65c4f0214b},
    {"", {"parallel.gradients_mean=false"}, 0x455049cbb692b2ec, 0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "train.mode=async", "train.lookahead=2"},
     0xde551955f5392f9b,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "train.mode=async"},
     0x9bfcec16fee184f0,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "train.mode=ssp", "train.staleness_bound=4"},
     0x940c7bb86af2fde5,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "train.lookahead=3"},
     0x455049cbb692b2ec,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "train.lookahead=0"},
     0x455049cbb692b2ec,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "model.policy.admit_after=2", "model.policy.max_bytes=1GiB",
      "model.policy.evict_by=norm"},
     0x1f83e30ddb94862e,
     0xad2dddee818911c6},
    {"",
     {"parallel.gradients_mean=false", "model.weights=bf16", "parallel.wire=fp16"},
     0xbcc7fb1087025e4f,
     0x493bddcd11c80477},
    {"",
     {"parallel.device_num=4", "parallel.gradients_mean=true", "parallel.cross_batch=true"},
     0x7d642e8d8547670c,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "parallel.full_batch=true",
      "parallel.dense_exchange=allreduce", "parallel.collective=gloo"},
     0x93ecf539e0c02cb7,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "cluster.shards=64", "cluster.request_retry_ms=100",
      "cluster.memory_limit=4GiB", "cluster.spill_path=/x"},
     0xc9eabe468151a6cb,
     0x6a0cf772f1b6f583},
    {"",
     {"parallel.gradients_mean=false", "data.columns.1.transform=standardize",
      "data.columns.1.mean=0.5", "data.columns.1.scale=3", "data.columns.4.repeat=3"},
     0xe9024fdf92bc20b7,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "data.columns.4.type=multi", "data.columns.4.separator=;",
      R"(data.columns.0.positive=["yes"])", "data.missing=?"},
     0x64b27528fcd7a9ea,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false",
      R"(model.deep_optimizer={"kind":"adamw","learning_rate":0.1,"weight_decay":0.25})",
      "model.dense_optimizer.kind=lamb"},
     0x3b51e163a1c29128,
     0x0c4b1e327ffcd074},
    {"",
     {"parallel.gradients_mean=false", R"(model.deep_optimizer={"kind":"momentum","l1":3})",
      "model.wide_optimizer.l2=0.125"},
     0x0203f9cbc7478cb5,
     0x8e0e361836c9e931},
    {"",
     {"parallel.gradients_mean=false", "model.embedding_init.scale=0.5",
      R"(model.wide_init={"kind":"constant","scale":0.25})"},
     0xfc555b5955b9db90,
     0x2a17548637282072},
    {"",
     {"parallel.gradients_mean=false", "model.vocab_cache_size=100", "train.cache_refresh_steps=7",
      "train.micro_batches=4"},
     0xe1e02eae58d23194,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false", "model.type=mlp", "model.classes=3", "model.device=cpu",
      "model.first_layer=plain", "seed=18446744073709551615"},
     0x7b4bfcdbca386567,
     0x011ff535fc4cf7c4},
    {"",
     {"parallel.gradients_mean=false", R"(data={"format":"libffm","train":["a"],"num_fields":7})"},
     0x2e4d556d77a67ed2,
     0xda81b319b86c312f},
    {"",
     {"parallel.gradients_mean=false", R"(data={"format":"libffm","train":["a"]})"},
     0x0a348b6675231712,
     0xda81b319b86c312f},
    {"",
     {"parallel.gradients_mean=false",
      R"(data={"format":"libsvm","train":["a"],"shuffle_rows":0,"max_bad_rows":4})",
      "model.type=logistic"},
     0x8e607a9bf0ca0bae,
     0x5e3793808de38bd3},
    {"",
     {"parallel.gradients_mean=false",
      R"(data={"format":"criteo","train":["a"],"numeric_transform":"none",)"
      R"("features":[{"name":"x","from":["C1","C26"]}]})"},
     0xd895320a402aea3b,
     0x0f47d035182399f3},
    {"",
     {"parallel.gradients_mean=false",
      R"(model={"tables":[{"name":"t","dim":4,"weights":"fp16","policy":{"max_rows":9},)"
      R"("optimizer":{"l1":1},"init":{"kind":"zeros","scale":3}}],"layers":[{"name":"e",)"
      R"("kind":"embedding","table":"t","pooling":"mean","combine":"sum","features":["c",)"
      R"("d"],"units":7},{"name":"out","inputs":["e"],"units":1}]})"},
     0x8754446012a74964,
     0x239f2c0b719b722b},
    {"",
     {"parallel.gradients_mean=false",
      R"(model={"type":"graph","tables":[{"name":"t","vocab_cache_size":7}],)"
      R"("layers":[{"name":"e","kind":"embedding","table":"t"},{"name":"n",)"
      R"("kind":"numeric"},{"name":"m","inputs":["n"],"units":16,"activation":"relu"},)"
      R"({"name":"d","kind":"dot","inputs":["e","m"]},{"name":"out","inputs":["d"],)"
      R"("units":1}]})"},
     0x85a177c15aa61d79,
     0xa1a6f12f5ea0973a},
};

// Returns the job with the rates that were the defaults when these checkpoints were written; their
// manifests contain them.
Job WithEarlierRates(Job job) {
  for (TableSpec& table : job.tables) {
    OptimizerSpec& optimizer = table.optimizer;
    if (table.dense && optimizer == ModelRecipe::LinearOptimizer()) {
      optimizer = ModelRecipe::DenseOptimizer();
    }
    const bool standard =
        optimizer == ModelRecipe::DenseOptimizer() || optimizer == ModelRecipe::DeepOptimizer();
    if (standard) optimizer.learning_rate = 3.5e-4f;
  }
  return job;
}

TEST(JobDigestTest, ValuesAreThoseOfCheckpointsOnDisk) {
  for (const KnownDigests& known : kKnown) {
    const std::string name = known.example;
    SCOPED_TRACE(name + ": " + ::testing::PrintToString(known.overrides));
    const std::string json =
        name.empty() ? std::string(kShort) : ReadText("examples/" + name + ".json");
    const bool says_rates = json.find("deep_optimizer") != json.npos;
    const Job as_read = Good(known.overrides, json);
    const Job job = says_rates ? as_read : WithEarlierRates(as_read);
    EXPECT_EQ(JobDigest(job), known.job);
    EXPECT_EQ(TablesDigest(job), known.tables);
  }
}

}  // namespace
}  // namespace hdps
