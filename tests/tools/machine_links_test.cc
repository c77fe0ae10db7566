// Tests the plan of members that share machines and links, and of rows that every worker keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/planning/key_law.h"
#include "tools/plan/cost_model.h"
#include "tools/plan/kept_rows.h"
#include "tools/plan/plan_report.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kByteOfGbit = 1e9 / 8;

Result<Job> JobOf(const std::string& kept_rows) {
  return ParseJob(R"({"data": {"format": "criteo", "train": ["f"]}, "train": {"batch_size": 4096},
                      "model": {"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32],
                                "vocab_cache_size": )" +
                      kept_rows + "}}",
                  "job", {});
}

// Two machines of a server and a worker each.
PlanQuestion Question(const std::string& kept_rows = "0") {
  PlanQuestion question;
  question.shape = *ShapeOf(*JobOf(kept_rows));
  question.batch = 4096;
  question.servers = question.workers = question.machines = 2;
  question.lookahead = 0;
  question.network_bytes_per_second = kByteOfGbit;
  question.rows = 26e5;
  question.zipf = 1;
  question.text_row_bytes = 150;
  return question;
}

// Half of each worker's exchange stays on its machine. The other half crosses the link in one
// direction, and that of the other worker crosses it in the same direction.
TEST(MachineLinksTest, ALinkCarriesWhatLeavesTheMachine) {
  PlanQuestion question = Question();
  const PlanAnswer two = Plan(question, MachineConstants());
  EXPECT_NEAR(two.machine_bytes, 0.5 * (two.worker_bytes_in + two.worker_bytes_out), 1);
  EXPECT_GE(two.step_seconds, two.machine_bytes / kByteOfGbit);
  // Four workers on two machines: two of them share each link.
  question.servers = question.workers = 4;
  question.batch = 8192;
  const PlanAnswer four = Plan(question, MachineConstants());
  EXPECT_NEAR(four.machine_bytes, 2 * 0.5 * (four.worker_bytes_in + four.worker_bytes_out), 1);
  // On four machines three quarters of it leave.
  question.machines = 4;
  const PlanAnswer apart = Plan(question, MachineConstants());
  EXPECT_NEAR(apart.machine_bytes, 0.75 * (apart.worker_bytes_in + apart.worker_bytes_out), 1);
}

TEST(MachineLinksTest, AThinLinkIsTheBottleneckAndAWideOneIsNot) {
  PlanQuestion question = Question();
  question.network_bytes_per_second = 1e6;
  const PlanAnswer thin = Plan(question, MachineConstants());
  EXPECT_EQ(thin.parts[thin.bottleneck].name, "machine: link");
  EXPECT_NEAR(thin.step_seconds, thin.machine_bytes / 1e6, 0.2 * thin.step_seconds);
  question.network_bytes_per_second = 1e12;
  const PlanAnswer wide = Plan(question, MachineConstants());
  EXPECT_NE(wide.parts[wide.bottleneck].name, "machine: link");
  // A server and a worker share the cores, so a machine for each is faster.
  question.machines = 0;
  EXPECT_LT(Plan(question, MachineConstants()).step_seconds, wide.step_seconds);
}

TEST(MachineLinksTest, RowsAskedAheadCrossWhileTheCoresCompute) {
  PlanQuestion question = Question();
  question.changed_share = 0;
  const PlanAnswer in_turn = Plan(question, MachineConstants());
  question.lookahead = 1;
  const PlanAnswer ahead = Plan(question, MachineConstants());
  EXPECT_LT(ahead.step_seconds, in_turn.step_seconds);
  EXPECT_NEAR(ahead.machine_bytes, in_turn.machine_bytes, 1);
  EXPECT_GE(ahead.step_seconds, ahead.machine_bytes / kByteOfGbit);
}

TEST(MachineLinksTest, TheReportNamesThem) {
  const PlanQuestion question = Question();
  const PlanAnswer answer = Plan(question, MachineConstants());
  PlanSubject subject;
  subject.network = "1Gbit";
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("2 machines of 1 core each"));
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("machine: link"));
  PlanQuestion apart = question;
  apart.machines = 0;
  EXPECT_THAT(PlanText(subject, apart, Plan(apart, MachineConstants())),
              Not(HasSubstr("machine: link")));
}

// Two workers sum the rows that either has, instead of pulling and pushing their own.
TEST(KeptRowsTest, AreNotAskedForButAddedUp) {
  const PlanAnswer none = Plan(Question(), MachineConstants());
  const PlanQuestion question = Question("260000");
  EXPECT_EQ(question.shape.tables[1].kept_rows, 260000);
  const PlanAnswer kept = Plan(question, MachineConstants());
  EXPECT_GT(kept.kept_rows_seconds, 0);
  EXPECT_EQ(none.kept_rows_seconds, 0);
  EXPECT_GT(kept.machine_bytes, none.machine_bytes);
  EXPECT_LT(kept.pull_seconds, none.pull_seconds);
}

TEST(KeptRowsTest, OneWorkerHasNothingToAddUp) {
  const auto alone = [](const std::string& kept_rows) {
    PlanQuestion question = Question(kept_rows);
    question.servers = question.workers = 1;
    question.machines = 0;
    return question;
  };
  const PlanAnswer kept = Plan(alone("260000"), MachineConstants());
  const PlanAnswer none = Plan(alone("0"), MachineConstants());
  EXPECT_LT(kept.worker_bytes_in, none.worker_bytes_in);
  EXPECT_LT(kept.worker_bytes_out, none.worker_bytes_out);
  EXPECT_GT(kept.worker_bytes_in, 4.0 * double(alone("0").shape.dense_floats));
  EXPECT_LT(kept.step_seconds, none.step_seconds);
}

// If every row is kept, only dense layers travel, and the sums of all rows that any worker has.
TEST(KeptRowsTest, OfAllRowsLeaveNothingToAskFor) {
  const PlanQuestion question = Question("2600000");
  const PlanAnswer answer = Plan(question, MachineConstants());
  const double dense = 4.0 * double(question.shape.dense_floats);
  const double both = 26 * ExpectedDistinct(1e5, 1, 4096);  // Distinct rows of both workers.
  const double sums = 4.0 * both * (16 + 1) + 26e5 / 8;
  EXPECT_NEAR(answer.machine_bytes, dense + sums, 1e-3 * sums);
}

TEST(KeptRowsTest, BothEndsOfTheRange) {
  const PlanQuestion question = Question();
  JobShape::Table table = question.shape.tables[1];
  KeptRows kept;
  EXPECT_EQ(kept.Add(table, question, 500, 26 * 500), 0);
  EXPECT_EQ(kept.slots, 0);
  EXPECT_EQ(kept.CoreSeconds(MachineConstants(), 2, 1000), 0);
  table.kept_rows = 26e5;
  const double of_feature = ExpectedDistinct(1e5, 1, 2048);
  EXPECT_NEAR(kept.Add(table, question, of_feature, 26 * of_feature), 26 * of_feature, 1e-6);
  EXPECT_GT(kept.all_rows, kept.rows);
  EXPECT_LT(kept.all_rows, 2 * kept.rows);
  EXPECT_EQ(kept.SumBytes(1), 0);
}

}  // namespace
}  // namespace hdps
