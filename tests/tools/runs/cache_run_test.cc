// Tests that jobs which keep parsed rows end with the parameters of those that read text.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/random.h"
#include "tests/tools/runs/small_job.h"
#include "tools/local_cluster.h"
#include "tools/prepare/kept_rows.h"

namespace hdps {
namespace {

class CacheRunTest : public ::testing::Test {
 protected:
  CacheRunTest() {
    Random random(1);
    std::string text;
    for (int i = 0; i < 1000; ++i) {
      const uint64_t c = random.Below(20), d = random.Below(5);
      const bool label = random.Below(10) < (c % 2 == 0 ? 8 : 2);
      text += i % 97 == 5
                  ? "no row\n"
                  : std::string(label ? "1" : "0") + "," + std::to_string(random.Below(99)) + ",c" +
                        std::to_string(c) + ",d" + std::to_string(d) + "\n";
    }
    auto file = *files_->Create("train.csv");
    EXPECT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
    EXPECT_TRUE(file->Close().ok());
  }

  Job JobOf(const std::vector<std::string>& overrides) {
    const std::string job = SmallJob(
        R"("train": ["train.csv"], "validation_share": 0.2, "max_bad_rows": 100,
           "shuffle_rows": 100, "item_features": ["c"])");
    Result<Job> parsed = ParseJob(job, "job.json", overrides);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return *std::move(parsed);
  }
  // Runs the job to its end, or to `max_steps`, and returns its digest.
  std::string Run(const std::string& out, uint32_t workers, std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"train.epochs=3", "train.eval_every_steps=5"});
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(JobOf(overrides));
    options.out = out;
    options.num_servers = 2;
    options.num_workers = workers;
    options.threads = 1;
    const Result<ProcessEnd> end = RunLocalCluster(options, *files_, *clock_);
    EXPECT_TRUE(end.ok()) << end.status().message();
    EXPECT_TRUE(!end.ok() || end->status == 0) << end->reason;
    return Field(out, "digest") + " bad rows " + Field(out, "bad_rows") + " loss " +
           Field(out, "eval_loss");
  }
  std::string Field(const std::string& out, const std::string& name) {
    const Result<std::string> text = ReadWholeFile(*files_, out + "/summary.json", 1u << 20);
    const size_t begin = text.ok() ? text->find("\"" + name + "\": ") : std::string::npos;
    if (begin == std::string::npos) return "";
    const size_t value = begin + name.size() + 4;
    return text->substr(value, text->find_first_of(",\n", value) - value);
  }
  size_t FilesIn(const std::string& folder) {
    const auto names = files_->List(folder);
    return names.ok() ? names->size() : 0;
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
};

TEST_F(CacheRunTest, TheDigestIsThatOfText) {
  for (const std::string negatives : {"0", "2"}) {
    for (const uint32_t workers : {1u, 3u}) {
      const std::string name = negatives + std::to_string(workers);
      const auto run = [&](const std::string& cache) {
        return Run(cache + name, workers,
                   {"data.cache=" + cache, "data.negatives.per_positive=" + negatives});
      };
      const std::string wanted = run("none");
      EXPECT_GT(wanted.size(), 30u) << wanted;
      EXPECT_EQ(run("memory"), wanted);
      EXPECT_EQ(run("disk"), wanted);
      EXPECT_EQ(run("auto"), wanted);
      EXPECT_EQ(FilesIn("disk" + name + "/rows"), 2u) << "of rows trained on and held out";
      EXPECT_EQ(FilesIn("auto" + name + "/rows"), 0u);
    }
  }
}

// An epoch has 13 steps.
TEST_F(CacheRunTest, ResumedRunsHaveTheDigestOfText) {
  for (const uint32_t workers : {1u, 3u}) {
    const std::string wanted = Run("text" + std::to_string(workers), workers, {"data.cache=none"});
    for (const std::string cache : {"memory", "disk"}) {
      for (const std::string stop : {"6", "19"}) {
        const std::string out = cache + stop + std::to_string(workers);
        Run(out, workers, {"data.cache=" + cache, "train.max_steps=" + stop});
        EXPECT_EQ(Run(out, workers, {"data.cache=" + cache}), wanted) << out;
        EXPECT_EQ(Field(out, "resumed_from"), stop);
      }
    }
  }
}

TEST_F(CacheRunTest, RowsThatWereKeptBeforehandAreRead) {
  const std::vector<std::string> settings = {"data.cache_path=beforehand"};
  for (const bool were_there : {false, true}) {
    const auto kept = KeepRowsOf(JobOf(settings), *files_);
    ASSERT_TRUE(kept.ok()) << kept.status().message();
    ASSERT_EQ(kept->size(), 2u);
    EXPECT_EQ((*kept)[0].rows + (*kept)[1].rows, 1000u);
    EXPECT_EQ((*kept)[0].were_there, were_there);
  }
  const std::string wanted = Run("text", 3, {"data.cache=none"});
  EXPECT_EQ(Run("kept", 3, settings), wanted);
  EXPECT_EQ(FilesIn("beforehand"), 2u);
  EXPECT_EQ(KeepRowsOf(JobOf({}), *files_).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hdps
