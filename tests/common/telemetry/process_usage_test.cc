// Checks the figures of this process against what it does.
#include "common/telemetry/process_usage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace hdps {
namespace {

TEST(ProcessUsage, SeesFilesMemoryAndTimeOfThisProcess) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const ProcessUsage before = ReadProcessUsage(*files);
  EXPECT_GT(before.open_fds, 2u);
  EXPECT_GT(before.resident_bytes, uint64_t{1} << 20);
  EXPECT_GT(before.start_unix_seconds, 1.6e9);

  auto open = files->OpenSequential("/proc/self/stat");
  ASSERT_TRUE(open.ok());
  constexpr size_t kMore = 64 << 20;
  std::vector<char> memory(kMore, 1);
  for (int i = 0; i < 50; ++i) std::fill(memory.begin(), memory.end(), static_cast<char>(i));
  const ProcessUsage after = ReadProcessUsage(*files);
  EXPECT_EQ(after.open_fds, before.open_fds + 1);
  EXPECT_GE(after.resident_bytes, before.resident_bytes + kMore / 2);
  EXPECT_GT(after.cpu_ns, before.cpu_ns);
  EXPECT_EQ(after.start_unix_seconds, before.start_unix_seconds);
}

TEST(ProcessUsage, FindsTheStartBehindAnOddName) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const auto write = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(*files, path, text).ok());
  };
  EXPECT_EQ(ReadProcessUsage(*files).start_unix_seconds, 0);
  ASSERT_TRUE(files->MakeDirectories("/proc/self").ok());
  write("/proc/self/stat", "7 (a) 1 (b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 0 23\n");
  write("/proc/stat", "cpu 1 2\nintr 5\nctxt 7\nbtime 1700000000\nprocesses 3\n");
  EXPECT_EQ(ReadProcessUsage(*files).start_unix_seconds, 1.7e9);
  write("/proc/self/stat", "7 (a) S\n");
  EXPECT_EQ(ReadProcessUsage(*files).start_unix_seconds, 1.7e9);
  write("/proc/self/stat", "7 a S\n");
  EXPECT_EQ(ReadProcessUsage(*files).start_unix_seconds, 0);
}

}  // namespace
}  // namespace hdps
