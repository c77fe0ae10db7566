// Tests what is copied to object storage and in which order, against a stand-in for rclone that
// looks after each of its commands whether a checkpoint there can be restored.
#include "scheduler/plan/checkpoint_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/protocol/manifest.h"
#include "tests/scheduler/fake_rclone.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointCopiesTest : public ::testing::Test {
 protected:
  CheckpointCopiesTest() {
    settings_.copy_to = "st:copies";
    settings_.copy_wait_s = 60;
    Restart();
  }
  void Restart() {
    copies_ = std::make_unique<CheckpointCopies>(*files_, &rclone_, "out", settings_);
  }

  void Save(Clock clock, Clock base = kNoClock, const std::string& more = "") {
    const std::string folder = JoinPath("out", CheckpointName(clock));
    const char* name = base == kNoClock ? "shard_000.snapshot" : "shard_000.delta";
    ASSERT_TRUE(files_->RemoveAll(folder).ok());
    ASSERT_TRUE(files_->MakeDirectories(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(*files_, JoinPath(folder, name),
                                    "rows of " + std::to_string(clock) + more)
                    .ok());
    Manifest manifest;
    manifest.job_name = "census";
    manifest.num_shards = 1;
    manifest.clock = clock;
    manifest.files = {*ChecksumFile(*files_, folder, name)};
    manifest.base_clock = base;
    if (base != kNoClock) {
      manifest.base_checksum =
          ManifestChecksum(*ReadManifest(*files_, JoinPath("out", CheckpointName(base))));
    }
    ASSERT_TRUE(WriteManifest(*files_, folder, manifest).ok());
    ++saves_;
  }
  // Removes old checkpoints, as the run does after a full save.
  void Prune(uint32_t keep) {
    ASSERT_TRUE(PruneCheckpoints(*files_, "out", keep, kNoClock, copies_->held()).ok());
  }
  void Tick(int times = 1) {
    for (int i = 0; i < times; ++i) copies_->OnTick(saves_, now_ += 20);
  }
  std::string Folders() const {
    std::string names, last;
    for (const auto& [path, text] : rclone_.there) {
      const std::string step = std::to_string(std::stoi(path.substr(path.find("step_") + 5)));
      if (step != last) names += (names.empty() ? "" : " ") + step;
      last = step;
    }
    return names;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  FakeRclone rclone_{*files_};
  CheckpointSpec settings_;
  std::unique_ptr<CheckpointCopies> copies_;
  uint64_t saves_ = 0;
  TimeMs now_ = 1000;
};

TEST_F(CheckpointCopiesTest, BaseFirstAndManifestLast) {
  Save(10);
  Save(12, 10);
  Tick(20);
  EXPECT_THAT(rclone_.started,
              ElementsAre("cat /step_0000000010", "copy /step_0000000010",
                          "copyto /step_0000000010/manifest.json", "cat /step_0000000012",
                          "copy /step_0000000012", "copyto /step_0000000012/manifest.json"));
  EXPECT_EQ(rclone_.Newest(), 12);
  EXPECT_EQ(copies_->figures().step, 12);
  EXPECT_GT(copies_->figures().seconds, 0);
  EXPECT_THAT(copies_->held(), IsEmpty());
  Tick(20);  // Without a save nothing happens.
  EXPECT_EQ(rclone_.started.size(), 6u);
  EXPECT_THAT(copies_->TakeWarnings(), IsEmpty());
}

TEST_F(CheckpointCopiesTest, TheNewestComesFirstAndOldOnesGoAfterIt) {
  Save(10);
  Tick(2);
  rclone_.stands_still = true;
  for (const Clock clock : {20, 30}) {
    Save(clock);
    Prune(1);
    Tick();
  }
  EXPECT_TRUE(files_->Exists("out/step_0000000010")) << "it is being copied";
  EXPECT_FALSE(files_->Exists("out/step_0000000020"));
  rclone_.stands_still = false;
  for (int i = 0; i < 20; ++i) {
    Tick();
    Prune(1);
  }
  EXPECT_EQ(Folders(), "30") << "20 was never there, and 10 went after 30 had come";
  EXPECT_EQ(rclone_.started[rclone_.started.size() - 2], "delete /step_0000000010");
  EXPECT_EQ(rclone_.started.back(), "purge /step_0000000010");
}

TEST_F(CheckpointCopiesTest, AFailureIsToldAndTriedAgainAtTheNextSave) {
  for (int command = 0; command < 3; ++command) {
    SCOPED_TRACE(command);
    const uint64_t failures = copies_->figures().failures;
    Save(10 * (command + 1));
    rclone_.fail_at = static_cast<int>(rclone_.started.size()) + command;
    Tick(20);
    EXPECT_EQ(copies_->figures().failures, failures + 1);
    EXPECT_THAT(copies_->TakeWarnings(),
                ElementsAre(AllOf(HasSubstr("no route to host"), HasSubstr("at the next save"),
                                  HasSubstr("By hand: rclone "))));
    EXPECT_THAT(copies_->trouble(), HasSubstr("no route to host"));
    EXPECT_THAT(copies_->held(), IsEmpty());
    const size_t before = rclone_.started.size();
    Tick(50);
    EXPECT_EQ(rclone_.started.size(), before) << "nothing is tried before a save";
  }
  rclone_.fail_at = -1;
  Save(40);
  Tick(60);
  EXPECT_EQ(Folders(), "10 20 30 40") << "what the run still has is copied in the end";
  EXPECT_EQ(copies_->trouble(), "");
}

TEST_F(CheckpointCopiesTest, BrokenOffAnywhereAndBegunAgain) {
  size_t commands = 0;
  for (size_t killed_at = 0; killed_at < 40; ++killed_at) {
    SCOPED_TRACE(killed_at);
    rclone_.there.clear();
    rclone_.started.clear();
    rclone_.ever_whole = false;
    ASSERT_TRUE(files_->RemoveAll("out").ok());
    Restart();
    Save(10);
    Save(12, 10);
    ASSERT_TRUE(copies_->CheckStart(std::nullopt).ok());
    rclone_.started.clear();
    const auto lives = [&] { return rclone_.started.size() <= killed_at; };
    for (int i = 0; i < 20 && lives(); ++i) Tick();
    Save(20);
    Save(22, 20);
    Prune(1);
    for (int i = 0; i < 40 && lives(); ++i) Tick();
    if (lives()) {
      commands = killed_at;
      break;
    }
    Restart();
    Prune(1);
    ASSERT_TRUE(copies_->CheckStart(*FindCheckpoint(*files_, "out")).ok());
    Tick(60);
    EXPECT_EQ(rclone_.Newest(), 22);
    EXPECT_EQ(Folders(), "20 22");
  }
  EXPECT_GT(commands, 10u) << "it was killed at each command of a whole run";
}

TEST_F(CheckpointCopiesTest, AnotherSaveOfTheSameStep) {
  Save(10);
  Save(20);
  Tick(40);
  const std::string before = rclone_.there.at("st:copies/step_0000000020/shard_000.snapshot");
  Save(20, kNoClock, ", another");
  rclone_.started.clear();
  Tick(40);
  EXPECT_THAT(rclone_.started,
              ElementsAre("cat /step_0000000020", "delete /step_0000000020",
                          "copy /step_0000000020", "copyto /step_0000000020/manifest.json"));
  EXPECT_NE(rclone_.there.at("st:copies/step_0000000020/shard_000.snapshot"), before);
  // While its files are copied, the run saves it again.
  Save(20, kNoClock, ", a third");
  Tick(3);
  Save(20, kNoClock, ", a fourth");
  Tick(40);
  EXPECT_EQ(rclone_.Newest(), 20);
  EXPECT_THAT(rclone_.there.at("st:copies/step_0000000020/shard_000.snapshot"),
              HasSubstr("a fourth"));
}

TEST_F(CheckpointCopiesTest, ARunThatGoesOnFindsItsCopies) {
  Save(10);
  Tick(20);
  Restart();
  rclone_.started.clear();
  Tick(20);
  EXPECT_THAT(rclone_.started, ElementsAre("cat /step_0000000010"));
}

TEST_F(CheckpointCopiesTest, AFolderThatMayBeAnothersKeepsWhatItHas) {
  rclone_.there["st:copies/step_0000000007/shard_000.snapshot"] = "of another run";
  Save(10);
  ASSERT_TRUE(copies_->CheckStart(*FindCheckpoint(*files_, "out")).ok());
  Tick(20);
  EXPECT_EQ(Folders(), "7 10");
}

TEST_F(CheckpointCopiesTest, TheEndWaitsAndTriesAgain) {
  Save(10);
  rclone_.fail_at = 1;
  EXPECT_THAT(copies_->Finish(now_), HasSubstr("st:copies"));
  Tick(3);
  EXPECT_THAT(copies_->TakeWarnings(), ElementsAre(HasSubstr("tried again in 1 s")));
  EXPECT_TRUE(copies_->awaited());
  now_ += 1000;
  rclone_.fail_at = -1;
  Tick();
  EXPECT_THAT(copies_->Progress(), AllOf(HasSubstr("step 10"), HasSubstr("36%")));
  Tick(10);
  EXPECT_FALSE(copies_->awaited());
  EXPECT_THAT(copies_->Done(), HasSubstr("step 10"));
  EXPECT_EQ(copies_->Finish(now_), "") << "all is there";
}

TEST_F(CheckpointCopiesTest, TheEndHasALimit) {
  Save(10);
  rclone_.stands_still = true;
  Tick(2);
  ASSERT_NE(copies_->Finish(now_), "");
  now_ += 59'000;
  Tick();
  EXPECT_TRUE(copies_->awaited());
  now_ += 1000;
  Tick();
  EXPECT_FALSE(copies_->awaited());
  EXPECT_THAT(copies_->TakeWarnings(),
              ElementsAre(AllOf(HasSubstr("step 10 is broken off"), HasSubstr("copy_wait_s"),
                                HasSubstr("rclone copy out st:copies"))));
}

TEST_F(CheckpointCopiesTest, TheBeginningLooks) {
  EXPECT_TRUE(copies_->CheckStart(std::nullopt).ok()) << "an empty place is right";
  rclone_.fail_at = 1;
  const FoundCheckpoint newest = {
      .folder = "", .manifest = {}, .refused = {}, .chain = {}, .newest = kNoClock};
  EXPECT_EQ(copies_->CheckStart(std::nullopt).code(), Code::kInvalidArgument);
  rclone_.fail_at = 2;
  EXPECT_TRUE(copies_->CheckStart(newest).ok()) << "a run that has begun goes on without network";
  EXPECT_THAT(copies_->TakeWarnings(), ElementsAre(HasSubstr("no route to host")));
  rclone_.failure = {.status = 1,
                     .output = "",
                     .output_cut = false,
                     .errors =
                         "2022/11/28 03:23:47 Failed to create file system for \"st:\": "
                         "didn't find section in config file\n"};
  rclone_.fail_at = 3;
  EXPECT_THAT(copies_->CheckStart(newest).message(),
              AllOf(HasSubstr("checkpoint.copy_to"), HasSubstr("st:copies"),
                    HasSubstr("find section"), HasSubstr("rclone lsf st:copies")));
  rclone_.failure = {
      .status = 127, .output = "", .output_cut = false, .errors = "nice: 'rclone': No such file\n"};
  rclone_.fail_at = 4;
  EXPECT_THAT(copies_->CheckStart(newest).message(), HasSubstr("apt install rclone"));
  rclone_.there["st:copies/step_0000000007/manifest.json"] = "of another run";
  EXPECT_THAT(copies_->CheckStart(std::nullopt).message(), HasSubstr("another run's"));
  EXPECT_THAT(copies_->TakeWarnings(), IsEmpty());
  EXPECT_TRUE(copies_->CheckStart(newest).ok());
  EXPECT_THAT(copies_->TakeWarnings(), ElementsAre(HasSubstr("step_0000000007")));
}

}  // namespace
}  // namespace hdps
