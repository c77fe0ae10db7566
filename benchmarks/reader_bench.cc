// How fast rows come out of text, beside a plain search for the line ends of the same bytes.
#include <glog/logging.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "common/job.h"
#include "worker/data/batch_reader.h"
#include "worker/data/synthetic_log.h"

namespace hdps {
namespace {

constexpr uint64_t kRows = 100000;  // About 25 MB: beyond the caches, soon read.

// The same bytes at their simplest: read into a buffer, find every line end.
size_t CountLines(FileSystem& files, const std::string& path) {
  auto file = files.OpenSequential(path);
  CHECK(file.ok()) << file.status().message();
  std::vector<std::byte> buffer(size_t{1} << 20);
  size_t lines = 0;
  while (true) {
    const Result<size_t> got = (*file)->Read(buffer);
    CHECK(got.ok()) << got.status().message();
    if (*got == 0) return lines;
    const auto* at = reinterpret_cast<const char*>(buffer.data());
    const char* end = at + *got;
    while ((at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)))) !=
           nullptr) {
      ++lines;
      ++at;
    }
  }
}

uint64_t ReadAll(FileSystem& files, const DataSpec& data, const ReaderOptions& options) {
  auto reader = NewBatchReader(files, data, data.train, options);
  CHECK(reader.ok()) << reader.status().message();
  const Status started = (*reader)->StartEpoch(0, 0);
  CHECK(started.ok()) << started.message();
  uint64_t rows = 0;
  while (true) {
    const auto batch = (*reader)->Next();
    CHECK(batch.ok()) << batch.status().message();
    if (!batch->has_value()) return rows;
    rows += (*batch)->num_examples;
  }
}

struct Case {
  const char* name;
  bool shuffle;
  uint32_t num_parts;
};

void RunCase(const BenchSetting& setting, FileSystem& files, const DataSpec& data, const Case& c,
             BenchReport& report) {
  const Result<uint64_t> bytes = files.FileSize(data.train[0]);
  CHECK(bytes.ok()) << bytes.status().message();
  const double megabytes = static_cast<double>(*bytes) * 1e-6;
  std::vector<double> mb_per_second, rows_per_second, plain_mb_per_second;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {  // In turns: noise hits both alike.
    uint64_t rows = 0;
    const double seconds = SecondsOf([&] {
      rows = ReadAll(files, data,
                     {.batch_size = 4096, .num_parts = c.num_parts, .shuffle = c.shuffle});
    });
    mb_per_second.push_back(megabytes / seconds);
    rows_per_second.push_back(static_cast<double>(rows) / seconds);
    size_t lines = 0;
    const double plain_seconds = SecondsOf([&] { lines = CountLines(files, data.train[0]); });
    CHECK_EQ(lines, kRows);
    plain_mb_per_second.push_back(megabytes / plain_seconds);
  }
  report.AddBeside("reader", c.name, "text", "MB/s", mb_per_second, "read + memchr",
                   plain_mb_per_second);
  report.Add("reader", c.name, "rows given", "rows/s", rows_per_second);
}

}  // namespace

Status RunReaderBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  SyntheticLogSpec spec;
  spec.rows = kRows;
  spec.eval_rows = 0;
  spec.vocabulary = 100000;
  const auto written = WriteSyntheticLog(*files, "log", spec);
  CHECK(written.ok()) << written.status().message();
  DataSpec data;
  data.format = DataFormat::kCriteo;
  data.train = {"log/train.tsv"};
  for (const Case& c : {Case{"criteo_tsv_in_order", false, 1}, Case{"criteo_tsv_shuffled", true, 1},
                        Case{"criteo_tsv_shuffled_1_of_4", true, 4}}) {
    if (setting.Wants(c.name)) RunCase(setting, *files, data, c, report);
  }
  return Status();
}

}  // namespace hdps
