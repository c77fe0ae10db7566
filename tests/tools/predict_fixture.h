// Fixture that trains a small job in memory and runs hdps predict on files there.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/local_cluster.h"
#include "tools/scoring/scoring.h"

namespace hdps {

inline std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class PredictTest : public ::testing::Test {
 protected:
  // Trains a job with the data section `data` for two epochs; its run is in the folder `out`.
  void Train(const std::string& out, const std::string& data, const std::string& model,
             uint32_t shards = 1) {
    const Result<Job> job =
        ParseJob(R"({"name": "small", "seed": 3, "data": {)" + data + R"(}, "model": {)" + model +
                     R"(, "device": "cpu"}, "train": {"batch_size": 8, "epochs": 2},
            "cluster": {"heartbeat_ms": 50, "shards": )" +
                     std::to_string(shards) + "}}",
                 "job.json", {});
    ASSERT_TRUE(job.ok()) << job.status().message();
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(*job);
    options.out = out;
    options.threads = 1;
    const Result<ProcessEnd> end = RunLocalCluster(options, *files_, *clock_);
    ASSERT_TRUE(end.ok()) << end.status().message();
    ASSERT_EQ(end->status, 0) << end->reason;
  }
  CommonFlags FlagsOf(const std::string& run, bool nan = false) {
    CommonFlags flags;
    flags.checkpoint = run;
    flags.data = "q";
    flags.out = "scores";
    flags.nan_for_bad_rows = nan;
    return flags;
  }
  // Runs predict on `text` and returns the file of --out; checks that a refusal leaves an old file
  // unchanged.
  Result<std::string> Predict(const std::string& run, const std::string& text, bool nan = false) {
    WriteText(*files_, "q", text);
    WriteText(*files_, "scores", "yesterday\n");
    std::ostringstream nothing;
    const Status status = RunPredict(FlagsOf(run, nan), *files_, *executor_, nothing);
    EXPECT_EQ(nothing.str(), "");
    EXPECT_FALSE(files_->Exists("scores.tmp"));
    const std::string there = *ReadWholeFile(*files_, "scores", 1u << 20);
    if (status.ok()) return there;
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
    EXPECT_EQ(there, "yesterday\n");
    EXPECT_THAT(status.message(), ::testing::HasSubstr("q")) << "it names the file";
    return status;
  }
  std::string Refused(const std::string& run, const std::string& text, bool nan = false) {
    const Result<std::string> lines = Predict(run, text, nan);
    EXPECT_FALSE(lines.ok()) << *lines;
    return lines.ok() ? "" : lines.status().message();
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
};

}  // namespace hdps
