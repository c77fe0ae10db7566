// Tests optimizers in a job file: settings, defaults and ranges are those of their records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the optimizer of the dense weights, which may be of any kind.
OptimizerSpec Dense(const std::string& json, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {"model.dense_optimizer=" + json};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return Good(overrides).tables.back().optimizer;
}

TEST(OptimizerTextTest, EveryKindHasANameAndItsDefaults) {
  std::set<std::string> names;
  for (const OptimizerRecord& record : kOptimizers) {
    SCOPED_TRACE(record.name);
    EXPECT_TRUE(names.insert(record.name).second);
    EXPECT_EQ(OptimizerName(record.kind), record.name);
    // The default has the place's rate.
    const bool is_default = std::string(record.name) == "adam";
    const OptimizerSpec spec = Dense(R"({"kind": ")" + std::string(record.name) + "\"}");
    OptimizerSpec expected = DefaultsOf(record.kind);
    if (is_default) expected.learning_rate = 2e-3f;
    EXPECT_EQ(spec, expected);
  }
}

TEST(OptimizerTextTest, EverySettingIsReadCheckedAndPrinted) {
  for (const OptimizerRecord& record : kOptimizers) {
    for (const OptimizerSetting& setting : record.settings) {
      const std::string place = std::string("model.dense_optimizer.") + setting.name;
      SCOPED_TRACE(std::string(record.name) + " " + place);
      const std::string kind = R"({"kind": ")" + std::string(record.name) + "\"}";
      const Job job = Good({"model.dense_optimizer=" + kind, place + "=0.25"});
      EXPECT_EQ(job.tables.back().optimizer.*setting.value, 0.25f);
      EXPECT_TRUE(job.warnings.empty());
      EXPECT_EQ(Good({}, PrintJob(job)).tables.back().optimizer, job.tables.back().optimizer);
      for (const char* wrong : {"-1", "10000000", "\"0.5\""}) {
        EXPECT_THAT(Bad({"model.dense_optimizer=" + kind, place + "=" + wrong}),
                    HasSubstr("--set: " + place + ": " + wrong));
      }
    }
  }
}

TEST(OptimizerTextTest, WhatTheKindHasNotIsWarnedOfAndLeavesNoTrace) {
  const std::string sgd = R"(model.dense_optimizer={"kind": "sgd", "beta1": 0.5})";
  const Job job = Good({sgd});
  EXPECT_THAT(job.warnings, testing::ElementsAre(HasSubstr("model.dense_optimizer.beta1")));
  EXPECT_EQ(job.tables.back().optimizer, DefaultsOf(OptimizerKind::kSgd));
  EXPECT_THAT(PrintJob(job), Not(HasSubstr("0.5")));
}

// Missing settings come from the place if the kind is the place's.
TEST(OptimizerTextTest, MissingSettingsComeFromThePlace) {
  EXPECT_EQ(Dense("{}").record->kind, OptimizerKind::kAdam);
  EXPECT_EQ(Dense("{}").learning_rate, 2e-3f);
  EXPECT_EQ(Dense(R"({"beta1": 0.5})").learning_rate, 2e-3f);
  EXPECT_EQ(Dense(R"({"kind": "adamw"})").learning_rate, OptimizerSettings().learning_rate);
}

}  // namespace
}  // namespace hdps
