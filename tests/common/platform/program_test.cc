// Tests programs that are started beside this process, and temporary folders.
#include "common/platform/programs/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "common/platform/folders/temporary_folder.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPatienceMs = 60'000;

ProgramEnd EndOf(const std::vector<std::string>& words) {
  Result<std::unique_ptr<RunningProgram>> program = NewPosixPrograms()->Start(words);
  EXPECT_TRUE(program.ok()) << program.status().message();
  std::optional<ProgramEnd> end = (*program)->Wait(kPatienceMs);
  EXPECT_TRUE(end.has_value());
  return *std::move(end);
}

TEST(Program, TellsStatusOutputAndErrors) {
  const ProgramEnd end = EndOf({"sh", "-c", "echo out; echo err >&2; exit 5"});
  EXPECT_EQ(end.status, 5);
  EXPECT_EQ(end.output, "out\n");
  EXPECT_EQ(end.errors, "err\n");
  EXPECT_EQ(EndOf({"sh", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
}

TEST(Program, MuchOutputStopsNobody) {
  const ProgramEnd end =
      EndOf({"sh", "-c", "head -c 3000000 /dev/zero; head -c 300000 /dev/zero >&2"});
  EXPECT_EQ(end.output.size(), 3'000'000u);
  EXPECT_FALSE(end.output_cut);
  EXPECT_LT(end.errors.size(), 300'000u) << "the end of it is enough";
}

TEST(Program, ReadsNothingAndSeesNoFilesOfOurs) {
  EXPECT_EQ(EndOf({"cat"}).output, "");
  const ProgramEnd end = EndOf({"sh", "-c", "ls /proc/self/fd | wc -l"});
  EXPECT_EQ(end.output, "4\n") << "0, 1, 2, and that of ls";
}

TEST(Program, AnUnknownOneIsNamed) {
  const auto program = NewPosixPrograms()->Start({"hdps-no-such-program"});
  EXPECT_EQ(program.status().code(), Code::kNotFound);
  EXPECT_THAT(program.status().message(), HasSubstr("hdps-no-such-program"));
}

TEST(Program, RunsBesideAndIsEndedWithItsObject) {
  auto program = *NewPosixPrograms()->Start(
      {"sh", "-c", "echo $$; echo one >&2; echo two >&2; exec sleep 1000"});
  EXPECT_FALSE(program->Wait(0).has_value());
  for (int i = 0; i < 3000 && program->LastLine() != "two"; ++i) {
    EXPECT_FALSE(program->Wait(20).has_value());
  }
  EXPECT_EQ(program->LastLine(), "two");
  program.reset();  // Returns at once, or the test runs out of time.
}

TEST(TemporaryFolder, IsPrivateAndRemoved) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  std::string path;
  {
    const auto folder = TemporaryFolder::Make(*files, "hdps_test_folder");
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    path = (*folder)->path();
    struct stat about {};
    ASSERT_EQ(stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
  }
  EXPECT_FALSE(files->Exists(path));
}

TEST(TemporaryFolder, ClearsAwayWhatKilledProcessesLeft) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  auto living = *TemporaryFolder::Make(*files, "hdps_test_left");
  const std::string parent = living->path().substr(0, living->path().rfind('/'));
  const std::string dead = JoinPath(parent, "hdps_test_left_killed");
  ASSERT_TRUE(files->MakeDirectories(dead).ok());
  // The owner's name as of a process that has ended: the same machine, a number that is free.
  std::string owner = *ReadWholeFile(*files, JoinPath(living->path(), "owner"), 1 << 10);
  owner = owner.substr(0, owner.find(':', owner.find(':') + 1)) + ":4194303:1";
  ASSERT_TRUE(WriteFileAtomically(*files, JoinPath(dead, "owner"), owner).ok());
  const auto next = TemporaryFolder::Make(*files, "hdps_test_left");
  EXPECT_FALSE(files->Exists(dead));
  EXPECT_TRUE(files->Exists(living->path()));
}

}  // namespace
}  // namespace hdps
