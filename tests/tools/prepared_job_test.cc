// Tests the job that prepare writes: its settings by task, size and sparseness, for every recipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/train_spec.h"
#include "tools/prepare/prepare_report.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A plan with a label, a number, a user, an item and a history, as from the columns of a file.
struct Planned {
  DataProfile profile;
  DataPlan plan;
  JobWish wish;
};

Planned PlanOf(TaskKind task, uint64_t rows) {
  Planned planned;
  planned.profile.rows = rows;
  planned.plan.task = task;
  const std::pair<const char*, ColumnType> columns[] = {{"y", ColumnType::kLabel},
                                                        {"n", ColumnType::kNumeric},
                                                        {"user", ColumnType::kCategorical},
                                                        {"item", ColumnType::kCategorical},
                                                        {"seen", ColumnType::kMulti}};
  for (const auto& [name, type] : columns) {
    ColumnPlan column;
    column.spec.name = name;
    column.spec.type = type;
    planned.plan.columns.push_back(column);
    constexpr size_t kKept = 100;
    ColumnProfile& profile = planned.profile.columns.emplace_back(name, kKept);
    // Value v of 1 to 9 comes v times: 9, 8 and 7 are more than half of the 45.
    for (uint64_t value = 1; value <= 9; ++value) {
      for (uint64_t times = 0; times < value; ++times) profile.distinct.Add(value);
    }
  }
  planned.plan.user = 2;
  planned.plan.item = 3;
  planned.plan.keys = planned.plan.keys_twice = 100;
  if (task == TaskKind::kClasses) planned.plan.num_classes = 5;
  if (task == TaskKind::kPositivesOnly) {
    planned.plan.item_features = {"item"};
    planned.plan.negatives = 4;
  } else {
    planned.wish.eval = {"e.csv"};
  }
  planned.wish.name = "planned";
  planned.wish.train = {"f.csv"};
  return planned;
}

Result<Job> JobOf(const Planned& planned) {
  HDPS_RETURN_IF_ERROR(CheckModel(planned.plan, planned.wish));
  return ParseJob(PreparedJob(planned.profile, planned.plan, planned.wish), "job", {});
}

TEST(PreparedJobTest, EveryRecipeGetsAJobThatIsReadWithoutAWarning) {
  for (const RecipeRecord& recipe : Recipes()) {
    for (const TaskKind task :
         {TaskKind::kBinary, TaskKind::kClasses, TaskKind::kRating, TaskKind::kPositivesOnly}) {
      for (const uint64_t rows : {300, 30000, 30000000}) {
        Planned planned = PlanOf(task, rows);
        planned.wish.model = recipe.word;
        const Result<Job> job = JobOf(planned);
        if (recipe.word == "esmm" ||
            (task == TaskKind::kClasses && recipe.Find("classes") == nullptr)) {
          EXPECT_EQ(job.status().code(), Code::kInvalidArgument);
          EXPECT_THAT(job.status().message(), HasSubstr("--model=" + recipe.word + ": it "));
          continue;
        }
        // An mlp does not use items, and so no negatives made from them.
        if (recipe.word == "mlp" && task == TaskKind::kPositivesOnly) continue;
        ASSERT_TRUE(job.ok()) << recipe.word << ": " << job.status().message();
        if (recipe.word != "mlp") {  // An mlp does not use ids, and says so.
          EXPECT_THAT(job->warnings, ElementsAre()) << recipe.word << " " << WordOf(task);
        }
        EXPECT_EQ(job->train.early_stop.patience > 0, task != TaskKind::kPositivesOnly);
      }
    }
  }
}

TEST(PreparedJobTest, TheTaskGivesTheLoss) {
  EXPECT_EQ(JobOf(PlanOf(TaskKind::kBinary, 300))->model.loss, LossKind::kLogloss);
  const Result<Job> classes = JobOf(PlanOf(TaskKind::kClasses, 300));
  EXPECT_EQ(classes->model.loss, LossKind::kSoftmax);
  EXPECT_EQ(LabelsOf(*classes).front().num_classes, 5u);
  EXPECT_EQ(JobOf(PlanOf(TaskKind::kRating, 300))->model.loss, LossKind::kSquared);
  const Result<Job> ranking = JobOf(PlanOf(TaskKind::kPositivesOnly, 300));
  EXPECT_EQ(ranking->data.negatives.per_positive, 4u);
  EXPECT_EQ(ranking->data.negatives.by, NegativesBy::kUniform);
  Planned towers = PlanOf(TaskKind::kPositivesOnly, 300);
  towers.wish.model = "two_tower";
  EXPECT_EQ(JobOf(towers)->model.loss, LossKind::kSampledSoftmax);
  EXPECT_EQ(JobOf(towers)->data.negatives.per_positive, 0u);
}

TEST(PreparedJobTest, RegularizationGoesByRowsAndKeys) {
  const auto json = [](uint64_t rows, double keys) {
    Planned planned = PlanOf(TaskKind::kBinary, rows);
    planned.plan.keys = keys;
    return nlohmann::json::parse(PreparedJob(planned.profile, planned.plan, planned.wish))["model"];
  };
  EXPECT_FALSE(json(1000, 100).contains("batch_norm"));
  EXPECT_EQ(json(30000, 100)["batch_norm"], true);
  EXPECT_EQ(json(30000, 100)["dropout"], 0.2);
  EXPECT_FALSE(json(30000, 100).contains("embedding_dropout"));
  EXPECT_EQ(json(30000, 30000)["embedding_dropout"], 0.5);
}

TEST(PreparedJobTest, ValuesAreCountedForPlanning) {
  const Job job = *JobOf(PlanOf(TaskKind::kBinary, 300));
  EXPECT_EQ(job.data.distinct,
            (std::map<std::string, uint64_t>{{"item", 9}, {"seen", 9}, {"user", 9}}));
  EXPECT_EQ(job.data.distinct_half,
            (std::map<std::string, uint64_t>{{"item", 3}, {"seen", 3}, {"user", 3}}));
}

TEST(PreparedJobTest, WhatNobodyEvaluatesIsNotTrainedForLong) {
  Planned planned = PlanOf(TaskKind::kBinary, 300);
  const uint64_t watched = JobOf(planned)->train.epochs;
  planned.wish.eval.clear();
  EXPECT_LT(JobOf(planned)->train.epochs, watched);
  EXPECT_EQ(JobOf(planned)->train.early_stop.patience, 0u);
}

TEST(PreparedJobTest, ARecipeWhoseColumnsAreMissingIsRefused) {
  Planned planned = PlanOf(TaskKind::kBinary, 300);
  planned.plan.user = planned.plan.item = kNoColumn;
  planned.wish.model = "two_tower";
  EXPECT_THAT(JobOf(planned).status().message(), HasSubstr("compares a user with an item"));
  planned.wish.model = "din";
  EXPECT_THAT(JobOf(planned).status().message(), HasSubstr("compares a history"));
  planned.plan.keys = 0;
  planned.plan.columns.resize(2);
  planned.wish.model = "";
  EXPECT_EQ(ModelOf(planned.plan, planned.wish), "mlp") << "numbers alone";
}

}  // namespace
}  // namespace hdps
