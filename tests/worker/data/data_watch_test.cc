// Tests files that change during a run.
#include "worker/data/whole_files/data_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "common/platform/random.h"
#include "common/protocol/manifest_parts.h"
#include "tests/worker/data/data_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DataWatchTest, ChangesAreToldOnceWithBothSizes) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "a.csv", "0,1\n");
  WriteText(*files, "b.csv", "0,1\n");
  DataWatch watch(*files, {"a.csv", "b.csv"});
  EXPECT_EQ(watch.Look("so"), "");
  EXPECT_EQ(watch.Look("so"), "");
  WriteText(*files, "b.csv", "0,1\n1,2\n");
  EXPECT_EQ(watch.Look("so be it"), "b.csv had 4 bytes and has 8 bytes now: so be it");
  EXPECT_EQ(watch.Look("so"), "");
  WriteText(*files, "b.csv", "0,1\n1,3\n");
  EXPECT_THAT(watch.Look("so"), HasSubstr("b.csv was written anew, with 8 bytes"));
  ASSERT_TRUE(files->RemoveAll("a.csv").ok());
  EXPECT_THAT(watch.Look("so"), HasSubstr("a.csv had 4 bytes and has 0 bytes now"));
}

TEST(DataWatchTest, TheTimeOfAChangeTellsOnDiskToo) {
  const auto files = NewPosixFileSystem();
  const std::string path =
      std::filesystem::temp_directory_path() / ("hdps_watch_" + std::to_string(NewPeerId().value));
  WriteText(*files, path, "0,1\n");
  DataWatch watch(*files, {path});
  EXPECT_EQ(watch.Look("so"), "");
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_THAT(watch.Look("so"), HasSubstr("written anew"));
  EXPECT_EQ(watch.Look("so"), "");
  std::filesystem::remove(path);
}

TEST(DataWatchTest, PrintsAreOfLengthAndBothEnds) {
  const auto files = NewMemoryFileSystem();
  std::string text(300'000, 'x');
  const auto print = [&] {
    WriteText(*files, "rows", text);
    return PrintOf(*files, "rows");
  };
  const FilePrint before = print();
  EXPECT_EQ(before.bytes, text.size());
  EXPECT_EQ(print(), before) << "a copy, written at another time";
  for (const size_t place : {size_t{0}, text.size() - 1}) {
    text[place] = 'y';
    EXPECT_NE(print(), before) << place;
    text[place] = 'x';
  }
  text += 'x';
  EXPECT_NE(print(), before);
  EXPECT_EQ(PrintOf(*files, "none"), FilePrint());
  EXPECT_EQ(DataWatch(*files, {"rows", "none"}).Prints().size(), 2u);
}

}  // namespace
}  // namespace hdps
