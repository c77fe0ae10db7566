// Tests readers whose parts of a step have other numbers of rows (data.parts).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

std::unique_ptr<BatchReader> MakeReader(FileSystem& files, const DataSpec& data,
                                        const ReaderOptions& options) {
  auto reader = NewBatchReader(files, data, {"rows.csv"}, options);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  return *std::move(reader);
}

// A short last step fills the first parts first, and the positions that masks are drawn from are
// those of the stream.
TEST(UnevenPartsTest, PartsAreTheStepOneBehindTheOther) {
  const auto files = NewMemoryFileSystem();
  constexpr int kRows = 1000;
  WriteText(*files, "rows.csv", NumberedText(0, kRows));
  const DataSpec data = NumberedRows();
  std::vector<uint32_t> many(kPartsMany, 1);  // So many read by an index.
  many.front() = 30;
  many.back() = 6;
  for (const std::vector<uint32_t>& sizes : {std::vector<uint32_t>{70, 20, 12}, {1, 101}, many}) {
    for (const bool fill_last : {false, true}) {
      ReaderOptions options{.seed = 7, .fill_last = fill_last};
      options.batch_size = std::accumulate(sizes.begin(), sizes.end(), 0u);
      const auto whole = ReadEpoch(*MakeReader(*files, data, options), 3);
      std::vector<std::vector<int>> joined(whole.size());
      options.num_parts = static_cast<uint32_t>(sizes.size());
      uint32_t begin = 0;
      for (options.part = 0; options.part < options.num_parts; ++options.part) {
        options.own_rows = {begin, begin + sizes[options.part]};
        const auto reader = MakeReader(*files, data, options);
        for (const uint32_t epoch : {2u, 3u}) {  // The first one makes the index.
          const auto part = ReadEpoch(*reader, epoch);
          ASSERT_EQ(part.size(), whole.size());
          for (size_t step = 0; epoch == 3 && step < part.size(); ++step) {
            const std::vector<int> of_step = IdsOf(whole[step]), ids = IdsOf(part[step]);
            const size_t rest = of_step.size() - std::min<size_t>(begin, of_step.size());
            EXPECT_EQ(ids.size(), std::min<size_t>(sizes[options.part], rest));
            EXPECT_EQ(part[step].first_row, whole[step].first_row);
            joined[step].insert(joined[step].end(), ids.begin(), ids.end());
          }
        }
        EXPECT_EQ(options.FirstOwn(options.batch_size), begin);
        EXPECT_EQ(options.Stride(), 1u);
        begin += sizes[options.part];
      }
      for (size_t step = 0; step < whole.size(); ++step) {
        EXPECT_EQ(joined[step], IdsOf(whole[step])) << step << " of " << sizes.size() << " parts";
      }
    }
  }
}

}  // namespace
}  // namespace hdps
