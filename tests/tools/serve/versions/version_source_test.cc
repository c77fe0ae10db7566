// Tests which checkpoints of a folder are seen, which is wanted, and what leads to it.
#include "tools/serve/versions/version_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VersionSourceTest : public testing::Test {
 protected:
  static std::string FolderOf(Clock clock) {
    return JoinPath("run/checkpoint", CheckpointName(clock));
  }
  // Writes a manifest, of a delta if there is a `base`, and returns its mark.
  VersionMark Write(Clock clock, const VersionMark& base = {}, Clock best = kNoClock) {
    Manifest manifest;
    manifest.job_name = "job";
    manifest.clock = clock;
    manifest.base_clock = base.clock;
    manifest.base_checksum = base.checksum;
    manifest.watched.best.best_clock = manifest.watched.best.last_clock = best;
    EXPECT_TRUE(files_->MakeDirectories(FolderOf(clock)).ok());
    const Status written = WriteManifest(*files_, FolderOf(clock), manifest);
    EXPECT_TRUE(written.ok()) << written.message();
    return {clock, ManifestChecksum(manifest)};
  }
  std::vector<Clock> DeltasFrom(const VersionMark& from, Clock clock) {
    std::vector<Clock> clocks;
    for (const CheckpointPart& part : source_->DeltasFrom(from, clock)) {
      EXPECT_EQ(part.folder, FolderOf(part.manifest.clock));
      clocks.push_back(part.manifest.clock);
    }
    return clocks;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const Status made_ = files_->MakeDirectories("run/checkpoint");
  std::unique_ptr<VersionSource> source_ = std::make_unique<VersionSource>(*files_, "run");
};

TEST_F(VersionSourceTest, WhatIsWantedAsText) {
  EXPECT_EQ(ParseWantedVersion("newest")->step, kNoClock);
  EXPECT_EQ(ParseWantedVersion("best")->which, WhichCheckpoint::kBest);
  EXPECT_EQ(ParseWantedVersion("120")->step, 120);
  for (const char* const wrong : {"", "-1", "12x", "latest", "99999999999999999999"}) {
    EXPECT_THAT(ParseWantedVersion(wrong).status().message(),
                HasSubstr("expected newest, best or the step"));
  }
}

TEST_F(VersionSourceTest, FinishedCheckpointsAreSeen) {
  EXPECT_FALSE(source_->Look());
  Write(10);
  ASSERT_TRUE(files_->MakeDirectories(FolderOf(20)).ok());
  EXPECT_TRUE(source_->Look());
  EXPECT_FALSE(source_->Look());
  EXPECT_THAT(source_->clocks(), ElementsAre(10));
  Write(20);
  EXPECT_TRUE(source_->Look());
  EXPECT_THAT(source_->clocks(), ElementsAre(20, 10));
  EXPECT_TRUE(source_->Has(20));
  ASSERT_TRUE(files_->RemoveAll(FolderOf(10)).ok());
  EXPECT_TRUE(source_->Look());
  EXPECT_THAT(source_->clocks(), ElementsAre(20));
  EXPECT_FALSE(source_->Has(10));
  EXPECT_EQ(source_->MarkOf(10).status().code(), Code::kNotFound);
}

TEST_F(VersionSourceTest, TheBestIsFollowedAlone) {
  Write(10);
  Write(20, {}, 10);
  Write(30, {}, 20);
  source_->Look();
  const WantedVersion best{WhichCheckpoint::kBest, kNoClock};
  EXPECT_THAT(source_->Candidates({}, 10), ElementsAre(30, 20, 10));
  EXPECT_THAT(source_->Candidates({WhichCheckpoint::kBest, 10}, 30), ElementsAre(10));
  EXPECT_THAT(source_->Candidates(best, kNoClock), ElementsAre(20, 30, 20, 10));
  EXPECT_THAT(source_->Candidates(best, 10), ElementsAre(20));
  // The record of the newest manifest counts, even if it names a checkpoint that is gone.
  Write(40, {}, 5);
  source_->Look();
  EXPECT_THAT(source_->Candidates(best, 10), ElementsAre(40, 30, 20, 10));
}

TEST_F(VersionSourceTest, DeltasLeadFromTheVersionAtHand) {
  const VersionMark whole = Write(10);
  const VersionMark first = Write(20, whole), second = Write(30, first);
  Write(40, second);
  EXPECT_THAT(DeltasFrom(whole, 40), ElementsAre(20, 30, 40));
  EXPECT_THAT(DeltasFrom(second, 40), ElementsAre(40));
  EXPECT_THAT(DeltasFrom({10, whole.checksum + 1}, 40), IsEmpty());
  EXPECT_THAT(DeltasFrom({15, 0}, 40), IsEmpty());
  EXPECT_THAT(DeltasFrom(whole, 10), IsEmpty());
  // The run went back to 20, and wrote another 30.
  Write(30, whole);
  EXPECT_THAT(DeltasFrom(whole, 40), IsEmpty());
  EXPECT_THAT(DeltasFrom(second, 40), ElementsAre(40));
  Write(50);
  EXPECT_THAT(DeltasFrom(second, 50), IsEmpty());
}

TEST_F(VersionSourceTest, ACheckpointsOwnFolderIsTheOnlyVersion) {
  Write(10);
  Write(20);
  source_ = std::make_unique<VersionSource>(*files_, FolderOf(10));
  EXPECT_TRUE(source_->Look());
  EXPECT_THAT(source_->clocks(), ElementsAre(10));
  EXPECT_EQ(source_->FolderOf(10), FolderOf(10));
  EXPECT_TRUE(source_->Has(10));
  EXPECT_FALSE(source_->Has(20));
}

TEST_F(VersionSourceTest, AFolderMustHaveItsOwnClock) {
  Write(10);
  const std::string text = *ReadWholeFile(*files_, JoinPath(FolderOf(10), kManifestName), 1 << 20);
  ASSERT_TRUE(files_->MakeDirectories(FolderOf(11)).ok());
  ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath(FolderOf(11), kManifestName), text).ok());
  EXPECT_EQ(source_->MarkOf(11).status().code(), Code::kCorruption);
  EXPECT_THAT(source_->MarkOf(11).status().message(), HasSubstr("it is that of clock 10"));
}

}  // namespace
}  // namespace hdps
