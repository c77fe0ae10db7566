// Measures how fast rows are read from text, beside `cat`, `wc -l` and a plain search for line ends
// in the same file.
#include <glog/logging.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/child_process.h"
#include "common/job/spec/data_spec.h"
#include "tools/synthetic/synthetic_log.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

constexpr char kBench[] = "reader";
constexpr char kNowhere[] = "/dev/null";

// Reads the file into a buffer and finds every line end: the simplest work on the same bytes.
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

struct Read {
  uint64_t rows = 0;
  double seconds = 0, cpu_seconds = 0;
};

// Reads one epoch; `later`: after one that is not counted.
Read ReadAll(FileSystem& files, const DataSpec& data, const ReaderOptions& options, bool later) {
  auto reader = NewBatchReader(files, data, data.train, options);
  CHECK(reader.ok()) << reader.status().message();
  const auto read_epoch = [&](uint32_t epoch) {
    uint64_t rows = 0;
    const Status started = (*reader)->StartEpoch(epoch, 0);
    CHECK(started.ok()) << started.message();
    while (true) {
      const auto batch = (*reader)->Next();
      CHECK(batch.ok()) << batch.status().message();
      if (!batch->has_value()) return rows;
      rows += (*batch)->num_examples;
    }
  };
  if (later) read_epoch(0);
  Read read;
  const double cpu_before = ThreadCpuSeconds();
  read.seconds = SecondsOf([&] { read.rows = read_epoch(later ? 1 : 0); });
  read.cpu_seconds = ThreadCpuSeconds() - cpu_before;
  return read;
}

struct Case {
  const char* name;
  bool shuffle;
  uint32_t num_parts;
  bool later_epoch = false;
};

Status RunCase(const BenchSetting& setting, FileSystem& files, const std::string& path,
               const Case& c, BenchReport& report) {
  PrintProgress(kBench, c.name);
  DataSpec data;
  data.format = DataFormat::kCriteo;
  data.train = {path};
  data.max_bad_rows = 1000;  // Real logs have some bad rows.
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files.FileSize(path));
  const double megabytes = static_cast<double>(bytes) * 1e-6;
  CountLines(files, path);  // Brings the file into the page cache.
  std::vector<double> text, text_by_cpu, rows, plain, wc, cat;
  // Runs in turns, so that noise hits both alike.
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const Read read = ReadAll(files, data,
                              {.batch_size = c.num_parts > 4 ? 65'536u : 4096u,
                               .num_parts = c.num_parts,
                               .shuffle = c.shuffle},
                              c.later_epoch);
    text.push_back(megabytes / read.seconds);
    text_by_cpu.push_back(megabytes / read.cpu_seconds);
    rows.push_back(static_cast<double>(read.rows) / read.seconds);
    plain.push_back(megabytes / SecondsOf([&] { CountLines(files, path); }));
    bool ran = true;
    wc.push_back(megabytes / SecondsOf([&] {
                   ran = ChildProcess({"wc", "-l", path}, kNowhere).Wait() == 0 && ran;
                 }));
    cat.push_back(megabytes / SecondsOf([&] {
                    ran = ChildProcess({"cat", path}, kNowhere).Wait() == 0 && ran;
                  }));
    if (!ran) return {Code::kUnavailable, "reader: cannot run wc and cat"};
  }
  report.AddBeside(kBench, c.name, "text", "MB/s", text, "wc -l", wc);
  report.AddBeside(kBench, c.name, "text", "MB/s", text, "cat", cat);
  report.AddBeside(kBench, c.name, "text", "MB/s", text, "read + memchr", plain);
  report.Add(kBench, c.name, "text, by CPU time", "MB/s", text_by_cpu);
  report.Add(kBench, c.name, "rows given", "rows/s", rows);
  return Status();
}

}  // namespace

Status RunReaderBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  constexpr Case kCases[] = {{"criteo_tsv_in_order", false, 1},
                             {"criteo_tsv_shuffled", true, 1},
                             {"criteo_tsv_shuffled_1_of_4", true, 4},
                             {"criteo_tsv_shuffled_1_of_256", true, 256},
                             {"criteo_tsv_shuffled_1_of_256_later_epoch", true, 256, true}};
  SyntheticLogSpec spec;
  spec.rows = setting.quick ? 100'000 : 400'000;  // 250 bytes each.
  spec.eval_rows = 0;
  spec.vocabulary = 100'000;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, spec).status());
  const std::string log = JoinPath(setting.scratch, "train.tsv");
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) HDPS_RETURN_IF_ERROR(RunCase(setting, files, log, c, report));
  }
  if (setting.data.empty()) return Status();
  for (const Case& c : {Case{"data_in_order", false, 1}, Case{"data_shuffled", true, 1}}) {
    if (!setting.Wants(c.name)) continue;
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, setting.data, c, report));
  }
  return Status();
}

}  // namespace hdps
