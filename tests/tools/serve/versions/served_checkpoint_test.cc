// Tests that a model follows its folder, goes back when told, and names the version of each answer.
#include "tools/serve/versions/served_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/platform/settable_clock.h"
#include "tests/tools/serve/versions/planted_run.h"
#include "worker/data/watched_files.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ServedCheckpointTest : public testing::Test {
 protected:
  void Open(WantedVersion wanted = {}, FileSystem* files = nullptr) {
    ServedOptions options;
    options.folder = "run";
    options.wanted = wanted;
    options.look_ms = 0;
    options.tell = [this](const std::string& what) { told_.push_back(what); };
    auto opened = ServedCheckpoint::Open(options, files == nullptr ? *files_ : *files, clock_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    model_ = *std::move(opened);
  }
  // Returns the step of an answer, whose scores must be those of that step.
  Clock Asked(Clock wanted = kNoClock) {
    const auto answer =
        model_->Score({.rows = PlantedRows(3), .outputs = {ScoreOutput::kLogit}}, wanted);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    if (!answer.ok()) return kNoClock;
    const float logit = PlantedRun::kTerms * static_cast<float>(answer->step);
    EXPECT_EQ(answer->outputs[0].numbers, std::vector<float>(3, logit));
    return answer->step;
  }
  Clock Looked() {
    model_->Look();
    return Asked();
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  SettableClock clock_;
  PlantedRun run_{*files_, "run"};
  std::vector<std::string> told_;
  std::unique_ptr<ServedCheckpoint> model_;
};

TEST_F(ServedCheckpointTest, DeltasAndWholeCheckpointsAreFollowed) {
  run_.SaveWhole(10);
  Open();
  EXPECT_EQ(Asked(), 10);
  EXPECT_EQ(model_->note().name, "planted");
  EXPECT_THAT(model_->features(), ElementsAre("a", "b"));
  run_.SaveDelta(20);
  EXPECT_EQ(Asked(), 10) << "nobody has looked";
  clock_.now_ms += 700;
  EXPECT_EQ(Looked(), 20);
  run_.SaveDelta(30);
  run_.SaveDelta(40);
  EXPECT_EQ(Looked(), 40);
  run_.SaveWhole(50);
  run_.SaveDelta(60);
  EXPECT_EQ(Looked(), 60) << "it builds on a checkpoint that was never at hand";
  EXPECT_THAT(model_->steps(), ElementsAre(10, 20, 30, 40, 50, 60));
  const VersionFacts facts = model_->facts();
  EXPECT_EQ(facts.step, 60);
  EXPECT_EQ(facts.taken_ms, 5700);
  EXPECT_EQ(facts.whole.count, 2u);
  EXPECT_EQ(facts.deltas.count, 3u);
  EXPECT_GT(facts.deltas.bytes, 0u);
  EXPECT_THAT(facts.refused, testing::Each(0u));
  EXPECT_THAT(told_.back(), HasSubstr("model planted: step 60 answers; "));
}

TEST_F(ServedCheckpointTest, RowsOfADeltaAloneChange) {
  run_.SaveWhole(10);
  Open();
  run_.Set(10, /*one=*/2, /*of_one=*/17);
  run_.SaveDelta(20, /*as_set=*/true);
  model_->Look();
  const auto answer =
      model_->Score({.rows = PlantedRows(4), .outputs = {ScoreOutput::kLogit}}, kNoClock);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->step, 20);
  EXPECT_THAT(answer->outputs[0].numbers, ElementsAre(30, 30, 37, 30));
}

TEST_F(ServedCheckpointTest, UsePinsAndFollowsAgain) {
  run_.SaveWhole(10);
  run_.SaveDelta(20);
  Open();
  EXPECT_EQ(Asked(), 20);
  ASSERT_TRUE(model_->Use(10).ok());
  EXPECT_EQ(Asked(), 20) << "it is loaded by the follower";
  EXPECT_EQ(Looked(), 10);
  EXPECT_EQ(model_->facts().pinned, 10);
  run_.SaveWhole(30);
  EXPECT_EQ(Looked(), 10);
  const Status refused = model_->Use(25);
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_THAT(refused.message(), HasSubstr("has no version 25; expected newest or one of 10, 20"));
  EXPECT_EQ(Looked(), 10);
  ASSERT_TRUE(model_->Use(20).ok());
  EXPECT_EQ(Looked(), 20);
  ASSERT_TRUE(model_->Use(kNoClock).ok());
  EXPECT_EQ(Looked(), 30);
  EXPECT_EQ(model_->facts().pinned, kNoClock);
}

TEST_F(ServedCheckpointTest, AStepOrTheBestAsWanted) {
  run_.SaveWhole(10);
  run_.SaveWhole(20);
  Open({.step = 10});
  EXPECT_EQ(Looked(), 10);
  WatchState& best = run_.manifest().watched.best;
  best.best_clock = best.last_clock = 20;
  run_.SaveWhole(30);
  Open({.which = WhichCheckpoint::kBest});
  EXPECT_EQ(Asked(), 20);
  run_.SaveWhole(40);
  EXPECT_EQ(Looked(), 20);
  best.best_clock = best.last_clock = 30;
  run_.SaveWhole(50);
  EXPECT_EQ(Looked(), 30) << testing::PrintToString(told_);
}

TEST_F(ServedCheckpointTest, AnotherVersionThanAnswersIsNotFound) {
  run_.SaveWhole(10);
  run_.SaveWhole(20);
  Open();
  EXPECT_EQ(Asked(20), 20);
  const Status status = model_->Score({.rows = PlantedRows(1), .outputs = {}}, 10).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("version 10 of the model planted does not answer, "
                                          "version 20 does; :use takes one of 10, 20"));
}

TEST_F(ServedCheckpointTest, PredictionsAndUnknownKeysUnlessAskedOtherwise) {
  run_.SaveWhole(1);
  Open();
  auto columns = std::make_shared<TextColumns>();
  columns->Add("a", {"a1", "a2", "stranger"});
  columns->Add("b", {"b1", "", "b2"});
  const auto answer = model_->Score({.rows = KeptTable(columns), .outputs = {}}, kNoClock);
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer->rows, 3u);
  ASSERT_EQ(answer->outputs.size(), 1u);
  EXPECT_EQ(answer->outputs[0].name, "probability");
  EXPECT_FLOAT_EQ(answer->outputs[0].numbers[0], 0.95257413f);  // 1 / (1 + exp(-3))
  EXPECT_THAT(answer->keys, ElementsAre(3, 3));
  // A missing cell is a value of its own, which has no row here.
  EXPECT_THAT(answer->unknown_keys, ElementsAre(1, 1));
}

TEST_F(ServedCheckpointTest, RowsByKeyAndByValue) {
  run_.SaveWhole(10);
  Open();
  auto values = std::make_shared<TextColumns>();
  values->Add("b", {"b1", "stranger"});
  LookupRequest request;
  request.table = "wide";
  request.feature = "b";
  request.values = KeptTable(values);
  const auto by_value = model_->Lookup(request, kNoClock);
  ASSERT_TRUE(by_value.ok()) << by_value.status().message();
  EXPECT_EQ(by_value->step, 10);
  EXPECT_EQ(by_value->dim, 1u);
  EXPECT_THAT(by_value->has_row, ElementsAre(true, false));
  EXPECT_EQ(by_value->rows[0], 10.0f);
  const auto by_key = model_->Lookup(
      {.table = "wide", .keys = {FeatureKey(HashString("b"), "b1")}, .feature = "", .values = {}},
      10);
  ASSERT_TRUE(by_key.ok()) << by_key.status().message();
  EXPECT_THAT(by_key->rows, ElementsAre(10));
  request.feature = "price";
  EXPECT_THAT(model_->Lookup(request, kNoClock).status().message(),
              HasSubstr("has no rows of \"price\"; expected a, b"));
  request.table = "wid";
  EXPECT_THAT(model_->Lookup(request, kNoClock).status().message(),
              HasSubstr("there is no table \"wid\"; did you mean \"wide\"?; expected wide"));
}

TEST_F(ServedCheckpointTest, ARunThatBeganAnewIsFollowed) {
  run_.SaveWhole(10);
  run_.SaveWhole(20);
  Open();
  ASSERT_TRUE(files_->RemoveAll("run/checkpoint").ok());
  ASSERT_TRUE(files_->MakeDirectories("run/checkpoint").ok());
  EXPECT_EQ(Looked(), 20);
  EXPECT_THAT(model_->steps(), ElementsAre(20));
  run_.SaveWhole(5);
  EXPECT_EQ(Looked(), 5);
}

TEST_F(ServedCheckpointTest, WhatIsRemovedWhileItIsReadIsNoError) {
  run_.SaveWhole(10);
  bool removes = false;
  WatchedFiles files(*files_, [&](const std::string& path) {
    if (removes && path == JoinPath(run_.FolderOf(20), SnapshotName({1}))) {
      // As PruneCheckpoints does.
      EXPECT_TRUE(files_->RemoveAll(JoinPath(run_.FolderOf(20), kManifestName)).ok());
      EXPECT_TRUE(files_->RemoveAll(run_.FolderOf(20)).ok());
    }
  });
  Open({}, &files);
  run_.SaveWhole(20);
  removes = true;
  EXPECT_EQ(Looked(), 10);
  EXPECT_FALSE(files_->Exists(run_.FolderOf(20)));
  EXPECT_THAT(model_->facts().refused, testing::Each(0u));
  run_.SaveWhole(30);
  EXPECT_EQ(Looked(), 30);
}

TEST_F(ServedCheckpointTest, WhatDoesNotFitIsRefusedAndTriedAgain) {
  run_.SaveWhole(10);
  Open();
  const std::string limit = "/sys/fs/cgroup/memory.max";
  ASSERT_TRUE(files_->MakeDirectories("/sys/fs/cgroup").ok());
  ASSERT_TRUE(files_->MakeDirectories("/proc/self").ok());
  ASSERT_TRUE(WriteFileAtomically(*files_, "/proc/self/cgroup", std::string("0::/\n")).ok());
  ASSERT_TRUE(WriteFileAtomically(*files_, limit, std::string("100\n")).ok());
  run_.SaveWhole(20);
  EXPECT_EQ(Looked(), 10);
  EXPECT_EQ(Looked(), 10);
  EXPECT_EQ(model_->facts().refused[static_cast<size_t>(Refusal::kMemory)], 1u);
  EXPECT_THAT(told_.back(), HasSubstr("step 20 is refused, memory: "));
  EXPECT_THAT(told_.back(), HasSubstr("are missing"));
  ASSERT_TRUE(files_->RemoveAll(limit).ok());
  EXPECT_EQ(Looked(), 20) << "although the folder is the same";
}

TEST_F(ServedCheckpointTest, NothingToServeIsToldWithWhatWasRefused) {
  ServedOptions options;
  options.folder = "nowhere";
  const auto no_folder = ServedCheckpoint::Open(options, *files_, clock_);
  EXPECT_EQ(no_folder.status().code(), Code::kNotFound);
  EXPECT_EQ(no_folder.status().message(), "nowhere: no such folder");
  run_.SaveWhole(10);
  options.folder = "run";
  options.wanted.step = 11;
  EXPECT_THAT(ServedCheckpoint::Open(options, *files_, clock_).status().message(),
              HasSubstr("no checkpoint that can be served as step 11: steps there are 10"));
  const std::string file = JoinPath(run_.FolderOf(10), SnapshotName({0}));
  ASSERT_TRUE(files_->RemoveAll(file).ok());
  options.wanted.step = kNoClock;
  EXPECT_THAT(ServedCheckpoint::Open(options, *files_, clock_).status().message(),
              HasSubstr("no checkpoint that can be served; " + run_.FolderOf(10)));
}

}  // namespace
}  // namespace hdps
