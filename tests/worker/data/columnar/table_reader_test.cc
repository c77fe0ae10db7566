// Tests that a table is read as a CSV file of the same values: the same rows in the same batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"
#include "worker/data/formats/row_lanes.h"
#include "worker/data/held_out/share_look.h"
#include "worker/data/item_pool.h"

namespace hdps {
namespace {

constexpr const char* kTable = "memory:train";
constexpr const char* kFile = "rows.csv";

// The same rows twice: as cells of a table and as the lines of a file, written apart.
struct SameRows {
  MadeBatches batches;
  std::string csv;
};

// Makes `count` rows in batches of up to 97, at least one. If `bad_every` is not 0, the price of
// each such row is no number.
SameRows MakeRows(size_t count, size_t bad_every = 0) {
  SameRows made;
  Random random(5);
  const char* const colors[] = {"red", "green", "dark, blue", "a \"quoted\" one"};
  for (size_t begin = 0; begin < std::max<size_t>(1, count); begin += 97) {
    const size_t end = std::min(begin + 97, count);
    std::vector<std::optional<int64_t>> users, clicks;
    std::vector<std::optional<double>> ages;
    std::vector<std::optional<int32_t>> color_indices;
    std::vector<std::optional<int>> lengths;
    Cells tags, prices;
    for (size_t row = begin; row < end; ++row) {
      const bool click = random.Below(3) == 0;
      clicks.push_back(click ? 1 : 0);
      made.csv += click ? "1," : "0,";
      const auto user = static_cast<int64_t>(random.Below(40)) - 20;
      users.push_back(user == 0 ? std::nullopt : std::optional(user));
      made.csv += (user == 0 ? "" : std::to_string(user)) + ",";
      const auto quarters = static_cast<int64_t>(random.Below(200));
      ages.push_back(quarters == 0 ? std::nullopt
                                   : std::optional(static_cast<double>(quarters) / 4));
      const char* const parts[] = {".0", ".25", ".5", ".75"};
      if (quarters != 0) made.csv += std::to_string(quarters / 4) + parts[quarters % 4];
      const auto color = static_cast<int32_t>(random.Below(4));
      color_indices.push_back(color);
      const char* const written[] = {"red", "green", "\"dark, blue\"", "\"a \"\"quoted\"\" one\""};
      made.csv += std::string(",") + written[color] + ",";
      const auto many = static_cast<int>(random.Below(4));
      lengths.push_back(many == 3 ? std::nullopt : std::optional(many));
      for (int i = 0; i < many && many < 3; ++i) {
        tags.push_back("t" + std::to_string(random.Below(9)));
        made.csv += (i == 0 ? "" : "|") + *tags.back();
      }
      const bool bad = bad_every != 0 && row % bad_every == bad_every - 1;
      prices.push_back(bad ? "dear" : std::to_string(random.Below(1000)));
      made.csv += "," + *prices.back() + "\n";
    }
    Cells values;
    for (const char* const value : colors) values.push_back(value);
    made.batches.push_back({Numbers<int64_t>("click", clicks), Numbers<int64_t>("user", users),
                            Numbers<double>("age", ages),
                            Dictionary<int32_t>("color", color_indices, Texts("", values, "vu")),
                            Lists("tags", lengths, Texts("item", tags, "U"), "+L"),
                            Texts("price", prices)});
  }
  return made;
}

Job JobOf(const std::string& more) {
  const auto job = ParseJob(R"({
    "data": {"train": ["memory:train"], "shuffle_rows": 200,
             "columns": [{"name": "click", "type": "label"}, {"name": "user"},
                         {"name": "age", "type": "numeric", "transform": "log1p"},
                         {"name": "color"}, {"name": "tags", "type": "multi"},
                         {"name": "price", "type": "numeric"}],
             "features": [{"name": "cross", "kind": "crossed", "from": ["user", "color"]},
                          {"name": "decade", "kind": "bucketized", "from": ["age"],
                           "boundaries": [10, 20, 30, 40]}])" +
                                more + R"(},
    "model": {"type": "logistic"}})",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

class TableReaderTest : public ::testing::Test {
 protected:
  // Reads both, and returns what the file gave.
  TwoEpochs Same(const SameRows& rows, Job job, ReaderOptions options) {
    WriteText(*files_, kFile, rows.csv);
    job.data.tables[kTable] = MadeTable(rows.batches);
    Job of_file = job;
    of_file.data.train = {kFile};
    options.seed = job.seed;
    ReaderOptions file_options = options;
    if (job.data.negatives.per_positive > 0) {
      options.items = std::make_shared<ItemPool>(*files_, job);
      file_options.items = std::make_shared<ItemPool>(*files_, of_file);
    }
    const TwoEpochs table = ReadTwoEpochs(*files_, job.data, options);
    TwoEpochs file = ReadTwoEpochs(*files_, of_file.data, file_options);
    ExpectSame(table.batches, file.batches);
    EXPECT_EQ(table.bad_rows, file.bad_rows);
    EXPECT_EQ(table.problem.empty(), file.problem.empty()) << table.problem << file.problem;
    EXPECT_EQ(CountRows(*files_, job.data, job.data.train, options).ok(), true);
    EXPECT_EQ(*CountRows(*files_, job.data, job.data.train, options),
              *CountRows(*files_, of_file.data, of_file.data.train, file_options));
    table_problem_ = table.problem;
    return file;
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::string table_problem_;
};

TEST_F(TableReaderTest, RowsAreShuffledAndSplitAsThoseOfAFile) {
  const SameRows rows = MakeRows(1000);
  const Job job = JobOf("");
  EXPECT_EQ(Same(rows, job, {.batch_size = 64, .shuffle = false}).batches.size(), 32u);
  for (const uint32_t part : {0u, 1u, 2u}) {
    Same(rows, job, {.batch_size = 64, .part = part, .num_parts = 3});
  }
  Same(rows, job, {.batch_size = 64, .fill_last = true});
  Same(rows, job, {.batch_size = 64, .own_rows = ReaderOptions::Range{10, 30}});
  // As many parts as make a reader of files keep an index.
  Same(rows, job, {.batch_size = 256, .part = 17, .num_parts = kPartsMany});
  Same(MakeRows(0), JobOf(""), {.batch_size = 64});
}

TEST_F(TableReaderTest, TheSameRowsAreHeldOut) {
  const SameRows rows = MakeRows(1000);
  for (const char* const more : {R"(, "validation_share": 0.3)",
                                 R"(, "validation_share": 0.3, "validation_block_lines": 50)"}) {
    const Job job = JobOf(more);
    uint64_t all = 0;
    for (const RowSide side : {RowSide::kTrained, RowSide::kHeldOut}) {
      const TwoEpochs read = Same(rows, job, {.batch_size = 64, .side = side});
      for (const Batch& batch : read.batches) all += batch.num_examples;
      EXPECT_GT(read.batches.size(), 5u);
    }
    EXPECT_EQ(all, 2 * 1000u);
  }
}

TEST_F(TableReaderTest, TheShareIsLookedAtAlike) {
  const SameRows rows = MakeRows(500);
  WriteText(*files_, kFile, rows.csv);
  Job job = JobOf(R"(, "validation_share": 0.2)");
  job.data.tables[kTable] = MadeTable(rows.batches);
  const Result<ShareLook> table = LookAtShare(*files_, job);
  job.data.train = {kFile};
  const Result<ShareLook> file = LookAtShare(*files_, job);
  ASSERT_TRUE(table.ok() && file.ok());
  EXPECT_TRUE(table->whole);
  EXPECT_EQ(table->held_out, file->held_out);
  EXPECT_EQ(table->different, file->different);
  EXPECT_EQ(table->held_out_labels, file->held_out_labels);
}

TEST_F(TableReaderTest, BadRowsAreCountedWithTheirNumber) {
  const SameRows rows = MakeRows(1000, /*bad_every=*/100);
  EXPECT_EQ(Same(rows, JobOf(R"(, "max_bad_rows": 10)"), {.batch_size = 64}).bad_rows, 20u);
  Same(rows, JobOf(R"(, "max_bad_rows": 9)"), {.batch_size = 64, .shuffle = false});
  EXPECT_EQ(table_problem_,
            "memory:train row 999: 'dear': expected a number in column 'price' (bad rows: 10, "
            "data.max_bad_rows: 9; set it higher to pass over them)");
}

TEST_F(TableReaderTest, NegativesAreMadeOfTheSameItems) {
  const TwoEpochs read =
      Same(MakeRows(600),
           JobOf(R"(, "item_features": ["color", "tags"], "negatives": {"per_positive": 2})"),
           {.batch_size = 64});
  uint64_t all = 0;
  for (const Batch& batch : read.batches) all += batch.num_examples;
  EXPECT_GT(all, 1400u);
}

// A thread for each piece.
class ManyThreads : public Executor {
 public:
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
  }
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return kLaneThreadsMin; }
};

TEST_F(TableReaderTest, SeveralThreadsMakeTheSameBatches) {
  ManyThreads threads;
  Same(MakeRows(3000, /*bad_every=*/700), JobOf(R"(, "max_bad_rows": 10)"),
       {.batch_size = 1200, .executor = &threads});
}

}  // namespace
}  // namespace hdps
