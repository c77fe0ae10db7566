// Tests that a load ends with the block at hand once serving ends, and that nothing comes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/common/platform/settable_clock.h"
#include "tests/tools/serve/versions/counted_files.h"
#include "tests/tools/serve/versions/planted_run.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// How a version comes: whole, as a delta, or whole into a folder whose files are mapped.
enum class Coming { kWhole, kDelta, kOnDisk };

class StoppedLoadsTest : public testing::TestWithParam<Coming> {
 protected:
  Result<std::unique_ptr<ServedCheckpoint>> Open() {
    ServedOptions options;
    options.folder = "run";
    options.look_ms = 0;
    options.stop = &files_.stop();
    options.tell = [this](const std::string& what) { told_.push_back(what); };
    if (GetParam() == Coming::kOnDisk) options.memory_limit = uint64_t{1} << 40;
    options.scratch = "scratch";
    return ServedCheckpoint::Open(options, files_, clock_);
  }
  void SaveNext() {
    if (GetParam() == Coming::kDelta) {
      run_.SaveDelta(20);
    } else {
      run_.SaveWhole(20);
    }
  }

  const std::unique_ptr<FileSystem> memory_ = NewMemoryFileSystem();
  CountedFiles files_{*memory_};
  SettableClock clock_;
  PlantedRun run_{*memory_, "run"};
  std::vector<std::string> told_;
};
std::string NameOf(const testing::TestParamInfo<Coming>& info) {
  constexpr const char* kNames[] = {"Whole", "Delta", "OnDisk"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Versions, StoppedLoadsTest,
                         testing::Values(Coming::kWhole, Coming::kDelta, Coming::kOnDisk), NameOf);

// Wherever in the load it is told to stop, no other block is read or written.
TEST_P(StoppedLoadsTest, ANewerVersionIsGivenUpAtEachBlock) {
  run_.SaveWhole(10);
  constexpr uint64_t kLoadsMax = 10'000;
  uint64_t block = 1;
  auto first = Open();
  ASSERT_TRUE(first.ok()) << first.status().message();
  SaveNext();
  for (; block < kLoadsMax; ++block) {
    files_.StopAt(block);
    (*first)->Look();
    EXPECT_EQ(files_.blocks_behind_stop(), 0u) << block;
    if ((*first)->step() == 20) break;
    ASSERT_TRUE(files_.stop()) << block;
    const auto answer =
        (*first)->Score({.rows = PlantedRows(3), .outputs = {ScoreOutput::kLogit}}, 10);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    files_.StopAt(0);
    ASSERT_TRUE((*first)->Use(kNoClock).ok());  // The next look tries again.
  }
  EXPECT_GT(block, 10u);
  EXPECT_LT(block, kLoadsMax);
  EXPECT_EQ((*first)->step(), 20) << "at its last block there is nothing left to give up";
  EXPECT_EQ(files_.blocks(), block);
  EXPECT_THAT((*first)->facts().refused, Each(0u));
  EXPECT_THAT(told_, Each(Not(HasSubstr("is refused"))));
  if (GetParam() == Coming::kOnDisk) {
    EXPECT_THAT(*memory_->List("scratch"), testing::IsEmpty());
  }
  std::printf("figure: %llu blocks of a version, at each of which its load was given up\n",
              static_cast<unsigned long long>(block - 1));
}

TEST_P(StoppedLoadsTest, TheFirstVersionIsGivenUp) {
  run_.SaveWhole(10);
  SaveNext();
  uint64_t block = 1;
  for (; block < 10'000; ++block) {
    files_.StopAt(block);
    const auto opened = Open();
    if (!files_.stop()) {
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      break;
    }
    EXPECT_EQ(opened.status().code(), Code::kCancelled) << block;
    EXPECT_EQ(files_.blocks_behind_stop(), 0u) << block;
  }
  EXPECT_GT(block, 10u);
  EXPECT_THAT(told_, Each(Not(HasSubstr("is refused"))));
}

}  // namespace
}  // namespace hdps
