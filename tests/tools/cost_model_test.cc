// Tests the plan of a cluster: what follows from its inputs, and what is refused.
#include "tools/plan/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/spec/table_spec.h"
#include "tools/plan/plan_report.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Job JobOf(const std::string& model) {
  Result<Job> job = ParseJob(R"({"data": {"format": "criteo", "train": ["f"]}, "model": )" + model +
                                 R"(, "train": {"batch_size": 4096}})",
                             "job", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *std::move(job);
}

PlanQuestion Question() {
  PlanQuestion question;
  question.shape = *ShapeOf(JobOf(
      R"({"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32],
          "deep_optimizer": {"kind": "adagrad"}})"));
  question.batch = 8192;
  question.servers = 2;
  question.workers = 4;
  question.cores = 8;
  question.network_bytes_per_second = 1e9;
  question.network_round_trip_us = 50;
  question.rows = 26e6;
  question.text_row_bytes = 250;
  return question;
}

TEST(JobShapeTest, CountsProductsKeysAndFloats) {
  const JobShape shape = Question().shape;
  EXPECT_EQ(shape.keys, 26u);
  ASSERT_EQ(shape.tables.size(), 2u);
  EXPECT_EQ(shape.tables[0].dim, 1u);
  EXPECT_EQ(shape.tables[1].dim, 16u);
  EXPECT_EQ(shape.tables[1].state_floats, 16u);
  EXPECT_EQ(shape.tables[1].row_bytes, 4u * (16 + 16));
  EXPECT_EQ(shape.embedding_floats, 26u * (16 + 1));
  double flops = 0;
  for (const Product& product : shape.products) flops += product.flops();
  EXPECT_EQ(flops, 2.0 * (13 + 429 * 64 + 64 * 32 + 32));
  EXPECT_EQ(shape.dense_floats % kDenseChunkFloats, 0u);
  EXPECT_GE(shape.dense_floats, 429u * 64 + 64 * 32 + 32 + 13);
}

// Servers predict the model's needs without building it.
TEST(JobShapeTest, DenseFloatsAreThoseOfTheGraph) {
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "logistic", "fm", "nfm", "pnn",
                           "xdeepfm", "fibinet", "dcn_mix"}) {
    const Job job = JobOf(R"({"type": ")" + std::string(type) + R"("})");
    EXPECT_EQ(DenseFloats(job), ShapeOf(job)->dense_floats) << type;
  }
}

TEST(JobShapeTest, WeightsOf16BitsTakeHalfTheBytes) {
  PlanQuestion question = Question();
  const PlanAnswer full = Plan(question, MachineConstants());
  question.shape = *ShapeOf(JobOf(
      R"({"type": "wide_deep", "embedding_dim": 16, "hidden": [64, 32], "weights": "bf16",
          "deep_optimizer": {"kind": "adagrad"}})"));
  EXPECT_EQ(question.shape.tables[1].row_bytes, 2u * 16 + 4u * 16);
  const PlanAnswer half = Plan(question, MachineConstants());
  EXPECT_EQ(full.server_row_bytes - half.server_row_bytes, half.server_rows * 2 * 16);
  EXPECT_EQ(full.checkpoint_bytes, half.checkpoint_bytes);
}

TEST(PlanTest, RowsThatComeBackFromDiskTakeTime) {
  PlanQuestion question = Question();
  question.one_machine = true;
  const PlanAnswer all = Plan(question, MachineConstants());
  EXPECT_EQ(all.share_in_memory, 1);
  EXPECT_EQ(all.rows_back_seconds, 0);
  double step = all.step_seconds, back = 0;
  for (const double bytes : {1e9, 3e8, 1e8}) {
    question.row_memory_bytes = bytes;
    const PlanAnswer some = Plan(question, MachineConstants());
    EXPECT_GT(some.step_seconds, step);
    EXPECT_GT(some.rows_back, back);
    EXPECT_LT(some.share_in_memory, 1);
    step = some.step_seconds;
    back = some.rows_back;
  }
  EXPECT_GT(Plan(question, MachineConstants()).new_rows_seconds, all.new_rows_seconds);
  question.row_memory_bytes = 1e12;
  EXPECT_EQ(Plan(question, MachineConstants()).step_seconds, all.step_seconds);
  EXPECT_EQ(Plan(question, MachineConstants()).new_rows_seconds, all.new_rows_seconds);
}

// Two workers that wait for each other use less of the cores than two that do not.
TEST(PlanTest, ThreadsThatShareCoresCostMore) {
  PlanQuestion question = Question();
  question.one_machine = true;
  question.cores = 2;
  MachineConstants constants;
  constants.sharing_beside = 0;
  constants.sharing_lockstep = 1;
  const double ideal = Plan(question, constants).step_seconds;
  constants.sharing_lockstep = 0.5;
  EXPECT_NEAR(Plan(question, constants).step_seconds, 2 * ideal, 1e-9);
  question.sync = false;
  constants.sharing_lockstep = 1;
  const double apart = Plan(question, constants).step_seconds;
  constants.sharing_lockstep = 0.5;
  EXPECT_EQ(Plan(question, constants).step_seconds, apart);
  constants.sharing_beside = 0.5;
  EXPECT_GT(Plan(question, constants).core_seconds, 0);
  EXPECT_GT(Plan(question, constants).step_seconds, apart);
}

TEST(PlanTest, RowsThatDataCacheKeepsInMemoryAreTold) {
  PlanQuestion question = Question();
  const PlanAnswer answer = Plan(question, MachineConstants());
  EXPECT_THAT(PlanText({}, question, answer), Not(HasSubstr("data.cache")));
  question.kept_example_bytes = 273;
  question.kept_examples_share = 0.25;
  EXPECT_THAT(PlanText({}, question, answer),
              HasSubstr("parsed rows take 273 B an example, and at most 25 % of the memory"));
  const auto json = nlohmann::json::parse(PlanJson({}, question, answer));
  EXPECT_EQ(json["cache_example_bytes"], 273);
  EXPECT_EQ(json["cache_share"], 0.25);
}

TEST(PlanTest, BytesOfTheLinksFollowFromTheKeys) {
  PlanQuestion question = Question();
  question.unique_share = 0.25;
  question.lookahead = 0;
  const PlanAnswer answer = Plan(question, MachineConstants());
  const double keys = 8192.0 / 4 * 26 * 0.25;
  const double dense = 4.0 * double(question.shape.dense_floats);
  EXPECT_NEAR(answer.worker_bytes_in, keys * 17 * 4 + dense, 1);
  // The keys of two tables, once, and the gradients.
  EXPECT_NEAR(answer.worker_bytes_out, 2 * keys * 8 + keys * 17 * 4 + dense, 1);
  EXPECT_NEAR(answer.server_bytes_out, 2 * answer.worker_bytes_in, 1);
  question.allreduce = true;
  const PlanAnswer reduced = Plan(question, MachineConstants());
  EXPECT_NEAR(reduced.worker_bytes_in, keys * 17 * 4 + 2 * 0.75 * dense, 1);
}

TEST(PlanTest, MemoryIsSharedByTheServers) {
  PlanQuestion question = Question();
  const PlanAnswer two = Plan(question, MachineConstants());
  question.servers = 4;
  const PlanAnswer four = Plan(question, MachineConstants());
  EXPECT_NEAR(four.server_index_bytes, two.server_index_bytes / 2, 1);
  EXPECT_NEAR(four.server_row_bytes, two.server_row_bytes / 2, 1);
  // Deep: 16 and state; wide: FTRL with two floats of state.
  const double dense =
      4.0 * double(question.shape.dense_floats + question.shape.dense_state_floats);
  double floats = 0;
  for (const JobShape::Table& table : question.shape.tables) {
    floats += table.dim + table.state_floats;
  }
  EXPECT_NEAR(two.server_row_bytes, 13e6 * 4 * floats + dense / 2, 1);
  EXPECT_LT(four.checkpoint_seconds, two.checkpoint_seconds);
}

TEST(PlanTest, FasterPartsNeverMakeASlowerStep) {
  const PlanQuestion question = Question();
  const double step = Plan(question, MachineConstants()).step_seconds;
  PlanQuestion better = question;
  better.network_bytes_per_second *= 4;
  EXPECT_LE(Plan(better, MachineConstants()).step_seconds, step);
  better = question;
  better.cores *= 2;
  EXPECT_LE(Plan(better, MachineConstants()).step_seconds, step);
  better.network_bytes_per_second *= 4;
  EXPECT_LT(Plan(better, MachineConstants()).step_seconds, step);
  better = question;
  better.unique_share = 0.01;
  EXPECT_LT(Plan(better, MachineConstants()).step_seconds, step);
}

// Prefetched rows arrive during the previous step; rows that its push changed are sent again.
TEST(PlanTest, RowsAskedAheadHideBehindCompute) {
  PlanQuestion question = Question();
  question.servers = question.workers;
  question.changed_share = 0.25;
  question.lookahead = 0;
  const PlanAnswer in_turn = Plan(question, MachineConstants());
  EXPECT_EQ(in_turn.repair_seconds, 0);
  question.lookahead = 1;
  const PlanAnswer ahead = Plan(question, MachineConstants());
  EXPECT_LT(ahead.step_seconds, in_turn.step_seconds);
  // At best the pull is hidden completely, or takes all the time that can hide it.
  EXPECT_GT(ahead.step_seconds, in_turn.step_seconds -
                                    std::max(in_turn.pull_seconds, in_turn.compute_seconds) -
                                    in_turn.worker_bytes_in / 1e9);
  double floats = 0;
  for (const JobShape::Table& table : question.shape.tables) {
    floats += 2048.0 * table.features * ahead.unique_share * table.dim;
  }
  EXPECT_NEAR(ahead.worker_bytes_in - in_turn.worker_bytes_in, 0.25 * floats * 4, 1);
  question.changed_share = 1;
  EXPECT_GT(Plan(question, MachineConstants()).step_seconds, ahead.step_seconds);
  // Without a common order of steps nothing is repaired.
  question.sync = false;
  EXPECT_EQ(Plan(question, MachineConstants()).worker_bytes_in, in_turn.worker_bytes_in);
  EXPECT_LT(Plan(question, MachineConstants()).repair_seconds, ahead.repair_seconds);
}

TEST(PlanTest, MoreWorkersChangeMoreOfTheRowsOfAStep) {
  PlanQuestion question = Question();
  double changed = 0;
  for (const uint32_t workers : {1u, 4u, 64u}) {
    question.workers = workers;
    question.batch = 2048 * workers;
    const PlanAnswer answer = Plan(question, MachineConstants());
    EXPECT_GT(answer.changed_share, changed);
    EXPECT_LT(answer.changed_share, 1);
    changed = answer.changed_share;
  }
}

TEST(PlanTest, MachinesDoNotShareMemory) {
  PlanQuestion question = Question();
  question.workers = question.servers = 1;
  question.network_bytes_per_second = 1e12;
  question.network_round_trip_us = 0;
  const PlanAnswer apart = Plan(question, MachineConstants());
  question.one_machine = true;
  const PlanAnswer together = Plan(question, MachineConstants());
  EXPECT_LT(together.pull_seconds, apart.pull_seconds);
  EXPECT_LT(together.push_seconds, apart.push_seconds);
  question.inproc = true;
  EXPECT_LT(Plan(question, MachineConstants()).pull_seconds, together.pull_seconds);
}

TEST(PlanTest, AFirstLayerOnDistinctRowsPaysWhereTheyAreFew) {
  PlanQuestion question = Question();
  const auto shape_of = [](const std::string& first_layer) {
    return *ShapeOf(JobOf(R"({"type": "wide_deep", "embedding_dim": 80, "hidden": [1024, 64],
                              "first_layer": ")" +
                          first_layer + "\"}"));
  };
  question.unique_share = 0.1;
  question.shape = shape_of("plain");
  const PlanAnswer plain = Plan(question, MachineConstants());
  EXPECT_FALSE(plain.first_layer_on_rows);
  question.shape = shape_of("auto");
  EXPECT_EQ(question.shape.products[1].row_features, 26u);
  EXPECT_EQ(question.shape.products[1].row_dim, 80u);
  const PlanAnswer chosen = Plan(question, MachineConstants());
  EXPECT_TRUE(chosen.first_layer_on_rows);
  EXPECT_LT(chosen.products_seconds, 0.6 * plain.products_seconds);
  question.unique_share = 1;
  EXPECT_FALSE(Plan(question, MachineConstants()).first_layer_on_rows);
  question.shape = shape_of("unique_rows");
  EXPECT_TRUE(Plan(question, MachineConstants()).first_layer_on_rows);
}

TEST(PlanTest, NewRowsCostMore) {
  const PlanQuestion question = Question();
  MachineConstants constants;
  const double once = Plan(question, constants).new_rows_seconds;
  EXPECT_GT(once, 0);
  constants.server_new_row_ns *= 2;
  constants.server_new_float_ns *= 2;
  EXPECT_NEAR(Plan(question, constants).new_rows_seconds, 2 * once, 1e-9);
}

TEST(PlanTest, ASlowNetworkIsTheBottleneck) {
  PlanQuestion question = Question();
  question.workers = 64;
  question.batch = 64 * 4096;
  question.network_bytes_per_second = 1e7;
  const PlanAnswer answer = Plan(question, MachineConstants());
  EXPECT_EQ(answer.parts[answer.bottleneck].name, "server: link");
  EXPECT_GE(answer.step_seconds, answer.server_bytes_in / 1e7);
}

// Each of many workers draws the rows of all others, and looks at them in the first epoch.
TEST(PlanTest, ManyWorkersAreBoundByReading) {
  PlanQuestion question = Question();
  question.workers = 4096;
  question.servers = 4096;
  question.batch = 4096 * 4096;
  question.network_bytes_per_second = 1e12;
  MachineConstants constants;
  constants.server_message_us = 0;
  const PlanAnswer later = Plan(question, constants);
  EXPECT_EQ(later.bottleneck, kReading);
  EXPECT_EQ(later.parts[kReading].name, "worker: reading and deduplicating");
  EXPECT_EQ(later.step_seconds, later.reader_seconds);
  EXPECT_NEAR(later.first_epoch_seconds, 1e-9 * 4096 * 4096 * 250 * constants.find_byte_ns, 1e-6);
  EXPECT_THAT(PlanText({}, question, later), HasSubstr("more in the first epoch"));
  question.first_epoch = true;
  const PlanAnswer first = Plan(question, constants);
  EXPECT_NEAR(first.reader_seconds, later.reader_seconds + later.first_epoch_seconds, 1e-9);
  // A few workers read all data.
  question.workers = 8;
  question.batch = 8 * 4096;
  EXPECT_EQ(Plan(question, constants).first_epoch_seconds, 0);
}

TEST(PlanTest, SixteenBitsOnTheWireAreHalfTheBytes) {
  PlanQuestion question = Question();
  const PlanAnswer full = Plan(question, MachineConstants());
  question.wire_float_bytes = 2;
  const PlanAnswer half = Plan(question, MachineConstants());
  EXPECT_NEAR(half.worker_bytes_in, full.worker_bytes_in / 2, 1);
  EXPECT_LT(half.worker_bytes_out, full.worker_bytes_out);
  EXPECT_GT(half.worker_bytes_out, full.worker_bytes_out / 2);  // Keys keep their size.
  EXPECT_LT(half.step_seconds, full.step_seconds);
}

TEST(PlanTest, StepsBetweenCheckpointsAreTrainedAgain) {
  PlanQuestion question = Question();
  const PlanAnswer none = Plan(question, MachineConstants());
  question.checkpoint_every_steps = 1000;
  const PlanAnswer some = Plan(question, MachineConstants());
  EXPECT_NEAR(some.recovery_seconds - none.recovery_seconds, 500 * some.step_seconds, 1e-9);
  EXPECT_THAT(PlanText({}, question, some), HasSubstr("training again"));
  question.checkpoint_every_steps = 0;
  EXPECT_THAT(PlanText({}, question, none), HasSubstr("all steps anew"));
}

TEST(PlanReportTest, NamesTheBottleneckInWordsAndInJson) {
  const PlanQuestion question = Question();
  const PlanAnswer answer = Plan(question, MachineConstants());
  const PlanSubject subject = {"census", "wide_deep", "sync", "8Gbit", "", ""};
  const std::string bottleneck = answer.parts[answer.bottleneck].name;
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("bottleneck   " + bottleneck));
  const auto json = nlohmann::json::parse(PlanJson(subject, question, answer));
  EXPECT_EQ(json["bottleneck"], bottleneck);
  EXPECT_EQ(json["examples_per_second"], answer.examples_per_second);
}

TEST(PlanReportTest, SaysWhatALimitMeans) {
  PlanQuestion question = Question();
  PlanSubject subject;
  EXPECT_THAT(PlanText(subject, question, Plan(question, MachineConstants())),
              Not(HasSubstr("cluster.memory_limit")));
  question.row_memory_bytes = 3e8;
  const PlanAnswer answer = Plan(question, MachineConstants());
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("come back a step"));
  EXPECT_THAT(PlanText(subject, question, answer), Not(HasSubstr("too small")));
  EXPECT_THAT(PlanText(subject, question, answer), Not(HasSubstr("predicted as in fp32")));
  subject.bf16 = true;
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("predicted as in fp32"));
  subject.too_small = "give more";
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("too small: give more"));
  EXPECT_GT(nlohmann::json::parse(PlanJson(subject, question, answer))["rows_back"], 0);
}

}  // namespace
}  // namespace hdps
