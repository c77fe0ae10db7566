// Tests checkpoints that build on others: found if all their parts are intact, and kept as long as
// needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointSearch : public ::testing::Test {
 protected:
  static std::string Folder(Clock clock) { return JoinPath("out", CheckpointName(clock)); }
  static std::string File(Clock clock) { return Folder(clock) + "/shard_000.delta"; }

  // Saves a checkpoint with one file that builds on the manifest at `base`.
  void Save(Clock clock, Clock base = kNoClock) {
    const std::string folder = Folder(clock);
    const char* name = base == kNoClock ? "shard_000.snapshot" : "shard_000.delta";
    const std::string text = "rows of " + std::to_string(clock);
    ASSERT_TRUE(files_->MakeDirectories(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath(folder, name), text).ok());
    Manifest manifest;
    manifest.job_name = "census";
    manifest.num_shards = 1;
    manifest.clock = clock;
    manifest.files = {*ChecksumFile(*files_, folder, name)};
    manifest.base_clock = base;
    if (base != kNoClock) {
      manifest.base_checksum = ManifestChecksum(*ReadManifest(*files_, Folder(base)));
    }
    const Status written = WriteManifest(*files_, folder, manifest);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  // Saves a full checkpoint and three deltas on it.
  void SaveChain() {
    Save(10);
    for (const Clock clock : {20, 30, 40}) Save(clock, clock - 10);
  }
  void Copy(Clock from, Clock to) {
    const std::vector<std::string> names = *files_->List(Folder(from));
    for (const std::string& name : names) {
      const std::string text = *ReadWholeFile(*files_, JoinPath(Folder(from), name), 1 << 20);
      ASSERT_TRUE(files_->MakeDirectories(Folder(to)).ok());
      ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath(Folder(to), name), text).ok());
    }
  }
  std::vector<Clock> ChainClocks(const FoundCheckpoint& found) {
    std::vector<Clock> clocks;
    for (const CheckpointPart& part : found.chain) {
      EXPECT_EQ(part.folder, Folder(part.manifest.clock));
      clocks.push_back(part.manifest.clock);
    }
    return clocks;
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
};

TEST_F(CheckpointSearch, FindsAllThatItConsistsOf) {
  SaveChain();
  const Result<FoundCheckpoint> found = FindCheckpoint(*files_, "out");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->folder, Folder(40));
  EXPECT_THAT(ChainClocks(*found), ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(ChainClocks(*FindCheckpoint(*files_, "out", 20)), ElementsAre(10));
  EXPECT_THAT(ChainClocks(*OpenCheckpoint(*files_, Folder(30))), ElementsAre(10, 20, 30));
  EXPECT_EQ(OpenCheckpoint(*files_, Folder(30) + "/")->chain.size(), 3u);
  EXPECT_EQ(ReadChain(*files_, Folder(40))->size(), 4u);
  EXPECT_EQ(ReadManifest(*files_, Folder(30))->base_clock, 20);
}

// Damages the one of clock 30 in each way: those that build on it are refused with its name, and
// the one before is used.
TEST_F(CheckpointSearch, WhatIsWrongIsNamedAndTheLastGoodPointFound) {
  const std::vector<std::pair<std::string, std::function<void()>>> damages = {
      {Folder(30) + "/manifest.json: there is no manifest",
       [this] { ASSERT_TRUE(files_->RemoveAll(Folder(30)).ok()); }},
      {File(30) + ": the file is missing",
       [this] { ASSERT_TRUE(files_->RemoveAll(File(30)).ok()); }},
      {File(30) + ": 3 bytes",
       [this] { ASSERT_TRUE(WriteFileAtomically(*files_, File(30), std::string("row")).ok()); }},
      {File(30) + ": checksum",
       [this] {
         ASSERT_TRUE(WriteFileAtomically(*files_, File(30), std::string("rows of 20")).ok());
       }},
      {Folder(30) + "/manifest.json: it is that of clock 20", [this] { Copy(20, 30); }},
      // Another run's checkpoint: intact, but not the base of the next.
      {Folder(30) + "/manifest.json: it is not the one that clock 40 was built on",
       [this] {
         ASSERT_TRUE(files_->RemoveAll(Folder(20)).ok());
         Save(15, 10);
         Save(30, 15);
         Save(20, 10);
       }},
  };
  for (const auto& [named, damage] : damages) {
    files_ = NewMemoryFileSystem();
    SaveChain();
    damage();
    const Result<FoundCheckpoint> found = FindCheckpoint(*files_, "out", 41);
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_FALSE(found->refused.empty());
    EXPECT_THAT(found->refused[0],
                AllOf(HasSubstr(Folder(40)), HasSubstr("builds on clock 30"), HasSubstr(named)));
    const bool other_run = named.find("is not the one") != std::string::npos;
    EXPECT_EQ(found->manifest.clock, other_run ? 30 : 20) << named;
    EXPECT_THAT(OpenCheckpoint(*files_, Folder(40)).status().message(), HasSubstr(named));
  }
}

TEST_F(CheckpointSearch, OneThatWasCopiedOrSwappedIsRefused) {
  SaveChain();
  Copy(40, 50);
  EXPECT_THAT(FindCheckpoint(*files_, "out")->refused,
              ElementsAre(Folder(50) + ": its manifest is that of clock 40"));
  // Exchanges 20 and 30.
  Copy(30, 50);
  Copy(20, 30);
  Copy(50, 20);
  const FoundCheckpoint found = *FindCheckpoint(*files_, "out");
  EXPECT_EQ(found.manifest.clock, 10);
  EXPECT_EQ(found.refused.size(), 4u);
}

TEST_F(CheckpointSearch, AManifestThatBuildsOnNonsenseIsNeverWritten) {
  Manifest manifest;
  manifest.num_shards = 1;
  manifest.clock = 20;
  manifest.files = {{"shard_000.delta", 1, 1, 1}};
  EXPECT_THAT(WriteManifest(*files_, "out", manifest).message(), HasSubstr("holds changes"));
  for (const Clock base : {20, 30, -7}) {
    manifest.base_clock = base;
    EXPECT_THAT(WriteManifest(*files_, "out", manifest).message(), HasSubstr("builds on clock"));
  }
}

TEST_F(CheckpointSearch, FullOnesAreKeptWithWhatBuildsOnThem) {
  SaveChain();  // 10, and 20, 30, 40 on it.
  Save(50);
  Save(60, 50);
  Save(70);
  Save(80, 70);
  const auto folders = [this] {
    std::vector<Clock> clocks;
    for (const Clock clock : {10, 20, 30, 40, 50, 60, 70, 80, 90}) {
      if (files_->Exists(Folder(clock))) clocks.push_back(clock);
    }
    return clocks;
  };
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 3).ok());
  EXPECT_THAT(folders(), ElementsAre(10, 20, 30, 40, 50, 60, 70, 80));
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 2).ok());
  EXPECT_THAT(folders(), ElementsAre(50, 60, 70, 80));
  // From an abandoned history, but intact: its base is kept.
  Save(90, 60);
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 1).ok());
  EXPECT_THAT(folders(), ElementsAre(50, 60, 70, 80, 90));
}

// Saves a full checkpoint after which the evaluation of `best` was the best so far.
void SaveJudged(FileSystem& files, Clock clock, Clock best) {
  const std::string folder = JoinPath("out", CheckpointName(clock));
  ASSERT_TRUE(files.MakeDirectories(folder).ok());
  ASSERT_TRUE(WriteFileAtomically(files, JoinPath(folder, "shard_000.snapshot"), "rows").ok());
  Manifest manifest;
  manifest.num_shards = 1;
  manifest.clock = clock;
  manifest.files = {*ChecksumFile(files, folder, "shard_000.snapshot")};
  manifest.watched.best = {
      .of = "auc", .best_clock = best, .best = 0.75, .since = 1, .last_clock = clock};
  manifest.watched.rate = 0.5;
  const Status written = WriteManifest(files, folder, manifest);
  ASSERT_TRUE(written.ok()) << written.message();
}

TEST_F(CheckpointSearch, TheBestIsFoundByWhatTheNewestSays) {
  for (const Clock clock : {10, 20, 30, 40}) {
    SaveJudged(*files_, clock, clock == 10 ? 10 : 20);
  }
  const auto taken = [this](const std::string& path, WhichCheckpoint which) {
    const Result<FoundCheckpoint> found = OpenCheckpoint(*files_, path, which);
    return found.ok() ? found->manifest.clock : kNoClock;
  };
  EXPECT_EQ(ReadManifest(*files_, Folder(40))->watched.rate, 0.5);
  EXPECT_EQ(taken("out", WhichCheckpoint::kBest), 20);
  EXPECT_EQ(taken("out", WhichCheckpoint::kNewest), 40);
  EXPECT_EQ(taken(Folder(30), WhichCheckpoint::kBest), 30) << "who names one gets it";
  EXPECT_EQ(OpenCheckpoint(*files_, "out", WhichCheckpoint::kBest)->newest, 40);
  // One that was passed over on the way to the best is told, too.
  SaveJudged(*files_, 50, 20);
  ASSERT_TRUE(WriteFileAtomically(*files_, Folder(50) + "/shard_000.snapshot", "wors").ok());
  EXPECT_THAT(OpenCheckpoint(*files_, "out", WhichCheckpoint::kBest)->refused,
              ElementsAre(HasSubstr(CheckpointName(50))));
  EXPECT_EQ(taken("out", WhichCheckpoint::kBest), 20);
  ASSERT_TRUE(files_->RemoveAll(Folder(50)).ok());

  // The best is kept at any age; of the others the newest.
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 1, 20).ok());
  EXPECT_THAT(*files_->List("out"), ElementsAre(CheckpointName(20), CheckpointName(40)));

  // If it is damaged or missing, the newest replaces it, and the fault is reported.
  ASSERT_TRUE(WriteFileAtomically(*files_, Folder(20) + "/shard_000.snapshot", "wors").ok());
  const Result<FoundCheckpoint> found = OpenCheckpoint(*files_, "out", WhichCheckpoint::kBest);
  EXPECT_EQ(found->manifest.clock, 40);
  EXPECT_EQ(found->newest, kNoClock);
  EXPECT_THAT(found->refused, ElementsAre(HasSubstr("shard_000.snapshot: checksum")));
  ASSERT_TRUE(files_->RemoveAll(Folder(20)).ok());
  EXPECT_EQ(taken("out", WhichCheckpoint::kBest), 40);
}

TEST_F(CheckpointSearch, TheBestKeepsWhatItBuildsOn) {
  SaveChain();
  Save(50);
  Save(60);
  ASSERT_TRUE(PruneCheckpoints(*files_, "out", 1, 30).ok());
  EXPECT_THAT(*files_->List("out"), ElementsAre(CheckpointName(10), CheckpointName(20),
                                                CheckpointName(30), CheckpointName(60)));
}

}  // namespace
}  // namespace hdps
