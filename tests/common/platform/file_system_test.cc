// Tests files on disk and in memory with one suite.
#include "common/platform/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/platform/output_file.h"
#include "common/platform/random.h"
#include "common/platform/seekable_file.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FilesTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    files_ = GetParam() ? NewPosixFileSystem() : NewMemoryFileSystem();
    folder_ = ::testing::TempDir() + "hdps_files_" + std::to_string(::getpid());
    ASSERT_TRUE(files_->RemoveAll(folder_).ok());
    ASSERT_TRUE(files_->MakeDirectories(folder_).ok());
  }
  void TearDown() override { EXPECT_TRUE(files_->RemoveAll(folder_).ok()); }

  std::string At(const std::string& name) const { return JoinPath(folder_, name); }
  void Write(const std::string& name, const std::string& text) {
    const Status written = WriteFileAtomically(*files_, At(name), text);
    EXPECT_TRUE(written.ok()) << written.message();
  }
  std::string Read(const std::string& name) {
    const Result<std::string> text = ReadWholeFile(*files_, At(name), 1 << 20);
    return text.ok() ? *text : std::string("! ") + CodeName(text.status().code());
  }
  static std::span<const std::byte> Bytes(const std::string& text) {
    return std::as_bytes(std::span<const char>(text));
  }

  std::unique_ptr<FileSystem> files_;
  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(Both, FilesTest, ::testing::Values(true, false),
                         [](const auto& both) { return both.param ? "Posix" : "Memory"; });

TEST_P(FilesTest, MappedBytesStayWhateverComesOfTheFile) {
  std::string text(100'000, 'a');
  text += "end";
  Write("a", text);
  Write("empty", "");
  const auto mapped = MapFile(*files_, At("a"));
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  const auto as_text = [&] {
    const std::span<const std::byte> bytes = (*mapped)->bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(as_text(), text);
  (*mapped)->Drop();
  EXPECT_EQ(as_text(), text);
  Write("a", "another file of this name");
  EXPECT_EQ(as_text(), text);
  ASSERT_TRUE(files_->RemoveAll(At("a")).ok());
  (*mapped)->Drop();
  EXPECT_EQ(as_text(), text);
  EXPECT_TRUE((*MapFile(*files_, At("empty")))->bytes().empty());
  EXPECT_EQ(MapFile(*files_, At("a")).status().code(), Code::kNotFound);
}

TEST_P(FilesTest, WhatIsWrittenIsRead) {
  std::string text;
  Random random(3);
  for (int i = 0; i < 300000; ++i) text += static_cast<char>(random.Next());
  Write("a", text);
  EXPECT_EQ(Read("a"), text);
  EXPECT_EQ(*files_->FileSize(At("a")), text.size());
  Write("a", "short");
  EXPECT_EQ(Read("a"), "short");
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a"));  // No temporary file remains.
}

TEST_P(FilesTest, AppendGoesBehindAndCreateEmpties) {
  for (const char* part : {"one", "two"}) {
    std::unique_ptr<WritableFile> file = *files_->OpenAppend(At("log"));
    EXPECT_TRUE(file->Append(Bytes(part)).ok());
    EXPECT_TRUE(file->Sync().ok());
    EXPECT_TRUE(file->Close().ok());
  }
  EXPECT_EQ(Read("log"), "onetwo");
  EXPECT_TRUE((*files_->Create(At("log")))->Close().ok());
  EXPECT_EQ(Read("log"), "");
}

TEST_P(FilesTest, MissingFilesAreNotFoundByName) {
  const Status absent = files_->OpenSequential(At("none")).status();
  EXPECT_EQ(absent.code(), Code::kNotFound);
  EXPECT_THAT(absent.message(), HasSubstr(At("none") + ": No such file"));
  EXPECT_EQ(files_->FileSize(At("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->List(At("none")).status().code(), Code::kNotFound);
  EXPECT_EQ(files_->Rename(At("none"), At("b")).code(), Code::kNotFound);
  EXPECT_EQ(files_->Create(At("none/b")).status().code(), Code::kNotFound);
  EXPECT_TRUE(files_->RemoveAll(At("none")).ok());
  EXPECT_FALSE(files_->Exists(At("none")));
}

TEST_P(FilesTest, AFolderIsNoFileAndAFileNoFolder) {
  Write("file", "x");
  EXPECT_EQ(files_->OpenSequential(folder_).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(files_->Create(folder_).status().code(), Code::kIoError);
  EXPECT_FALSE(files_->MakeDirectories(At("file/sub")).ok());
  EXPECT_FALSE(files_->MakeDirectories(At("file")).ok());
}

TEST_P(FilesTest, RenameReplacesFilesAndMovesFolders) {
  Write("a", "new");
  Write("b", "old");
  EXPECT_TRUE(files_->Rename(At("a"), At("b")).ok());
  EXPECT_EQ(Read("b"), "new");
  EXPECT_FALSE(files_->Exists(At("a")));

  ASSERT_TRUE(files_->MakeDirectories(At("x/y")).ok());
  ASSERT_TRUE(files_->MakeDirectories(At("x/y")).ok());
  Write("x/y/f", "inside");
  EXPECT_TRUE(files_->Rename(At("x"), At("z")).ok());
  EXPECT_EQ(Read("z/y/f"), "inside");
  EXPECT_FALSE(files_->Exists(At("x")));
  Write("z/g", "full");
  ASSERT_TRUE(files_->MakeDirectories(At("w")).ok());
  EXPECT_FALSE(files_->Rename(At("w"), At("z")).ok());  // A folder with files is not replaced.
  EXPECT_THAT(*files_->List(At("z")), ElementsAre("g", "y"));
}

TEST_P(FilesTest, RemoveTakesWhatLiesBelowAndNothingBeside) {
  ASSERT_TRUE(files_->MakeDirectories(At("tree/deep")).ok());
  Write("tree/deep/f", "1");
  Write("tree2", "2");
  EXPECT_TRUE(files_->RemoveAll(At("tree")).ok());
  EXPECT_THAT(*files_->List(folder_), ElementsAre("tree2"));
}

TEST_P(FilesTest, AnOpenFileOutlivesItsName) {
  Write("a", "still here");
  std::unique_ptr<SequentialFile> file = *files_->OpenSequential(At("a"));
  EXPECT_TRUE(files_->RemoveAll(At("a")).ok());
  std::byte buffer[64];
  EXPECT_EQ(*file->Read(buffer), 10u);
  EXPECT_EQ(*file->Read(buffer), 0u);
}

TEST_P(FilesTest, ALockHasOneHolderAtATimeAndNamesIt) {
  Result<std::unique_ptr<FileLock>> first = files_->Lock(At("lock"), "the first");
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(Read("lock"), "the first");
  const Status second = files_->Lock(At("lock"), "the second").status();
  EXPECT_EQ(second.code(), Code::kInvalidArgument);
  EXPECT_EQ(second.message(), At("lock") + " is held by the first");
  EXPECT_EQ(Read("lock"), "the first");
  EXPECT_TRUE(files_->Lock(At("other"), "the second").ok());
  first->reset();
  EXPECT_FALSE(files_->Exists(At("lock"))) << "nothing is left behind";
  EXPECT_TRUE(files_->Lock(At("lock"), "the second").ok());
}

TEST_P(FilesTest, ALockedFileLiesInAFolder) {
  EXPECT_EQ(files_->Lock(At("none/lock"), "me").status().code(), Code::kNotFound);
  EXPECT_EQ(files_->Lock(folder_, "me").status().code(), Code::kIoError);
}

TEST_P(FilesTest, ReadingWholeHasALimit) {
  Write("a", std::string(1000, 'x'));
  EXPECT_EQ(ReadWholeFile(*files_, At("a"), 1000)->size(), 1000u);
  EXPECT_THAT(ReadWholeFile(*files_, At("a"), 999).status().message(), HasSubstr("999"));
}

// The lock of a killed process is free, although its file still exists.
TEST_P(FilesTest, AnOutputIsWholeOrIsNot) {
  Write("a", "yesterday");
  {
    const auto file = *CreateAtomically(*files_, At("a"));
    ASSERT_TRUE(file->Append(Bytes("half of")).ok());
    EXPECT_EQ(Read("a"), "yesterday");
  }
  EXPECT_EQ(Read("a"), "yesterday");
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a")) << "the part is gone";
  const auto file = *CreateAtomically(*files_, At("a"));
  ASSERT_TRUE(file->Append(Bytes("to")).ok());
  ASSERT_TRUE(file->Append(Bytes("day")).ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(Read("a"), "today");
  EXPECT_THAT(*files_->List(folder_), ElementsAre("a"));
}

TEST_P(FilesTest, AnInputIsNoOutputHoweverItIsSpelled) {
  Write("a", "1");
  Write("b.tmp", "2");
  const std::vector<InputFile> inputs = {{"the data", At("a")}, {"the job", At("b.tmp")}};
  const std::string name = folder_.substr(folder_.rfind('/') + 1);
  for (const std::string& path : {At("a"), At("./a"), folder_ + "/../" + name + "/a"}) {
    EXPECT_THAT(RefuseInput(*files_, "--out=" + path, path, inputs).message(),
                HasSubstr("/a is the data"));
  }
  EXPECT_THAT(RefuseInput(*files_, "--out=b", At("b"), inputs).message(), HasSubstr("is the job"));
  EXPECT_TRUE(RefuseInput(*files_, "--out=c", At("c"), inputs).ok());
  EXPECT_TRUE(RefuseInput(*files_, "--out=b", At("b"), std::span(inputs).first(1)).ok());
}

TEST(FileSystemTest, LinksLeadToTheFile) {
  const std::string folder = ::testing::TempDir() + "hdps_links_" + std::to_string(::getpid());
  const auto files = NewPosixFileSystem();
  ASSERT_TRUE(files->MakeDirectories(folder).ok());
  const std::string file = folder + "/file", link = folder + "/link", hard = folder + "/hard";
  ASSERT_TRUE(WriteFileAtomically(*files, file, "1").ok());
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  ASSERT_EQ(::link(file.c_str(), hard.c_str()), 0);
  const InputFile input = {"the data", file};
  EXPECT_FALSE(RefuseInput(*files, "--out", link, {&input, 1}).ok());
  EXPECT_FALSE(RefuseInput(*files, "--out", hard, {&input, 1}).ok());
  // Writing through a link writes the file, and the link remains.
  ASSERT_TRUE(WriteNamedFile(*files, link, "2").ok());
  struct stat info {};
  ASSERT_EQ(::lstat(link.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  EXPECT_EQ(*ReadWholeFile(*files, file, 10), "2");
  EXPECT_EQ(*ReadWholeFile(*files, hard, 10), "1") << "another name of what was there";
  EXPECT_TRUE(WriteNamedFile(*files, "/dev/null", "3").ok());
  ASSERT_EQ(::lstat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode)) << "a device is written to, not replaced";
  EXPECT_TRUE(files->RemoveAll(folder).ok());
}

TEST(FileSystemTest, ALockDiesWithItsProcess) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string path = ::testing::TempDir() + "hdps_lock_" + std::to_string(::getpid());
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = files->Lock(path, "a child of some length");
    [[maybe_unused]] const ssize_t n = write(told[1], lock.ok() ? "y" : "n", 1);
    pause();
    _exit(1);
  }
  ASSERT_GT(child, 0);
  char locked = 0;
  ASSERT_EQ(read(told[0], &locked, 1), 1);
  ASSERT_EQ(locked, 'y');
  EXPECT_THAT(files->Lock(path, "us").status().message(), HasSubstr("a child of some length"));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(files->Exists(path));
  {
    const auto lock = files->Lock(path, "us");
    ASSERT_TRUE(lock.ok()) << lock.status().message();
    EXPECT_EQ(*ReadWholeFile(*files, path, 100), "us");
  }
  EXPECT_FALSE(files->Exists(path));
  close(told[0]);
  close(told[1]);
}

// Opening a FIFO without a writer would wait silently.
TEST(FileSystemTest, AFifoIsRefusedAtOnce) {
  const auto files = NewPosixFileSystem();
  const std::string path = JoinPath(testing::TempDir(), "a_fifo." + std::to_string(getpid()));
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const auto opened = files->OpenSequential(path);
  EXPECT_EQ(unlink(path.c_str()), 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("fifo"), std::string::npos) << opened.status().message();
}

TEST(FileSystemTest, AFullDiskIsAnErrorWithItsReason) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  if (!files->Exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  std::unique_ptr<WritableFile> file = *files->OpenAppend("/dev/full");
  const std::string text = "x";
  const Status full = file->Append(std::as_bytes(std::span<const char>(text)));
  EXPECT_EQ(full.code(), Code::kIoError);
  EXPECT_THAT(full.message(), HasSubstr("/dev/full: No space left"));
}

TEST(FileSystemTest, PathsJoin) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
}

}  // namespace
}  // namespace hdps
