// Tests the file system that injects faults, over files in memory.
#include "common/platform/fault_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/platform/settable_clock.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class FaultFilesTest : public ::testing::Test {
 protected:
  void Make(std::vector<FileFault> faults) {
    FaultFileOptions options;
    options.faults = std::move(faults);
    options.crash = [this] { ++crashes_; };
    options.wait = [this](int64_t ms) { waited_ms_ += ms; };
    std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
    EXPECT_TRUE(memory->MakeDirectories("/data").ok());
    files_ = NewFaultFileSystem(std::move(memory), std::move(options), clock_);
  }
  Status Write(const std::string& path, const std::string& text) {
    HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files_->OpenAppend(path));
    HDPS_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span<const char>(text))));
    HDPS_RETURN_IF_ERROR(file->Sync());
    return file->Close();
  }
  std::string Read(const std::string& path) {
    const Result<std::string> text = ReadWholeFile(*files_, path, 1 << 20);
    return text.ok() ? *text : text.status().message();
  }

  std::shared_ptr<SettableClock> clock_ = std::make_shared<SettableClock>();
  std::unique_ptr<FileSystem> files_;
  int crashes_ = 0;
  int64_t waited_ms_ = 0;
};

// A library that writes by itself asks first.
TEST_F(FaultFilesTest, SaysWithWhichErrorAForeignWriteFails) {
  Make({{FileFault::Kind::kFull, "data/*", 10, {}}, {FileFault::Kind::kFailing, "bad", 2, {}}});
  EXPECT_EQ(files_->FaultOfWrite("/data/a", 10), 0);
  EXPECT_EQ(files_->FaultOfWrite("/data/a", 1), ENOSPC);
  EXPECT_EQ(files_->FaultOfWrite("/data/bad", 0), 0);
  EXPECT_EQ(files_->FaultOfWrite("/data/bad", 0), EIO);
  EXPECT_EQ(files_->FaultOfWrite("/elsewhere", 1), 0);
}

TEST_F(FaultFilesTest, AFullDiskKeepsWhatFitsAndSaysSo) {
  Make({{FileFault::Kind::kFull, "data/*", 10, {}}});
  EXPECT_TRUE(Write("/data/a", "1234567").ok());
  const Status status = Write("/data/b", "1234567");
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr("cannot write /data/b: No space left on device"));
  EXPECT_EQ(Read("/data/b"), "123");
  EXPECT_TRUE(Write("/elsewhere", "1234567").ok());
  EXPECT_THAT(files_->MakeDirectories("/data/new").message(), HasSubstr("No space left"));
  EXPECT_FALSE(WriteFileAtomically(*files_, "/data/c", "x").ok());
  EXPECT_FALSE(files_->Exists("/data/c.tmp"));
}

TEST_F(FaultFilesTest, SpaceComesBackWithTheEndOfItsTime) {
  Make({{FileFault::Kind::kFull, "*", 0, {1000, 2000, ""}}});
  EXPECT_TRUE(Write("a", "1").ok());
  clock_->now_ms += 1000;
  EXPECT_FALSE(Write("a", "2").ok());
  clock_->now_ms += 1999;
  EXPECT_FALSE(Write("a", "3").ok());
  clock_->now_ms += 1;
  EXPECT_TRUE(Write("a", "4").ok());
  EXPECT_EQ(Read("a"), "14");
}

TEST_F(FaultFilesTest, AFaultMayHoldAsLongAsAFileIsThere) {
  const std::string path = ::testing::TempDir() + "hdps_fault_" + std::to_string(::getpid());
  const std::unique_ptr<FileSystem> disk = NewPosixFileSystem();
  Make({{FileFault::Kind::kFull, "*", 0, {0, 0, path}}});
  EXPECT_TRUE(Write("a", "1").ok());
  ASSERT_TRUE(disk->Create(path).ok());
  EXPECT_FALSE(Write("a", "2").ok());
  ASSERT_TRUE(disk->RemoveAll(path).ok());
  EXPECT_TRUE(Write("a", "3").ok());
}

TEST_F(FaultFilesTest, EveryNthCallFails) {
  Make({{FileFault::Kind::kFailing, "*", 3, {}}});
  std::string outcomes;
  for (int i = 0; i < 6; ++i) outcomes += files_->Create("a").ok() ? '.' : 'x';
  EXPECT_EQ(outcomes, "..x..x");
  ASSERT_TRUE(files_->Create("a").ok());
  ASSERT_TRUE(files_->OpenSequential("a").ok());
  EXPECT_THAT(files_->Rename("a", "b").message(), HasSubstr("Input/output error"));
  EXPECT_TRUE(files_->Exists("a"));
}

TEST_F(FaultFilesTest, EveryCallIsSlow) {
  Make({{FileFault::Kind::kSlow, "a", 40, {}}});
  EXPECT_TRUE(Write("b", "1").ok());
  EXPECT_EQ(waited_ms_, 0);
  EXPECT_TRUE(Write("a", "1").ok());  // Opened, written, synced.
  EXPECT_EQ(waited_ms_, 120);
}

TEST_F(FaultFilesTest, ATornWriteLeavesItsFirstHalfAndTheProcessDies) {
  Make({{FileFault::Kind::kTorn, "a", 2, {}}});
  EXPECT_TRUE(Write("a", "1234").ok());
  EXPECT_EQ(crashes_, 0);
  EXPECT_TRUE(Write("a", "5678").ok());
  EXPECT_EQ(crashes_, 1);
  EXPECT_EQ(Read("a"), "123456");
}

}  // namespace
}  // namespace hdps
