// Tests states that are appended to a file: the newest whole one counts.
#include "scheduler/state_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/platform/file_system.h"

namespace hdps {
namespace {

constexpr char kPath[] = "state";

class StateLogTest : public testing::Test {
 protected:
  std::string Bytes() const { return *ReadWholeFile(*files_, kPath, 1 << 24); }
  void Write(const std::string& text, Survives survives = Survives::kProcess) {
    ASSERT_TRUE(log_.Write(*files_, kPath, text, survives).ok());
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  StateLog log_;
};

TEST_F(StateLogTest, TheNewestWholeStateCountsWhereverTheLastOneIsTorn) {
  Write("{\n 1\n}\n", Survives::kMachine);
  EXPECT_EQ(Bytes(), "{\n 1\n}\n");
  Write("{\n 22\n}\n");
  const size_t two = Bytes().size();
  Write("{\n 333\n}\n");
  const std::string all = Bytes();
  for (size_t bytes = two; bytes < all.size(); ++bytes) {
    EXPECT_EQ(NewestState(all.substr(0, bytes)), "{\n 22\n}\n") << bytes;
  }
  EXPECT_EQ(NewestState(all), "{\n 333\n}\n");
  for (size_t at = two; at < all.size(); ++at) {
    std::string damaged = all;
    damaged[at] ^= 1;
    EXPECT_EQ(NewestState(damaged), "{\n 22\n}\n") << at;
  }
  EXPECT_EQ(NewestState(all.substr(0, two - 1)), "{\n 1\n}");
}

TEST_F(StateLogTest, AStateThatSurvivesTheMachineBeginsAFile) {
  Write("1\n");
  Write("2\n");
  Write("3\n", Survives::kMachine);
  EXPECT_EQ(Bytes(), "3\n");
  Write("4\n");
  EXPECT_EQ(NewestState(Bytes()), "4\n");
}

TEST_F(StateLogTest, AFileIsNoLongerThanItsBound) {
  const std::string state(100'000, 'x');
  size_t begun = 0;
  for (int i = 0; i < 40; ++i) {
    Write(state + std::to_string(i) + "\n");
    begun += Bytes().size() == state.size() + std::to_string(i).size() + 1;
    EXPECT_LE(Bytes().size(), StateLog::kBytesMax + 2 * state.size());
    const std::string bytes = Bytes();
    EXPECT_EQ(NewestState(bytes), state + std::to_string(i) + "\n");
  }
  EXPECT_EQ(begun, 4u);
}

TEST_F(StateLogTest, AnotherProcessesFileIsNotWrittenTo) {
  Write("1\n");
  Write("2\n");
  // The old process goes on with a file that is no longer there.
  ASSERT_TRUE(WriteFileAtomically(*files_, kPath, std::string("of another process\n")).ok());
  Write("3\n");
  EXPECT_EQ(Bytes(), "of another process\n");
}

TEST(NewestState, OfAnyBytesIsAPartOfThem) {
  for (const std::string text : {"", "#", "\n#", "\n#1", "\n#1 ", "\n#1 2\n", "x\n#9 9\ny\n#",
                                 "\n#18446744073709551615 0\n", "\n#-1 0\n", "\n# \n#\n"}) {
    const std::string_view newest = NewestState(text);
    EXPECT_EQ(newest, std::string_view(text).substr(0, newest.size())) << text;
  }
}

}  // namespace
}  // namespace hdps
