// Tests jobs whose model is another program's: tables, no layers, and perhaps no data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/step_lists.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kTables = R"({
  "model": {
    "type": "tables",
    "tables": [
      {"name": "words", "dim": 4, "optimizer": {"kind": "rowwise_adagrad"}},
      {"name": "users", "dim": 2, "policy": {"admit_after": 2}}
    ]
  }
})";

Job Tables(const std::vector<std::string>& overrides = {}) { return Good(overrides, kTables); }
std::string Refusal(const std::string& override_text) { return Bad({override_text}, kTables); }

TEST(TablesJobTest, HasItsTablesAndOneForTheStatesOfWorkers) {
  const Job job = Tables();
  EXPECT_TRUE(IsTablesJob(job));
  EXPECT_THAT(job.warnings, IsEmpty());
  EXPECT_THAT(job.model.layers, IsEmpty());
  ASSERT_EQ(job.tables.size(), 3u);
  EXPECT_EQ(job.tables[0].name, "words");
  EXPECT_EQ(RecordOf(job.tables[0].optimizer).kind, OptimizerKind::kRowwiseAdagrad);
  EXPECT_EQ(job.tables[1].policy.admit_after, 2u);
  EXPECT_TRUE(job.tables[2].dense);
  EXPECT_EQ(job.tables[2].dim, kDenseChunkFloats);
  EXPECT_EQ(RecordOf(job.tables[2].optimizer).kind, OptimizerKind::kSgd);
  EXPECT_EQ(ListsOfStep(job), 1u);
  EXPECT_TRUE(job.data.train.empty());
}

TEST(TablesJobTest, PrintedAndReadAgainItIsTheSame) {
  const std::string data =
      R"(data={"train": ["a.csv"], "columns": [{"name": "y", "type": "label"}, {"name": "c"}]})";
  for (const std::vector<std::string>& overrides : std::vector<std::vector<std::string>>{
           {},
           {"train.epochs=3", "model.loss=bpr"},
           {R"(train.schedule={"kind": "cosine", "decay_steps": 80})", "train.clip_norm=2"},
           {"train.eval_every_steps=10", "train.early_stop.patience=2", "train.plateau.patience=1"},
           {"train.eval_every_steps=10", "train.early_stop.patience=2",
            "train.early_stop.metric=recall@20", "checkpoint.keep_best=false"},
           {"model.tables.0.slice_mode=table_row_slice", "model.tables.1.weights=bf16"},
           {data, "train.batch_size=7"}}) {
    const Job job = Tables(overrides);
    const Job again = Good({}, PrintJob(job));
    SCOPED_TRACE(PrintJob(job));
    EXPECT_EQ(JobDigest(again), JobDigest(job));
    EXPECT_EQ(TablesDigest(again), TablesDigest(job));
    EXPECT_EQ(PrintJob(again), PrintJob(job));
    EXPECT_THAT(again.warnings, IsEmpty()) << "what has no effect is not printed";
  }
}

TEST(TablesJobTest, DigestsTellTables) {
  const Job job = Tables();
  for (const char* other : {"model.tables.0.dim=8", "model.tables.1.name=items",
                            "model.tables.0.optimizer.learning_rate=0.5", "seed=7"}) {
    EXPECT_NE(JobDigest(Tables({other})), JobDigest(job)) << other;
    EXPECT_NE(TablesDigest(Tables({other})), TablesDigest(job)) << other;
  }
  EXPECT_NE(JobDigest(Tables({"train.mode=async"})), JobDigest(job));
}

TEST(TablesJobTest, WhatHasNoEffectIsToldAndInNoDigest) {
  const Job job = Tables();
  const struct {
    const char* path;
    const char* value;
  } idle[] = {{"data.shuffle_rows", "5"},
              {"data.columns", "[{\"name\": \"c\"}]"},
              {"train.batch_size", "7"},
              {"train.epochs", "3"},
              {"train.micro_batches", "2"},
              {"train.lookahead", "1"},
              {"train.eval_each_epoch", "false"},
              {"train.evals_per_epoch", "2"},
              {"train.metrics", "[\"auc\"]"},
              {"train.log_every_steps", "5"},
              {"train.early_stop.set", "late"},
              {"checkpoint.every_epochs", "1"},
              {"model.loss", "squared_error"},
              {"model.hidden", "[8]"},
              {"model.device", "cuda"},
              {"model.dense_optimizer", "{\"kind\": \"sgd\"}"},
              {"model.policy", "{\"admit_after\": 3}"},
              {"parallel.parallel_mode", "auto_parallel"},
              {"parallel.dense_exchange", "allreduce"},
              {"parallel.full_batch", "true"},
              {"parallel.interleave_num", "2"}};
  for (const auto& [path, value] : idle) {
    SCOPED_TRACE(path);
    const Job with = Tables({std::string(path) + "=" + value});
    ASSERT_EQ(with.warnings.size(), 1u);
    EXPECT_THAT(with.warnings[0], StartsWith(path));
    EXPECT_THAT(with.warnings[0], HasSubstr(" is ignored: "));
    EXPECT_EQ(JobDigest(with), JobDigest(job));
    EXPECT_EQ(TablesDigest(with), TablesDigest(job));
  }
  EXPECT_THAT(Tables({"train.epochs=1"}).warnings, IsEmpty()) << "the default does nothing anyway";
}

TEST(TablesJobTest, DataIsForAProgramThatReadsIt) {
  const std::vector<std::string> data = {
      R"(data={"train": ["a.csv"], "shuffle_rows": 5, "columns": [{"name": "y", "type": "label"},)"
      R"( {"name": "z", "type": "label", "classes": ["a", "b", "c"]}, {"name": "c"}]})",
      "train.batch_size=7"};
  const Job job = Tables(data);
  EXPECT_THAT(job.warnings, IsEmpty());
  EXPECT_EQ(job.train.batch_size, 7u);
  const std::vector<LabelSpec> labels = LabelsOf(job);
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_EQ(labels[0].name, "y");
  EXPECT_EQ(labels[0].num_classes, kLabelsAnyNumber);
  EXPECT_EQ(labels[1].num_classes, 3u);
  EXPECT_EQ(LabelsOf(Tables())[0].num_classes, kLabelsAnyNumber);
  EXPECT_THAT(Bad({data[0], "data.columns.2.name=y"}, kTables), HasSubstr("data.columns.2.name"));
}

TEST(TablesJobTest, WatchesAFigureThatTheProgramReports) {
  EXPECT_EQ(UsualMetric(Tables()), "");
  const Job first = Tables({"train.eval_every_steps=5", "train.early_stop.patience=2"});
  EXPECT_EQ(first.train.early_stop.metric, "") << "the first that is reported";
  const Job named = Tables(
      {"train.eval_every_steps=5", "train.plateau.patience=2", "train.plateau.metric=my_loss"});
  EXPECT_EQ(named.train.plateau.metric, "my_loss");
  EXPECT_THAT(named.warnings, IsEmpty());
  EXPECT_THAT(Tables({"checkpoint.keep_best=false"}).warnings,
              ElementsAre(HasSubstr("there is nothing to evaluate")));
  EXPECT_THAT(Bad({"train.early_stop.patience=2"}, kTables), HasSubstr("give that"));
  EXPECT_THAT(Bad({"train.eval_every_steps=5", "train.early_stop.patience=2",
                   "train.early_stop.metric=my loss"},
                  kTables),
              HasSubstr("train.early_stop.metric: \"my loss\" cannot name a figure"));
}

TEST(TablesJobTest, MistakesAreNamed) {
  EXPECT_THAT(Refusal(R"(model.layers=[{"name": "e", "kind": "embedding", "table": "words"}])"),
              HasSubstr("model.layers: type tables has no layers"));
  EXPECT_THAT(Refusal("model.tables=[]"), HasSubstr("model.tables: type tables needs the tables"));
  EXPECT_THAT(Refusal("model.tables.1.name=words"), HasSubstr("model.tables.1.name"));
  EXPECT_THAT(Refusal("model.tables.1.name=dense"), HasSubstr("cannot name a table"));
  EXPECT_THAT(Refusal("model.tables.0.optimizer.kind=lamb"), HasSubstr("model.tables.0.optimizer"));
  EXPECT_THAT(Refusal("model.tables.0.vocab_cache_size=9"),
              HasSubstr("model.tables.0.vocab_cache_size"));
  EXPECT_THAT(Refusal("model.tables.1.slice_mode=field_slice"),
              HasSubstr("model.tables.1.slice_mode: field_slice"));
  EXPECT_THAT(
      Bad({"model.tables.0.optimizer.kind=sgd", "model.tables.0.slice_mode=table_column_slice"},
          kTables),
      HasSubstr("take batch_slice or table_row_slice"));
  const Status refused = NeedsLayers(Tables(), "hdps predict");
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("hdps predict needs the layers"));
  EXPECT_THAT(refused.message(), HasSubstr("hdps.join"));
  EXPECT_TRUE(NeedsLayers(Good({}), "hdps predict").ok());
}

}  // namespace
}  // namespace hdps
