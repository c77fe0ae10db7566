// Tests job files: the jobs they are parsed to.
#include "common/base/byte_count.h"
#include "common/base/show_number.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/shard_map.h"
#include "common/job/activation.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> LayerNames(const Job& job) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : job.model.layers) names.push_back(layer.name);
  return names;
}

TEST(JobTest, ExamplesParseAndPrintTheSameAgain) {
  for (const char* name :
       {"census/census", "criteo_synthetic", "deepfm", "dcn_v2", "dlrm", "logistic", "mlp"}) {
    SCOPED_TRACE(name);
    const Job job = Good({}, ReadText("examples/" + std::string(name) + ".json"));
    EXPECT_THAT(job.warnings, ElementsAre());
    const std::string printed = PrintJob(job);
    const Job again = Good({}, printed);
    EXPECT_EQ(PrintJob(again), printed);
    EXPECT_THAT(again.warnings, ElementsAre());
    EXPECT_EQ(JobDigest(again), JobDigest(job));
    EXPECT_EQ(TablesDigest(again), TablesDigest(job));
    EXPECT_TRUE(job.tables.back().dense);
    EXPECT_EQ(job.tables.back().dim, kDenseChunkFloats);
  }
}

TEST(JobTest, CensusFileLoadsWithItsDataBesideIt) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string folder = JoinPath(HDPS_SOURCE_DIR, "examples/census/");
  const Result<Job> job = LoadJob(*files, folder + "census.json", {"train.epochs=2"});
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_THAT(job->data.train, ElementsAre(folder + "adult.data.gz"));
  EXPECT_EQ(job->train.epochs, 2u);
  // Checkpoints of earlier versions contain these two digests, and can be continued.
  EXPECT_EQ(JobDigest(*job), 0x6626e6985cb281dfu);
  EXPECT_EQ(TablesDigest(*job), 0x62e35c79ce4bdf98u);
}

TEST(JobTest, EveryOptimizerAndInitSurvivesPrinting) {
  for (const char* kind :
       {"sgd", "momentum", "adagrad", "rowwise_adagrad", "adam", "lazy_adam", "adamw", "ftrl"}) {
    const Job job = Good({std::string("model.deep_optimizer.kind=") + kind,
                          "model.deep_optimizer.learning_rate=0.0123457"});
    EXPECT_EQ(job.tables[1].optimizer.learning_rate, 0.0123457f);
    const Job again = Good({}, PrintJob(job));
    EXPECT_EQ(again.tables[1].optimizer, job.tables[1].optimizer) << kind;
  }
  for (const char* kind : {"zeros", "constant", "uniform", "normal"}) {
    const Job job = Good({std::string("model.embedding_init.kind=") + kind});
    EXPECT_EQ(Good({}, PrintJob(job)).tables[1].init, job.tables[1].init) << kind;
  }
}

TEST(JobTest, HotRowsAreAskedForByTable) {
  const Job recipe = Good({"model.vocab_cache_size=1000"});
  ASSERT_EQ(recipe.tables.size(), 3u);
  EXPECT_EQ(recipe.tables[0].vocab_cache_size, 1000u);
  EXPECT_EQ(recipe.tables[1].vocab_cache_size, 1000u);
  EXPECT_EQ(recipe.tables[2].vocab_cache_size, 0u);  // The dense table.
  EXPECT_EQ(TablesDigest(recipe), TablesDigest(Good({})));
  const Job again = Good({"model.tables.1.vocab_cache_size=5"}, PrintJob(recipe));
  EXPECT_EQ(again.tables[0].vocab_cache_size, 1000u);
  EXPECT_EQ(again.tables[1].vocab_cache_size, 5u);
}

TEST(JobTest, WeightsHaveAFormatByTable) {
  const Job recipe = Good({"model.weights=bf16"});
  EXPECT_EQ(recipe.tables[0].weights, WeightFormat::kFp32) << "one weight a row gains nothing";
  EXPECT_EQ(recipe.tables[1].weights, WeightFormat::kBf16);
  EXPECT_EQ(recipe.tables[2].weights, WeightFormat::kFp32) << "dense";
  EXPECT_NE(TablesDigest(recipe), TablesDigest(Good({}))) << "their rows are others";
  const Job again = Good({"model.tables.0.weights=fp16"}, PrintJob(recipe));
  EXPECT_EQ(again.tables[0].weights, WeightFormat::kFp16);
  EXPECT_EQ(again.tables[1].weights, WeightFormat::kBf16);
}

TEST(JobTest, ValuesTravelInAFormat) {
  const Job job = Good({"parallel.wire=bf16"});
  EXPECT_EQ(job.parallel.wire, DType::kBf16);
  EXPECT_EQ(Good({}, PrintJob(job)).parallel.wire, DType::kBf16);
  EXPECT_NE(JobDigest(job), JobDigest(Good({}))) << "it trains another thing";
  EXPECT_EQ(TablesDigest(job), TablesDigest(Good({}))) << "its rows are alike";
  EXPECT_EQ(JobDigest(Good({"parallel.wire=fp32"})), JobDigest(Good({})));
}

TEST(JobTest, OtherSpellingsAreNormalised) {
  EXPECT_EQ(Good({"train.mode=ssp"}).train.mode, Mode::kSync);
  EXPECT_EQ(Good({"train.mode=ssp", "train.staleness_bound=2"}).train.mode, Mode::kSsp);
  EXPECT_EQ(Good({"parallel.parallel_mode=data_paralel"}).parallel.parallel_mode,
            ParallelMode::kData);
  EXPECT_THAT(Good({"parallel.device_num=3"}).warnings, ElementsAre());
  EXPECT_THAT(Good({"parallel.device_num=3", "parallel.gradients_mean=false"}).warnings,
              ElementsAre(HasSubstr("gradients_mean")));
  const Job many = Good({"data.columns.4.repeat=3"});
  EXPECT_THAT(FeaturesOf(many.data).sparse,
              ElementsAre("c", "d", "e0", "e1", "e2", "range", "cross", "pair"));
}

TEST(JobTest, WhatFollowsFromEvaluationsIsReadPrintedAndResolved) {
  const std::string sets = "data.eval_sets=[{\"name\":\"late\",\"files\":[\"l.csv\"]}]";
  const Job job =
      Good({sets, "data.validation_share=0.1", "train.epochs=9", "train.evals_per_epoch=4",
            "train.early_stop.patience=3", "train.early_stop.set=late",
            "train.early_stop.min_delta=0.001", "train.plateau.patience=2",
            "train.plateau.factor=0.5", "checkpoint.every_epochs=2", "checkpoint.keep_best=false"});
  EXPECT_THAT(job.warnings, ElementsAre(HasSubstr("train.plateau does not move")));
  const Job again = Good({}, PrintJob(job));
  EXPECT_EQ(PrintJob(again), PrintJob(job));
  EXPECT_EQ(again.train.early_stop, job.train.early_stop);
  EXPECT_EQ(again.train.plateau, job.train.plateau);
  EXPECT_EQ(again.data.eval_sets, job.data.eval_sets);
  const std::vector<EvalSet> of_job = EvalSetsOf(job.data);
  ASSERT_EQ(of_job.size(), 2u);
  EXPECT_EQ(of_job[0].name, "validation");
  EXPECT_TRUE(of_job[0].held_out);
  EXPECT_THAT(of_job[0].files, ElementsAre("a.csv"));
  EXPECT_EQ(of_job[1].name, "late");
  EXPECT_FALSE(of_job[1].held_out);
  // A plain job does not print it.
  EXPECT_THAT(PrintJob(Good({})), Not(AnyOf(HasSubstr("early_stop"), HasSubstr("eval_sets"),
                                            HasSubstr("validation"), HasSubstr("keep_best"))));
  // With softmax there is no AUC: the loss is watched, and AUC cannot be chosen.
  const std::string softmax = ReadText("examples/mlp.json");
  EXPECT_EQ(Good({"train.early_stop.patience=3"}, softmax).train.early_stop.metric, "logloss");
  EXPECT_THAT(Bad({"train.early_stop.patience=3", "train.early_stop.metric=auc"}, softmax),
              AllOf(HasSubstr("train.early_stop.metric"), HasSubstr("use \"logloss\"")));
  // Settings without an effect are reported.
  EXPECT_THAT(Good({"train.evals_per_epoch=4"}).warnings,
              ElementsAre(HasSubstr("train.evals_per_epoch is ignored")));
  EXPECT_THAT(Good({sets, "train.early_stop.patience=3"}).warnings,
              ElementsAre(HasSubstr("train.early_stop has no effect")));
}

TEST(JobTest, DigestSeesWhatIsTrainedAndNothingElse) {
  const uint64_t digest = JobDigest(Good({}));
  for (const char* same : {"name=other",
                           "data.train=[\"b.csv\"]",
                           "train.epochs=9",
                           "train.max_steps=5",
                           "checkpoint.keep=7",
                           "cluster.heartbeat_ms=100",
                           "model.device=cpu",
                           "cluster.memory_limit=1GiB",
                           "cluster.spill_path=/x",
                           "model.policy.admit_after=1",
                           "data.max_bad_rows=4",
                           "train.staleness_bound=3",
                           "model.vocab_cache_size=100",
                           "train.cache_refresh_steps=7",
                           "train.eval_every_steps=7",
                           "train.evals_per_epoch=4",
                           "checkpoint.every_epochs=2",
                           "checkpoint.keep_best=false",
                           "data.eval_sets=[{\"name\":\"other\",\"files\":[\"o.csv\"]}]",
                           "train.plateau.factor=0.1",
                           "parallel.gradients_mean=true"}) {
    EXPECT_EQ(JobDigest(Good({same})), digest) << same;
  }
  std::vector<uint64_t> digests = {digest};
  for (const char* other :
       {"seed=2", "cluster.shards=64", "train.batch_size=512", "train.mode=async",
        "model.embedding_dim=8", "model.deep_optimizer.learning_rate=0.1", "data.missing=?",
        "parallel.dense_exchange=allreduce", "parallel.gradients_mean=false", "model.type=deepfm",
        "data.features.0.boundaries.0=0", "model.embedding_init.scale=0.5",
        "model.policy.admit_after=2", "model.policy.evict_by=norm", "model.policy.max_bytes=1GiB",
        "data.validation_share=0.1", "train.plateau.factor=0.5"}) {
    digests.push_back(JobDigest(Good({other})));
  }
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::unique(digests.begin(), digests.end()), digests.end());
  EXPECT_EQ(TablesDigest(Good({"train.mode=async"})), TablesDigest(Good({})));
  EXPECT_NE(TablesDigest(Good({"model.embedding_dim=8"})), TablesDigest(Good({})));
  EXPECT_NE(TablesDigest(Good({"seed=3"})), TablesDigest(Good({})));
}

TEST(JobTest, PoliciesAreOfEveryTableThatHasKeys) {
  const Job recipe = Good({"model.policy.admit_after=2", "model.policy.evict_after_steps=500",
                           "model.policy.max_bytes=1.5GiB", "model.policy.evict_by=use"});
  ASSERT_EQ(recipe.tables.size(), 3u);
  PolicySpec policy;
  policy.admit_after = 2;
  policy.evict_after_steps = 500;
  policy.max_bytes = 3ull << 29;
  policy.evict_by = EvictBy::kUse;
  EXPECT_EQ(recipe.tables[0].policy, policy);
  EXPECT_EQ(recipe.tables[1].policy, policy);
  EXPECT_EQ(recipe.tables[2].policy, PolicySpec());  // The dense table.
  EXPECT_EQ(Good({}, PrintJob(recipe)).tables[1].policy, policy);

  const Job graph = Good({kGraph, "model.tables.0.policy.admit_probability=0.5"});
  EXPECT_EQ(graph.tables[0].policy.admit_probability, 0.5);
}

TEST(JobTest, BytesAreNumbersOrTexts) {
  EXPECT_EQ(Good({"cluster.memory_limit=5000"}).cluster.memory_limit, 5000u);
  EXPECT_EQ(Good({"cluster.memory_limit=\"4 GiB\""}).cluster.memory_limit, 4ull << 30);
  EXPECT_EQ(Good({"cluster.memory_limit=1.5MB"}).cluster.memory_limit, 1500000u);
  EXPECT_EQ(Good({}).cluster.memory_limit, 0u);
  for (const char* bad : {"4gallons", "-1", "1e30GiB", "GiB", "[1]", "1.5.2MB", "nan"}) {
    EXPECT_THAT(Bad({"cluster.memory_limit=" + std::string(bad)}), HasSubstr("such as 4294967296"))
        << bad;
  }
  EXPECT_EQ(ShowByteCount(17), "17 B");
  EXPECT_EQ(ShowByteCount(1536), "1.50 KiB");
  EXPECT_EQ(ShowByteCount(123ull << 20), "123 MiB");
  EXPECT_EQ(ShowByteCount(~uint64_t{0}), "16.0 EiB");
  EXPECT_EQ(ShowNumber("%.3g ms", 1.23456), "1.23 ms");
  for (const auto& [value, text] :
       std::vector<std::pair<double, std::string>>{{0, "0"},
                                                   {999, "999"},
                                                   {1000, "1,000"},
                                                   {1234567.4, "1,234,567"},
                                                   {-123, "-123"},
                                                   {-1234, "-1,234"}}) {
    EXPECT_EQ(ShowWhole(value), text);
  }
}

// The part of the logit from features begins at 0, and moves like the weights of keys beside it if
// nothing else is dense.
TEST(JobTest, ALinearPartBeginsAtZero) {
  const auto init_of = [](const Job& job, const std::string& name) {
    const auto layer = std::ranges::find(job.model.layers, name, &LayerSpec::name);
    return layer == job.model.layers.end() ? "no layer" : layer->words.at("init");
  };
  for (const char* type : {"wide_deep", "deepfm", "nfm", "xdeepfm", "fibinet", "fm", "logistic"}) {
    const Job job = Good({std::string("model.type=") + type, "model.dense_init=he_normal"});
    EXPECT_EQ(init_of(job, "wide_numeric"), "zeros") << type;
    EXPECT_EQ(JobDigest(Good({}, PrintJob(job))), JobDigest(job)) << type;
  }
  EXPECT_EQ(init_of(Good({"model.type=mlp", "model.hidden=[]"}), "logit"), "zeros");
  EXPECT_EQ(init_of(Good({"model.type=mlp"}), "logit"), "xavier_uniform");
  for (const char* type : {"fm", "logistic"}) {
    const std::string word = std::string("model.type=") + type;
    EXPECT_EQ(Good({word}).tables.back().optimizer, ModelRecipe::LinearOptimizer());
    const OptimizerSpec own =
        Good({word, "model.dense_optimizer.kind=adam"}).tables.back().optimizer;
    EXPECT_EQ(own.record->kind, OptimizerKind::kAdam);
  }
}

TEST(JobTest, RecipesGiveTheirGraphs) {
  EXPECT_THAT(LayerNames(Good({})),
              ElementsAre("wide", "numeric", "wide_numeric", "wide_sum", "wide_bias", "embedding",
                          "deep_input", "deep1", "deep2", "deep_logit", "logit"));
  EXPECT_THAT(LayerNames(Good({"model.numeric=false", "model.hidden=[7]"})),
              ElementsAre("wide", "wide_bias", "embedding", "deep1", "deep_logit", "logit"));
  EXPECT_THAT(LayerNames(Good({"model.type=deepfm", "model.numeric=false", "model.hidden=[7]"})),
              ElementsAre("wide", "wide_bias", "embedding", "fm", "deep1", "deep_logit", "logit"));
  EXPECT_THAT(
      LayerNames(Good({"model.type=dcn_v2", "model.hidden=[7]"})),
      ElementsAre("embedding", "numeric", "deep_input", "cross", "deep1", "joined", "logit"));
  EXPECT_THAT(
      LayerNames(Good({"model.type=dlrm", "model.hidden=[7]"})),
      ElementsAre("embedding", "numeric", "bottom1", "bottom", "dot", "joined", "top1", "logit"));
  EXPECT_THAT(LayerNames(Good({"model.type=dlrm", "model.numeric=false", "model.hidden=[]"})),
              ElementsAre("embedding", "dot", "logit"));
  EXPECT_THAT(LayerNames(Good({"model.type=logistic"})),
              ElementsAre("wide", "numeric", "wide_numeric", "wide_sum", "wide_bias"));
  for (const RecipeRecord& recipe : Recipes()) {
    if (recipe.Find("classes") == nullptr || recipe.Find("history") != nullptr) continue;
    const Job classes = Good({"model.type=" + recipe.word, "model.classes=3"});
    EXPECT_EQ(classes.model.loss, LossKind::kSoftmax) << recipe.word;
    EXPECT_EQ(LabelsOf(classes).front().num_classes, 3u) << recipe.word;
  }
  const Job mlp = Good({"model.type=mlp", "model.classes=10"});
  EXPECT_THAT(LayerNames(mlp), ElementsAre("numeric", "hidden1", "hidden2", "logit"));
  EXPECT_EQ(mlp.model.loss, LossKind::kSoftmax);
  EXPECT_EQ(LabelsOf(mlp).front().num_classes, 10u);
  EXPECT_EQ(LabelsOf(Good({})).front().num_classes, 2u);
  EXPECT_EQ(mlp.tables.size(), 1u);
  EXPECT_EQ(Good({"model.dense_optimizer.kind=lamb"}).tables.back().shard_by, ShardBy::kGroup);
}

TEST(JobTest, RecipesAreRegularised) {
  const Job dropping = Good({"model.numeric=false", "model.hidden=[7]", "model.dropout=0.25",
                             "model.embedding_dropout=0.5"});
  EXPECT_THAT(LayerNames(dropping),
              ElementsAre("wide", "wide_bias", "embedding", "embedding_dropout", "deep1",
                          "deep1_dropout", "deep_logit", "logit"));
  EXPECT_EQ(dropping.model.layers[3].numbers.at("rate"), 0.5);
  EXPECT_EQ(dropping.model.layers[4].activation, Activation::kRelu);
  EXPECT_EQ(dropping.model.layers[5].numbers.at("rate"), 0.25);
  EXPECT_TRUE(dropping.tables.back().averaged.empty());
  const Job normal = Good({"model.type=dcn_v2", "model.numeric=false", "model.hidden=[7]",
                           "model.batch_norm=true", "model.dropout=0.25"});
  EXPECT_THAT(LayerNames(normal), ElementsAre("embedding", "cross", "deep1", "deep1_norm",
                                              "deep1_relu", "deep1_dropout", "joined", "logit"));
  EXPECT_EQ(normal.model.layers[2].activation, Activation::kNone);
  // After weights and biases of three cross layers and of deep1, gain and bias of the norm.
  const std::vector<AveragedTensor> averaged = {{10, 0.9f}, {11, 0.9f}};
  EXPECT_EQ(normal.tables.back().averaged, averaged);
}

TEST(JobTest, FormatsWithoutColumnsNameTheirFeatures) {
  const Job criteo =
      Good({"data={\"format\":\"criteo\",\"train\":[\"a\"],\"features\":[{\"name\":\"x\","
            "\"from\":[\"C1\",\"C26\"]}]}"});
  const FeatureNames names = FeaturesOf(criteo.data);
  EXPECT_EQ(names.numeric.size(), 13u);
  EXPECT_EQ(names.numeric.back(), "I13");
  EXPECT_EQ(names.sparse.size(), 27u);
  EXPECT_EQ(names.sparse[25], "C26");
  EXPECT_EQ(names.sparse[26], "x");
  const Job ffm = Good({"data={\"format\":\"libffm\",\"train\":[\"a\"],\"num_fields\":3}"});
  EXPECT_THAT(FeaturesOf(ffm.data).sparse, ElementsAre("field0", "field1", "field2"));
  const Job fm = Good({"data={\"format\":\"libfm\",\"train\":[\"a\"],\"num_fields\":2}"});
  EXPECT_EQ(fm.data.format, DataFormat::kLibfm);
  EXPECT_THAT(FeaturesOf(fm.data).sparse, ElementsAre("field0", "field1"));
  EXPECT_EQ(JobDigest(Good({}, PrintJob(fm))), JobDigest(fm));
  const Job svm = Good({"data={\"format\":\"libsvm\",\"train\":[\"a\"]}", "model.type=logistic"});
  EXPECT_THAT(FeaturesOf(svm.data).sparse, ElementsAre("features"));
}

TEST(JobTest, InputsThatTheModelCannotUseAreNamed) {
  const std::string svm = "data={\"format\":\"libsvm\",\"train\":[\"a\"]}";
  EXPECT_THAT(Good({svm, "model.type=logistic"}).warnings, ElementsAre());
  EXPECT_THAT(
      Good({svm, "model.type=deepfm"}).warnings,
      ElementsAre("layer \"fm\" gives 0 for every example: it multiplies pairs of features, "
                  "and \"embedding\" has one alone, \"features\"; libsvm files have no "
                  "fields: use libfm if the places of entries are fields, libffm if fields "
                  "are written"));
  const std::string fm = "data={\"format\":\"libfm\",\"train\":[\"a\"],\"num_fields\":2}";
  EXPECT_THAT(Good({fm, "model.type=deepfm"}).warnings, ElementsAre());
  const std::string criteo =
      "data={\"format\":\"criteo\",\"train\":[\"a\"],\"features\":[{\"name\":\"x\","
      "\"from\":[\"C1\",\"C2\"]}]}";
  EXPECT_THAT(Good({criteo, "model.type=mlp"}).warnings,
              ElementsAre("no layer of the model reads the sparse features \"C1\", \"C2\", \"C3\" "
                          "and 24 more"));
  // Sources of a feature that is read are read too.
  std::string all = "[\"x\"";
  for (int c = 3; c <= 26; ++c) all += ",\"C" + std::to_string(c) + "\"";
  EXPECT_THAT(Good({criteo, "model.type=dcn_v2", "model.deep_features=" + all + "]"}).warnings,
              ElementsAre());
  EXPECT_THAT(Good({criteo, "model.type=dcn_v2", "model.numeric=false"}).warnings, ElementsAre());
}

TEST(JobTest, AHeaderIsPrintedWhereItCounts) {
  const std::string criteo = "data={\"format\":\"criteo\",\"train\":[\"a\"]}";
  const Job without = Good({criteo}), with = Good({criteo, "data.header=true"});
  EXPECT_EQ(PrintJob(without).find("header"), std::string::npos);
  EXPECT_TRUE(with.data.header);
  EXPECT_TRUE(Good({}, PrintJob(with)).data.header);
  EXPECT_NE(JobDigest(with), JobDigest(without));
}

TEST(JobTest, OverridesAreCutAtTheirCommas) {
  EXPECT_THAT(SplitOverrides("a=1,b=[2,3],c={\"x\": \"],\"},d="),
              ElementsAre("a=1", "b=[2,3]", "c={\"x\": \"],\"}", "d="));
  EXPECT_THAT(SplitOverrides(""), ElementsAre());
  const Job job = Good({"data.train.1=b.csv", "data.eval=[\"c.csv\"]", "train.mode=\"async\""});
  EXPECT_THAT(job.data.train, ElementsAre("a.csv", "b.csv"));
  EXPECT_EQ(job.train.mode, Mode::kAsync);
}

}  // namespace
}  // namespace hdps
