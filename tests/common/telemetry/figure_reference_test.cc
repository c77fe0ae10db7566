// Tests that docs/watching.md lists every figure as the program has it.
#include "tests/common/telemetry/figure_reference.h"

#include <gtest/gtest.h>

#include "common/platform/file_system.h"
#include "common/platform/output_file.h"

namespace hdps {
namespace {

TEST(FigureReferenceTest, ThePageHasTheListOfFigures) {
  const auto files = NewPosixFileSystem();
  const auto page = ReadWholeFile(*files, JoinPath(HDPS_SOURCE_DIR, "docs/watching.md"), 1u << 20);
  ASSERT_TRUE(page.ok()) << page.status().message();
  const std::string begin = "<!-- figures -->\n", end = "<!-- end of figures -->";
  const size_t from = page->find(begin), to = page->find(end);
  ASSERT_TRUE(from != page->npos && to != page->npos);
  EXPECT_EQ(page->substr(from + begin.size(), to - from - begin.size()), PrintFigureReference())
      << "scripts/dev/job_file_docs.sh writes it";
}

}  // namespace
}  // namespace hdps
