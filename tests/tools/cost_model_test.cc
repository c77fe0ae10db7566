// The plan of a cluster: what follows from the numbers it is given, and what it refuses.
#include "tools/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "common/random.h"
#include "tools/plan_report.h"
#include "worker/data/zipf.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

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

TEST(ExpectedDistinctTest, AgreesWithDraws) {
  for (const double exponent : {0.0, 1.05, 1.5}) {
    constexpr uint64_t kCount = 10'000;
    constexpr int kDraws = 4096;
    const Zipf zipf(kCount, exponent);
    Random random(7);
    double sum = 0;
    constexpr int kTimes = 20;
    for (int time = 0; time < kTimes; ++time) {
      std::set<uint64_t> seen;
      for (int draw = 0; draw < kDraws; ++draw) seen.insert(zipf.Draw(random));
      sum += static_cast<double>(seen.size());
    }
    EXPECT_NEAR(ExpectedDistinct(kCount, exponent, kDraws), sum / kTimes, 0.02 * sum / kTimes)
        << exponent;
  }
}

TEST(ExpectedDistinctTest, IsAtMostWhatThereIs) {
  EXPECT_NEAR(ExpectedDistinct(3, 0, 1e6), 3, 1e-9);
  EXPECT_NEAR(ExpectedDistinct(1e9, 0, 10), 10, 1e-3);
  EXPECT_NEAR(ExpectedDistinct(1, 1.05, 5), 1, 1e-6);
}

TEST(PlanTest, BytesOfTheLinksFollowFromTheKeys) {
  PlanQuestion question = Question();
  question.unique_share = 0.25;
  const PlanAnswer answer = Plan(question, MachineConstants());
  const double keys = 8192.0 / 4 * 26 * 0.25;
  const double dense = 4.0 * double(question.shape.dense_floats);
  EXPECT_NEAR(answer.worker_bytes_in, keys * 17 * 4 + dense, 1);
  // Keys of two tables, to pull and to push, and the gradients.
  EXPECT_NEAR(answer.worker_bytes_out, 2 * 2 * keys * 8 + keys * 17 * 4 + dense, 1);
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
  EXPECT_LT(Plan(better, MachineConstants()).step_seconds, step);
  better = question;
  better.steps_ahead = 2;
  EXPECT_LT(Plan(better, MachineConstants()).step_seconds, step);
  better = question;
  better.unique_share = 0.01;
  EXPECT_LT(Plan(better, MachineConstants()).step_seconds, step);
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

// Each of many workers looks at the rows of all others.
TEST(PlanTest, ManyWorkersAreBoundByReading) {
  PlanQuestion question = Question();
  question.workers = 1024;
  question.servers = 1024;
  question.batch = 1024 * 4096;
  question.network_bytes_per_second = 1e11;
  const PlanAnswer answer = Plan(question, MachineConstants());
  EXPECT_EQ(answer.bottleneck, kReading);
  EXPECT_EQ(answer.parts[kReading].name, "worker: reading and deduplicating");
  EXPECT_EQ(answer.step_seconds, answer.reader_seconds);
  EXPECT_THAT(PlanText({}, question, answer), HasSubstr("every worker looks at all rows"));
}

TEST(PlanTest, StepsBetweenCheckpointsAreTrainedAgain) {
  PlanQuestion question = Question();
  const PlanAnswer none = Plan(question, MachineConstants());
  question.checkpoint_every_steps = 1000;
  const PlanAnswer some = Plan(question, MachineConstants());
  EXPECT_NEAR(some.recovery_seconds - none.recovery_seconds, 500 * some.step_seconds, 1e-9);
}

TEST(PlanReportTest, NamesTheBottleneckInWordsAndInJson) {
  const PlanQuestion question = Question();
  const PlanAnswer answer = Plan(question, MachineConstants());
  const PlanSubject subject = {"census", "wide_deep", "sync", "8Gbit", ""};
  const std::string bottleneck = answer.parts[answer.bottleneck].name;
  EXPECT_THAT(PlanText(subject, question, answer), HasSubstr("bottleneck   " + bottleneck));
  const auto json = nlohmann::json::parse(PlanJson(subject, question, answer));
  EXPECT_EQ(json["bottleneck"], bottleneck);
  EXPECT_EQ(json["examples_per_second"], answer.examples_per_second);
}

// ---- Constants ---------------------------------------------------------------------------------

std::map<std::string, double> AllValues() {
  std::map<std::string, double> values;
  double next = 1;
  for (const ConstantName& name : AllConstants()) values[name.name] = next++;
  for (const ExchangeName& name : AllExchanges()) {
    for (const char* part : {"base", "row", "float", "dense_float"}) {
      values[std::string(name.name) + "." + part] = next++;
    }
  }
  values["products_429x1024_batch4096.rate"] = 100;
  values["products_64x32_batch4096.rate"] = 20;
  return values;
}

TEST(MachineConstantsTest, EachNameHasItsField) {
  const Result<MachineConstants> constants = ConstantsFrom(AllValues());
  ASSERT_TRUE(constants.ok()) << constants.status().message();
  double next = 1;
  for (const ConstantName& name : AllConstants()) {
    EXPECT_EQ((*constants).*name.field, next++) << name.name;
  }
  EXPECT_EQ(constants->tcp_push.dense_float_ns, constants->tcp_push.base_us + 3);
  ASSERT_EQ(constants->products.size(), 2u);
}

TEST(MachineConstantsTest, WhatIsMissingIsNamed) {
  for (const auto& [name, value] : AllValues()) {
    if (name.starts_with("products")) continue;
    auto values = AllValues();
    values.erase(name);
    const Status status = ConstantsFrom(values).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("'" + name + "' is missing"));
    values[name] = -value;
    EXPECT_THAT(ConstantsFrom(values).status().message(), HasSubstr("expected 0 or more"));
  }
}

TEST(MachineConstantsTest, AMeasuredShapeCountsMost) {
  const MachineConstants constants = *ConstantsFrom(AllValues());
  EXPECT_NEAR(constants.GflopsFor(429, 1024, 4096), 100, 2);
  EXPECT_NEAR(constants.GflopsFor(64, 32, 4096), 20, 1);
  const double between = constants.GflopsFor(180, 180, 4096);
  EXPECT_GT(between, 20);
  EXPECT_LT(between, 100);
}

TEST(MachineConstantsTest, OtherFilesAreRefused) {
  const auto files = NewMemoryFileSystem();
  for (const char* text : {"", "no JSON", "[]", "{}", R"({"results": [1, {"bench": 7}]})"}) {
    ASSERT_TRUE(WriteFileAtomically(*files, "c.json", std::string(text)).ok());
    const Status status = ReadConstants(*files, "c.json").status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr("c.json"));
    EXPECT_THAT(status.message(), HasSubstr("hdps-bench constants --json=FILE"));
  }
  EXPECT_THAT(ReadConstants(*files, "nowhere.json").status().message(), HasSubstr("nowhere.json"));
}

}  // namespace
}  // namespace hdps
