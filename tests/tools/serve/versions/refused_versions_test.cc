// Tests that a checkpoint that is damaged, another job's or not finite is refused by name, and that
// the version at hand goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/common/platform/settable_clock.h"
#include "tests/tools/serve/versions/counted_files.h"
#include "tests/tools/serve/versions/planted_run.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct World {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  PlantedRun run{*files, "run"};

  std::string Text(const std::string& path) { return *ReadWholeFile(*files, path, 1 << 20); }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(*files, path, text).ok());
  }
  void Cut(const std::string& path, size_t bytes) {
    Write(path, Text(path).substr(0, Text(path).size() - bytes));
  }
  void Flip(const std::string& path) {
    std::string text = Text(path);
    text[text.size() / 2] ^= 1;
    Write(path, text);
  }
  std::string Whole(Clock clock) { return JoinPath(run.FolderOf(clock), SnapshotName({1})); }
  std::string Delta(Clock clock) { return JoinPath(run.FolderOf(clock), DeltaName({1})); }
  std::string ManifestOf(Clock clock) { return JoinPath(run.FolderOf(clock), kManifestName); }
};

// A way to break what comes after the whole checkpoint 10.
struct Break {
  const char* name;
  std::function<void(World&)> make;  // The broken checkpoint is that of clock 30.
  Refusal reason;
  const char* told;  // What the refusal names beside the folder.
};

std::ostream& operator<<(std::ostream& to, const Break& one) { return to << one.name; }

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

std::vector<Break> BrokenWholes() {
  return {
      {"WholeIsCut",
       [](World& w) {
         w.run.SaveWhole(30);
         w.Cut(w.Whole(30), 1);
       },
       Refusal::kDamaged, "shard_001.snapshot"},
      {"WholeIsFlipped",
       [](World& w) {
         w.run.SaveWhole(30);
         w.Flip(w.Whole(30));
       },
       Refusal::kDamaged, "checksum"},
      {"WholeIsEmpty",
       [](World& w) {
         w.run.SaveWhole(30);
         w.Write(w.Whole(30), "");
       },
       Refusal::kDamaged, "0 bytes long"},
      {"AFileIsMissing",
       [](World& w) {
         w.run.SaveWhole(30);
         ASSERT_TRUE(w.files->RemoveAll(w.Whole(30)).ok());
       },
       Refusal::kDamaged, "shard_001.snapshot"},
      {"ManifestIsFlipped",
       [](World& w) {
         w.run.SaveWhole(30);
         w.Flip(w.ManifestOf(30));
       },
       Refusal::kDamaged, "manifest.json"},
      {"ManifestOfAnotherClock",
       [](World& w) {
         w.run.SaveWhole(20);
         ASSERT_TRUE(w.files->MakeDirectories(w.run.FolderOf(30)).ok());
         w.Write(w.ManifestOf(30), w.Text(w.ManifestOf(20)));
         ASSERT_TRUE(w.files->RemoveAll(w.run.FolderOf(20)).ok());
       },
       Refusal::kDamaged, "it is that of clock 20"},
      {"WholeOfAnotherJob",
       [](World& w) { PlantedRun(*w.files, "run", "\"seed\": 4").SaveWhole(30); }, Refusal::kUnfit,
       "seed is 3, the checkpoint's is 4"},
      {"TablesAreNotThoseOfItsJob",
       [](World& w) {
         ++w.run.manifest().tables_digest;
         w.run.SaveWhole(30);
       },
       Refusal::kUnfit, "expected a checkpoint of the job that is served"},
      {"WholeWithNan",
       [](World& w) {
         w.run.Set(30, 7, kNan);
         w.run.SaveWhole(30, true);
       },
       Refusal::kDamaged, "is no finite number"},
      {"ScoresOverflow",
       [](World& w) {
         w.run.Set(3e38f);
         w.run.SaveWhole(30, true);
       },
       Refusal::kUnfit, "scores that are not finite"},
  };
}

std::vector<Break> BrokenDeltas() {
  return {
      {"DeltaIsCut",
       [](World& w) {
         w.run.SaveDelta(30);
         w.Cut(w.Delta(30), 9);
       },
       Refusal::kDamaged, "shard_001.delta"},
      {"DeltaIsFlipped",
       [](World& w) {
         w.run.SaveDelta(30);
         w.Flip(w.Delta(30));
       },
       Refusal::kDamaged, "shard_001.delta"},
      {"ALinkIsMissing",
       [](World& w) {
         w.run.SaveDelta(20);
         w.run.SaveDelta(30);
         ASSERT_TRUE(w.files->RemoveAll(w.run.FolderOf(20)).ok());
       },
       Refusal::kDamaged, "builds on clock 20, which is not whole"},
      {"DeltaOnAnotherBase",
       [](World& w) {
         PlantedRun other(*w.files, "other");
         other.manifest().examples = 1;
         other.SaveWhole(10);
         other.SaveDelta(30);
         ASSERT_TRUE(w.files->Rename(other.FolderOf(30), w.run.FolderOf(30)).ok());
       },
       Refusal::kDamaged, "it is not the one that clock 30 was built on"},
      {"DeltaWithNan",
       [](World& w) {
         w.run.Set(30, 7, kNan);
         w.run.SaveDelta(30, true);
       },
       Refusal::kDamaged, "is no finite number"},
      {"DeltaWithAnInfiniteBias",
       [](World& w) {
         w.run.Set(kInf);
         w.run.SaveDelta(30, true);
       },
       Refusal::kDamaged, "is no finite number"},
  };
}

class RefusedVersionsTest : public testing::TestWithParam<Break> {};
const auto kName = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Wholes, RefusedVersionsTest, testing::ValuesIn(BrokenWholes()), kName);
INSTANTIATE_TEST_SUITE_P(Deltas, RefusedVersionsTest, testing::ValuesIn(BrokenDeltas()), kName);

TEST_P(RefusedVersionsTest, TheVersionAtHandGoesOn) {
  World world;
  SettableClock clock;
  std::vector<std::string> told;
  ServedOptions options;
  options.folder = "run";
  options.look_ms = 0;
  options.tell = [&](const std::string& what) { told.push_back(what); };
  world.run.SaveWhole(10);
  const auto opened = ServedCheckpoint::Open(options, *world.files, clock);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  ServedCheckpoint& model = **opened;
  const auto ask = [&](Clock expected) {
    const auto answer = model.Score(
        {.rows = PlantedRows(kPlantedValues), .outputs = {ScoreOutput::kLogit}}, expected);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    const float logit = PlantedRun::kTerms * static_cast<float>(expected);
    EXPECT_EQ(answer->outputs[0].numbers, std::vector<float>(kPlantedValues, logit));
  };
  const Break& broken = GetParam();
  ask(10);
  broken.make(world);
  told.clear();
  model.Look();
  ask(10);
  const auto count = [&] { return model.facts().refused[static_cast<size_t>(broken.reason)]; };
  EXPECT_EQ(count(), 1u);
  const auto refusal = std::ranges::find_if(
      told, [](const std::string& what) { return what.find("is refused") != what.npos; });
  ASSERT_NE(refusal, told.end());
  EXPECT_THAT(*refusal,
              AllOf(HasSubstr("step 30 is refused, " + std::string(WordOf(broken.reason))),
                    HasSubstr(world.run.FolderOf(30)), HasSubstr(broken.told),
                    HasSubstr("step 10 goes on")));
  // It is told once, also when it is tried again.
  model.Look();
  ASSERT_TRUE(model.Use(kNoClock).ok());
  model.Look();
  EXPECT_EQ(count(), 1u);
  ask(10);
  // Going back, and what comes later, are as if it were not there.
  PlantedRun later(*world.files, "run");
  later.SaveWhole(40);
  model.Look();
  ask(40);
  ASSERT_TRUE(model.Use(10).ok());
  model.Look();
  ask(10);
}

// A checkpoint that comes to be damaged, and how it is repaired in place.
struct Repair {
  const char* name;
  std::function<std::string(World&)> break_one;  // Returns the file that is damaged or missing.
};

std::string RepairName(const testing::TestParamInfo<Repair>& repair) { return repair.param.name; }
class RepairedVersionsTest : public testing::TestWithParam<Repair> {};
INSTANTIATE_TEST_SUITE_P(Repairs, RepairedVersionsTest,
                         testing::Values(Repair{"WholeIsFlipped",
                                                [](World& w) {
                                                  w.run.SaveWhole(30);
                                                  return w.Whole(30);
                                                }},
                                         Repair{"DeltaIsFlipped",
                                                [](World& w) {
                                                  w.run.SaveDelta(30);
                                                  return w.Delta(30);
                                                }},
                                         Repair{"ADeltaBelowIsFlipped",
                                                [](World& w) {
                                                  w.run.SaveDelta(20);
                                                  w.run.SaveDelta(30);
                                                  return w.Delta(20);
                                                }},
                                         Repair{"TheWholeBelowIsFlipped",
                                                [](World& w) {
                                                  w.run.SaveWhole(20);
                                                  w.run.SaveDelta(30);
                                                  return w.Whole(20);
                                                }}),
                         RepairName);

TEST_P(RepairedVersionsTest, ItIsTakenWithoutANewManifest) {
  for (const bool missing : {false, true}) {
    World world;
    SettableClock clock;
    std::string broken;
    CountedFiles files(*world.files);
    world.run.SaveWhole(10);
    const auto model =
        ServedCheckpoint::Open({.name = "", .folder = "run", .look_ms = 0}, files, clock);
    ASSERT_TRUE(model.ok()) << model.status().message();
    broken = GetParam().break_one(world);
    const std::string whole = world.Text(broken);
    if (missing) {
      ASSERT_TRUE(world.files->RemoveAll(broken).ok());
    } else {
      world.Flip(broken);
    }
    (*model)->Look();
    EXPECT_EQ((*model)->step(), 10);
    EXPECT_GE((*model)->facts().refused[static_cast<size_t>(Refusal::kDamaged)], 1u);
    // While nothing changes, files are asked for their stamps and are not read.
    files.StopAt(0);
    (*model)->Look();
    EXPECT_EQ((*model)->step(), 10);
    EXPECT_EQ(files.blocks(), 0u);
    world.Write(broken, whole);
    (*model)->Look();
    EXPECT_EQ((*model)->step(), 30);
  }
}

TEST(RefusedVersions, OtherMessagesThanNamesStayReadable) {
  EXPECT_EQ(RefusalOf(Code::kIoError), Refusal::kUnreadable);
  EXPECT_EQ(RefusalOf(Code::kResourceExhausted), Refusal::kMemory);
}

TEST(RefusedVersions, TheFirstVersionIsTheNewestThatCanBeServed) {
  World world;
  SettableClock clock;
  world.run.SaveWhole(10);
  world.run.SaveWhole(20);
  const std::string whole = world.Text(world.Whole(20));
  world.Flip(world.Whole(20));
  const auto opened =
      ServedCheckpoint::Open({.name = "", .folder = "run", .look_ms = 0}, *world.files, clock);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->step(), 10);
  const auto refused = [&] {
    return (*opened)->facts().refused[static_cast<size_t>(Refusal::kDamaged)];
  };
  EXPECT_EQ(refused(), 1u);
  // The version taken in its place is older, so a repair still counts; until then nothing is told.
  ASSERT_TRUE((*opened)->Use(kNoClock).ok());
  (*opened)->Look();
  EXPECT_EQ((*opened)->step(), 10);
  EXPECT_EQ(refused(), 1u);
  world.Write(world.Whole(20), whole);
  (*opened)->Look();
  EXPECT_EQ((*opened)->step(), 20);
}

TEST(RefusedVersions, RowsThatWereOddBeforeRefuseNothing) {
  World world;
  SettableClock clock;
  const float huge = 3.4e38F, large = 1e37F;  // Their sum is beyond all floats.
  world.run.Set(10, 7, huge);
  world.run.SaveWhole(10, true);
  const auto opened =
      ServedCheckpoint::Open({.name = "", .folder = "run", .look_ms = 0}, *world.files, clock);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  ServedCheckpoint& model = **opened;
  const auto logits = [&] {
    const auto answer = model.Score(
        {.rows = PlantedRows(kPlantedValues), .outputs = {ScoreOutput::kLogit}}, kNoClock);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return answer.ok() ? answer->outputs[0].numbers : std::vector<float>(kPlantedValues);
  };
  EXPECT_EQ(logits()[7], huge);
  const auto unfit = [&] { return model.facts().refused[static_cast<size_t>(Refusal::kUnfit)]; };
  // The rows beside the odd one still count.
  world.run.Set(huge);
  world.run.SaveWhole(20, true);
  model.Look();
  EXPECT_EQ(model.step(), 10);
  EXPECT_EQ(unfit(), 1u);
  // The odd row alone overflows, first by this version and then by both.
  world.run.Set(large, 7, huge);
  for (const Clock at : {30, 40}) {
    world.run.SaveWhole(at, true);
    model.Look();
    EXPECT_EQ(model.step(), at);
    EXPECT_EQ(logits()[7], kInf);
  }
  EXPECT_EQ(unfit(), 1u);
}

}  // namespace
}  // namespace hdps
