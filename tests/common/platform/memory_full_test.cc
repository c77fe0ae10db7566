// Tests the message for memory that cannot be had, and the end of a process without memory.
#include "common/platform/memory_full.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/memory_limit.h"
#include "common/process/command_line.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemoryFull, NamesTheInnermostThatAsked) {
  const MemoryFor outer("the outer (a.setting)");
  {
    const MemoryFor inner("the inner (b.setting)");
    EXPECT_THAT(MemoryFull(3 << 20).what(),
                AllOf(HasSubstr("out of memory: the inner (b.setting) asked for 3.00 MiB more"),
                      HasSubstr("raise that, or lower what asked")));
  }
  EXPECT_THAT(MemoryFull(uint64_t{0}).what(), HasSubstr("the outer (a.setting) asked for more,"));
  const std::string long_text(10'000, 'x');
  EXPECT_GT(std::string(MemoryFull(long_text.c_str()).what()).size(), 400u);
}

TEST(MemoryFull, NamesItForThreadsThatWorkOn) {
  const MemoryFor asking("a loop (c.setting)");
  const std::unique_ptr<Executor> executor = NewTbbExecutor(2);
  std::vector<const char*> names(64);
  executor->ParallelFor(names.size(), [&](size_t i) { names[i] = MemoryFor::Now(); });
  for (const char* const name : names) EXPECT_STREQ(name, "a loop (c.setting)");
}

TEST(MemoryFull, WithoutANameSaysTheThread) {
  std::string text;
  StartThread("reader", [&] { text = MemoryFull(uint64_t{0}).what(); })->Join();
  EXPECT_THAT(text, HasSubstr("the thread 'reader' asked for more"));
}

TEST(MemoryFull, TheLeastLimitIsThatOfTheProcess) {
  const uint64_t machine = LimitOfProcess().bytes;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  rlimit less = before;
  less.rlim_cur = machine / 2;
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &less), 0);
  const MemoryLimit found = LimitOfProcess();
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_LE(found.bytes, machine / 2);
  EXPECT_STRNE(found.by, "the machine's memory and swap");
}

// Each test ends its own process.
class MemoryEndDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  template <typename Throw>
  static void End(const Throw& thrown) {
    EndWhereMemoryIsFull("hdps test");
    StartThread("reader", [&] {
      const MemoryFor asking("the window (d.setting)");
      thrown();
    })->Join();
  }
};

TEST_F(MemoryEndDeathTest, EndsWithThreeFromAnyThread) {
  EXPECT_EXIT(
      End([] { throw MemoryFull(5 << 20); }), ::testing::ExitedWithCode(3),
      "hdps test: error: out of memory: the window \\(d.setting\\) asked for 5.00 MiB more, "
      ".*; what was saved is whole");
  EXPECT_EXIT(End([] { throw std::bad_alloc(); }), ::testing::ExitedWithCode(3),
              "the window \\(d.setting\\) asked for more, ");
  EXPECT_EXIT(End([] { std::vector<int>().reserve(~size_t{0}); }), ::testing::ExitedWithCode(3),
              "the window \\(d.setting\\) asked for 16.0 EiB more");
  const auto no_thread = [] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  };
  EXPECT_EXIT(End(no_thread), ::testing::ExitedWithCode(3), "no thread could be started");
}

TEST_F(MemoryEndDeathTest, OtherExceptionsEndAsEver) {
  EXPECT_EXIT(End([] { throw std::runtime_error("a fault of the program"); }),
              ::testing::KilledBySignal(SIGABRT), "a fault of the program");
  EXPECT_EXIT(End([] { std::abort(); }), ::testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace hdps
