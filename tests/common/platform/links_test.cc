// Tests that targets of other users' links stay unchanged, and that files without an end are not
// read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/platform/file_identity.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Fixture with a folder on disk, another user's file beside it, and links to that file.
class LinksTest : public ::testing::Test {
 protected:
  LinksTest() {
    for (const std::string& made : {folder_, theirs_})
      EXPECT_TRUE(files_->MakeDirectories(made).ok());
    WriteTheirs("precious", "theirs");
  }
  ~LinksTest() override {
    for (const std::string& made : {folder_, theirs_}) EXPECT_TRUE(files_->RemoveAll(made).ok());
  }

  void WriteTheirs(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath(theirs_, name), text).ok());
  }
  std::string Theirs() { return *ReadWholeFile(*files_, theirs_ + "/precious", 100); }
  std::string At(const std::string& name) { return JoinPath(folder_, name); }
  // Makes both kinds of links to the file, and returns their paths.
  std::vector<std::string> MakeLinks() {
    EXPECT_EQ(::symlink((theirs_ + "/precious").c_str(), At("soft").c_str()), 0);
    EXPECT_EQ(::link((theirs_ + "/precious").c_str(), At("hard").c_str()), 0);
    return {At("soft"), At("hard")};
  }

  static std::span<const std::byte> Bytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }

  const std::string folder_ = ::testing::TempDir() + "hdps_ours_" + std::to_string(::getpid());
  const std::string theirs_ = ::testing::TempDir() + "hdps_theirs_" + std::to_string(::getpid());
  const std::unique_ptr<FileSystem> files_ = NewPosixFileSystem();
};

TEST_F(LinksTest, WhatIsWrittenAnewTakesTheNameOfALink) {
  for (const std::string& link : MakeLinks()) {
    ASSERT_TRUE((*files_->Create(link))->Append(Bytes("ours")).ok());
    EXPECT_EQ(*ReadWholeFile(*files_, link, 100), "ours");
    EXPECT_EQ(Theirs(), "theirs");
    EXPECT_FALSE(IsLink(*files_, link));
    ASSERT_TRUE(files_->RemoveAll(link).ok());
  }
  for (const std::string& link : MakeLinks()) {
    ASSERT_TRUE(WriteFileAtomically(*files_, link, "ours").ok());
    EXPECT_EQ(*ReadWholeFile(*files_, link, 100), "ours");
    EXPECT_EQ(Theirs(), "theirs");
    EXPECT_FALSE(IsLink(*files_, link));
  }
}

TEST_F(LinksTest, TheFileBesideIsNoLinkEither) {
  ASSERT_EQ(::symlink((theirs_ + "/precious").c_str(), At("a.tmp").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomically(*files_, At("a"), "ours").ok());
  EXPECT_EQ(*ReadWholeFile(*files_, At("a"), 100), "ours");
  EXPECT_EQ(Theirs(), "theirs");
}

TEST_F(LinksTest, NothingIsAppendedThroughALink) {
  const std::string link = MakeLinks()[0];
  const auto file = files_->OpenAppend(link);
  EXPECT_EQ(file.status().code(), Code::kIoError);
  EXPECT_THAT(file.status().message(), HasSubstr(link + ": it is a link"));
  EXPECT_EQ(Theirs(), "theirs");
  EXPECT_TRUE(files_->OpenAppend("/dev/stderr").ok()) << "a link, but of the system's";
}

TEST_F(LinksTest, ALockIsNotWrittenThroughALink) {
  const std::vector<std::string> links = MakeLinks();
  const auto soft = files_->Lock(links[0], "us");
  EXPECT_EQ(soft.status().code(), Code::kIoError);
  EXPECT_THAT(soft.status().message(), HasSubstr("it is a link"));
  {
    const auto hard = files_->Lock(links[1], "us");
    ASSERT_TRUE(hard.ok()) << hard.status().message();
    EXPECT_EQ(*ReadWholeFile(*files_, links[1], 100), "us");
    EXPECT_EQ(files_->Lock(links[1], "them").status().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(Theirs(), "theirs");
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  EXPECT_EQ(files_->Lock(At("fifo"), "us").status().code(), Code::kIoError);
}

TEST_F(LinksTest, RemovalTakesTheLinkAndNotWhatItLeadsTo) {
  ASSERT_EQ(::symlink(theirs_.c_str(), At("folder").c_str()), 0);
  EXPECT_TRUE(files_->RemoveAll(At("folder")).ok());
  EXPECT_FALSE(files_->Exists(At("folder")));
  ASSERT_TRUE(files_->MakeDirectories(At("a")).ok());
  ASSERT_EQ(::symlink(theirs_.c_str(), At("a/folder").c_str()), 0);
  EXPECT_TRUE(files_->RemoveAll(At("a")).ok());
  EXPECT_EQ(Theirs(), "theirs");
}

TEST_F(LinksTest, OldCheckpointsThatAreLinksGoAsLinks) {
  for (const Clock clock : {10, 20, 30}) {
    const std::string folder = (clock == 10 ? theirs_ : folder_) + "/" + CheckpointName(clock);
    ASSERT_TRUE(files_->MakeDirectories(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(*files_, folder + "/rows", "rows").ok());
    Manifest manifest;
    manifest.num_shards = 1;
    manifest.clock = clock;
    manifest.files = {*ChecksumFile(*files_, folder, "rows")};
    ASSERT_TRUE(WriteManifest(*files_, folder, manifest).ok());
  }
  const std::string name = CheckpointName(10);
  ASSERT_EQ(::symlink((theirs_ + "/" + name).c_str(), At(name).c_str()), 0);
  EXPECT_TRUE(FindCheckpoint(*files_, folder_, 20).ok()) << "it is read through the link";
  ASSERT_TRUE(PruneCheckpoints(*files_, folder_, 1, kNoClock).ok());
  EXPECT_THAT(*files_->List(folder_), ElementsAre(CheckpointName(30)));
  EXPECT_THAT(*files_->List(theirs_ + "/" + name), ElementsAre("manifest.json", "rows"));
}

TEST_F(LinksTest, WhatMayNeverEndIsNotRead) {
  const std::pair<const char*, const char*> kinds[] = {{"/dev/zero", "a device"},
                                                       {"/dev/null", "a device"}};
  for (const auto& [device, what] : kinds) {
    ASSERT_EQ(::symlink(device, At("link").c_str()), 0);
    const Status opened = files_->OpenSequential(At("link")).status();
    EXPECT_EQ(opened.code(), Code::kInvalidArgument);
    EXPECT_THAT(opened.message(), HasSubstr(At("link") + ": it is " + what));
    ASSERT_TRUE(files_->RemoveAll(At("link")).ok());
    EXPECT_TRUE(files_->OpenSequential(device).ok()) << "whoever names it means it";
  }
  ASSERT_EQ(mkfifo(At("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("fifo", At("link").c_str()), 0);
  EXPECT_THAT(files_->OpenSequential(At("link")).status().message(), HasSubstr("it is a fifo"));
}

TEST(FileSystemTest, StreamsAreKnownByTheirNames) {
  for (const char* path : {"/dev/stdout", "/dev/null", "/dev/fd/63", "/proc/self/fd/1"}) {
    EXPECT_TRUE(NamesStream(path)) << path;
  }
  for (const char* path : {"/dev/shm/out/summary.json", "out/dev/null", "/device", "dev/null"}) {
    EXPECT_FALSE(NamesStream(path)) << path;
  }
}

}  // namespace
}  // namespace hdps
