// A batch whose rows several threads parse is the one that a single thread makes.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/platform/executor.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

constexpr uint32_t kRows = 5000;

// Numbers, weights of keys from the middle on, and features with several keys or none.
std::string Text(size_t bad_row) {
  std::string text;
  for (uint32_t i = 0; i < kRows; ++i) {
    text += std::to_string(i % 2);
    for (uint32_t f = 0; f < 3; ++f) {
      for (uint32_t k = 0; k < (i + f) % 3; ++k) {
        text += " " + std::to_string(f) + ":" + std::to_string((i * 7 + k) % 101) + ":" +
                (i > kRows / 2 && i % 5 == 0 ? "0.5" : "1");
      }
    }
    if (i == bad_row) text += " what";
    text += "\n";
  }
  return text;
}

struct Read {
  std::vector<Batch> batches;
  uint64_t bad_rows = 0;
  std::string problem;
};

Read ReadAll(FileSystem& files, const DataSpec& data, uint32_t parts, Executor* executor) {
  ReaderOptions options;
  options.batch_size = 2100 * parts;
  options.num_parts = parts;
  options.part = parts - 1;
  options.executor = executor;
  auto reader = NewBatchReader(files, data, {"f"}, options);
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  Read read;
  Status status = (*reader)->StartEpoch(1, 0);
  while (status.ok()) {
    Result<std::optional<Batch>> batch = (*reader)->Next();
    status = batch.status();
    if (!status.ok() || !batch->has_value()) break;
    read.batches.push_back(**std::move(batch));
  }
  read.bad_rows = (*reader)->bad_rows();
  read.problem = status.message();
  return read;
}

void ExpectSame(const Read& one, const Read& other) {
  EXPECT_EQ(one.bad_rows, other.bad_rows);
  EXPECT_EQ(one.problem, other.problem);
  ExpectSame(one.batches, other.batches);
}

TEST(RowLanes, ManyThreadsMakeTheSameBatches) {
  for (const uint32_t parts : {1u, 2u}) {
    for (const size_t bad_row : {size_t{kRows}, size_t{17}, size_t{3333}}) {
      for (const int64_t bad_rows_max : {0, 3}) {
        SCOPED_TRACE(testing::Message() << parts << " parts, bad row " << bad_row);
        const auto files = NewMemoryFileSystem();
        WriteText(*files, "f", Text(bad_row));
        DataSpec data;
        data.format = DataFormat::kLibffm;
        data.num_fields = 3;
        data.max_bad_rows = bad_rows_max;
        ManyThreads executor;
        const Read lanes = ReadAll(*files, data, parts, &executor);
        ExpectSame(lanes, ReadAll(*files, data, parts, nullptr));
        EXPECT_GT(executor.loops, 0);
        EXPECT_TRUE(bad_row < kRows || lanes.problem.empty()) << lanes.problem;
      }
    }
  }
}

}  // namespace
}  // namespace hdps
