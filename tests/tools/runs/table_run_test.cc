// Tests that a job trained on a table in memory ends with the digest of the same job on a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/tools/runs/small_job.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "tools/local_cluster.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kJob =
    SmallJob(R"("train": ["memory:train"], "shuffle_rows": 300, "max_bad_rows": 20)",
             R"(, "transform": "log1p")");

class TableRunTest : public ::testing::Test {
 protected:
  TableRunTest() {
    Random random(1);
    std::vector<std::optional<int32_t>> labels;
    std::vector<std::optional<int64_t>> numbers;
    std::vector<std::optional<uint8_t>> indices;
    Cells texts;
    std::string csv;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t c = random.Below(20), d = random.Below(5);
      const bool bad = i % 100 == 99;
      labels.push_back(bad ? 3 : random.Below(10) < (c % 2 == 0 ? 8 : 2));
      numbers.push_back(static_cast<int64_t>(random.Below(100)));
      texts.push_back("c" + std::to_string(c));
      indices.push_back(static_cast<uint8_t>(d));
      csv += std::to_string(*labels.back()) + "," + std::to_string(*numbers.back()) + "," +
             *texts.back() + "," + std::to_string(d * 11) + "\n";
    }
    table_ = MadeTable(
        {{Numbers<int32_t>("y", labels), Numbers<int64_t>("x", numbers), Texts("c", texts, "vu"),
          Dictionary<uint8_t>("d", indices, Numbers<int16_t>("", {0, 11, 22, 33, 44}))}});
    std::unique_ptr<WritableFile> file = *files_->Create("train.csv");
    EXPECT_TRUE(file->Append(std::as_bytes(std::span(csv))).ok());
    EXPECT_TRUE(file->Close().ok());
  }

  // Returns the digest of the run and the number of its bad rows, or why it failed.
  std::string Digest(const std::string& out, uint32_t workers, bool of_table,
                     const std::vector<std::string>& overrides) {
    Result<Job> job = ParseJob(kJob, "job.json", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    if (of_table) {
      job->data.tables["memory:train"] = table_;
    } else {
      job->data.train = {"train.csv"};
    }
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(*std::move(job));
    options.out = out;
    options.num_workers = workers;
    options.threads = 2;
    const Result<ProcessEnd> end = RunLocalCluster(options, *files_, *clock_);
    EXPECT_TRUE(end.ok()) << end.status().message();
    if (end->status != 0) return end->reason;
    const std::string summary = *ReadWholeFile(*files_, out + "/summary.json", 1u << 20);
    std::string told;
    for (const char* const field : {"\"digest\": ", "\"bad_rows\": "}) {
      const size_t begin = summary.find(field);
      if (begin != std::string::npos) {
        told += summary.substr(begin, summary.find('\n', begin) - begin);
      }
    }
    return told;
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::shared_ptr<const ColumnTable> table_;
};

TEST_F(TableRunTest, ATableTrainsToTheDigestOfTheFile) {
  const std::string one = Digest("table_1", 1, true, {});
  EXPECT_THAT(one, AllOf(HasSubstr("digest"), HasSubstr("\"bad_rows\": 20")));
  EXPECT_EQ(one, Digest("file_1", 1, false, {}));
  EXPECT_EQ(Digest("table_2", 2, true, {}), Digest("file_2", 2, false, {}));
}

TEST_F(TableRunTest, ThatGoesForAShareHeldOutToo) {
  const std::vector<std::string> share = {"data.validation_share=0.3"};
  const std::string table = Digest("table", 2, true, share);
  EXPECT_EQ(table, Digest("file", 2, false, share));
  EXPECT_NE(table, Digest("all", 2, true, {}));
}

TEST_F(TableRunTest, AJobWithATableThatIsNotThereIsRefusedByName) {
  EXPECT_THAT(Digest("other", 1, true, {R"(data.train=["memory:other"])"}),
              HasSubstr("'memory:other' does not exist: it names a table in the memory of a "
                        "program, which only a run inside of that program has; name files"));
}

}  // namespace
}  // namespace hdps
