// Tests the files of the log: their bounds, and what becomes of rows for which there is no room.
#include "tools/serve/watch/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/fault_file_system.h"
#include "common/platform/monotonic_clock.h"
#include "tests/common/platform/settable_clock.h"
#include "tests/tools/serve/watch/scripted_model.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/columnar/file_tables.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

Job SmallJob() {
  return *ParseJob(R"({"name": "ctr", "data": {"train": ["t"], "header": true, "columns": [
                        {"name": "y", "type": "label"}, {"name": "user"}]},
                      "model": {"type": "logistic", "device": "cpu"}})",
                   "job.json", {});
}

// Tells the log of an answer to a row of this user.
void See(RequestLog& log, const std::string& user) {
  ScoreRequest request;
  request.rows = TableOfTexts({"user"}, {{user}});
  const ScoreAnswer answer = AnswerOf({0.5f});
  log.Saw({.request = &request, .answer = &answer});
}

std::string Text(FileSystem& files, const std::string& path) {
  const Result<std::string> text = ReadWholeFile(files, path, 1u << 20);
  return text.ok() ? *text : "none";
}

TEST(RequestLog, RotatesWithinItsBytes) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  WriteText(*files, "log", "of another run\n");
  constexpr uint64_t kBytesMax = 8 * 400;
  const Job job = SmallJob();
  auto log = RequestLog::Open(*files, job, {.path = "log", .share = 1, .bytes_max = kBytesMax});
  ASSERT_TRUE(log.ok()) << log.status().message();
  constexpr int kRows = 300;
  for (int i = 0; i < kRows; ++i) See(**log, "u" + std::to_string(i));
  // A request without an answer, and answers without predictions, are no rows.
  (*log)->Saw({.code = 400});
  (*log)->Close();
  EXPECT_EQ((*log)->logged_rows(), uint64_t{kRows});
  EXPECT_EQ((*log)->unlogged_rows(), 0u);
  EXPECT_FALSE(files->Exists("log.8"));
  std::string rows;
  for (int number = 7; number >= 0; --number) {
    const std::string text = Text(*files, number == 0 ? "log" : "log." + std::to_string(number));
    EXPECT_LE(text.size(), kBytesMax / 8);
    const size_t header = text.find('\n') + 1;
    EXPECT_EQ(text.substr(0, header), "y,user,hdps_id,hdps_row,hdps_time,hdps_step,hdps_score\n");
    rows += text.substr(header);
  }
  // The last rows are all there, in their order.
  size_t lines = 0, at = 0;
  for (const char c : rows) lines += c == '\n';
  for (size_t i = kRows - lines; i < kRows; ++i) {
    at = rows.find(",u" + std::to_string(i) + ",", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_GT(lines, 50u);

  // A further run keeps the files of this one.
  const std::string newest = Text(*files, "log");
  log = RequestLog::Open(*files, job, {.path = "log", .share = 1, .bytes_max = kBytesMax});
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(Text(*files, "log.1"), newest);
}

// A fault of the log's files from 1000 ms on.
FileFault FaultOfLog(FileFault::Kind kind, uint64_t amount) {
  FileFault fault;
  fault.kind = kind;
  fault.glob = "log*";
  fault.amount = amount;
  fault.window.from_ms = 1000;
  return fault;
}

void WaitForRows(const RequestLog& log, uint64_t rows) {
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t deadline = clock->NowMs() + 60'000;
  while (log.logged_rows() + log.unlogged_rows() < rows) {
    ASSERT_LT(clock->NowMs(), deadline) << "row " << rows << " is neither written nor left out";
    std::this_thread::yield();
  }
}

TEST(RequestLog, LeavesRowsOutWhileTheDiskIsFullAndGoesOn) {
  const auto clock = std::make_shared<SettableClock>();
  clock->now_ms = 0;
  FaultFileOptions options;
  options.faults.push_back(FaultOfLog(FileFault::Kind::kFull, /*amount=*/0));
  options.faults[0].window.for_ms = 1000;
  const std::unique_ptr<FileSystem> files =
      NewFaultFileSystem(NewMemoryFileSystem(), options, clock);
  const auto log = RequestLog::Open(*files, SmallJob(), {.path = "log", .share = 1});
  ASSERT_TRUE(log.ok()) << log.status().message();
  See(**log, "a");
  WaitForRows(**log, 1);
  clock->now_ms = 1500;
  for (uint64_t row = 2; row <= 20; ++row) {
    See(**log, "b");
    WaitForRows(**log, row);
  }
  EXPECT_EQ((*log)->unlogged_rows(), 19u);
  clock->now_ms = 2500;
  See(**log, "c");
  (*log)->Close();
  EXPECT_EQ((*log)->logged_rows(), 2u);
  // However often it was tried, files with rows are kept.
  EXPECT_THAT(Text(*files, "log.1"), HasSubstr(",a,"));
  EXPECT_THAT(Text(*files, "log"), HasSubstr(",c,"));
  EXPECT_FALSE(files->Exists("log.2"));
}

TEST(RequestLog, NeverWaitsForADiskThatHangs) {
  const auto clock = std::make_shared<SettableClock>();
  clock->now_ms = 0;
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = false, released = false;
  const auto hang = [&](int64_t) {
    std::unique_lock lock(mutex);
    hangs = true;
    changed.notify_all();
    changed.wait(lock, [&] { return released; });
  };
  FaultFileOptions options;
  options.faults.push_back(FaultOfLog(FileFault::Kind::kSlow, /*amount=*/1));
  options.wait = hang;
  const std::unique_ptr<FileSystem> files =
      NewFaultFileSystem(NewMemoryFileSystem(), options, clock);
  const auto log = RequestLog::Open(*files, SmallJob(), {.path = "log", .share = 1});
  ASSERT_TRUE(log.ok()) << log.status().message();
  clock->now_ms = 1500;
  See(**log, "first");
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return hangs; });
  }
  // A row and what the log adds to it are a little more than a MiB, so 7 of them fit into 8 MiB.
  const std::string large(size_t{1} << 20, 'x');
  for (int i = 0; i < 12; ++i) See(**log, large);
  EXPECT_EQ((*log)->unlogged_rows(), 5u);
  {
    const std::lock_guard lock(mutex);
    released = true;
    changed.notify_all();
  }
  (*log)->Close();
  EXPECT_EQ((*log)->logged_rows(), 8u);
  See(**log, "late");
  EXPECT_EQ((*log)->unlogged_rows(), 6u);
}

TEST(RequestLog, TakesAsManyRowsOfARequestAsThereIsRoomFor) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const auto log = RequestLog::Open(*files, SmallJob(), {.path = "log", .share = 1});
  ASSERT_TRUE(log.ok()) << log.status().message();
  ScoreRequest request;
  request.rows =
      TableOfTexts({"user"}, {std::vector<std::string>(12, std::string(size_t{1} << 20, 'x'))});
  const ScoreAnswer answer = AnswerOf(std::vector<float>(12, 0.5f));
  (*log)->Saw({.request = &request, .answer = &answer});
  (*log)->Close();
  EXPECT_EQ((*log)->logged_rows(), 7u);
  EXPECT_EQ((*log)->unlogged_rows(), 5u);
}

TEST(RequestLog, RefusesWhatCannotBe) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  for (const double share : {0.0, -1.0, 1.5}) {
    const auto log = RequestLog::Open(*files, SmallJob(), {.path = "log", .share = share});
    ASSERT_FALSE(log.ok());
    EXPECT_EQ(log.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(log.status().message(), HasSubstr("--log_share="));
  }
}

}  // namespace
}  // namespace hdps
