// Measures how fast rows are read: from text, beside `cat`, `wc -l` and a plain search for line
// ends in the same file; and from a table in memory, beside the CSV reader on a file of the same
// values.
#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/cases/reader_topic.h"
#include "benchmarks/clusters/child_process.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/executor.h"
#include "tools/synthetic/synthetic_log.h"
#include "worker/data/batch_reader.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/cache/stream_stamp.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/line_reader.h"
#include "worker/data/number.h"

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
  double all_cpu_seconds = 0;  // With the threads beside the reader's.
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
  const double cpu_before = ThreadCpuSeconds(), all_before = ProcessCpuSeconds();
  read.seconds = SecondsOf([&] { read.rows = read_epoch(later ? 1 : 0); });
  read.cpu_seconds = ThreadCpuSeconds() - cpu_before;
  read.all_cpu_seconds = ProcessCpuSeconds() - all_before;
  return read;
}

struct Case {
  const char* name;
  bool shuffle;
  uint32_t num_parts;
  bool later_epoch = false;
};

// Compares the second epoch of rows that the first has kept, in memory or on disk, with that of
// their text.
Status RunCachedCase(const BenchSetting& setting, FileSystem& files, const std::string& path,
                     const Case& c, DataCache cache, BenchReport& report) {
  PrintProgress(kBench, c.name);
  DataSpec data;
  data.format = DataFormat::kCriteo;
  data.train = {path};
  data.max_bad_rows = 1000;
  HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files.FileSize(path));
  const ReaderOptions of_text{.batch_size = 4096, .num_parts = c.num_parts, .shuffle = c.shuffle};
  std::vector<double> kept, text, shares, row_bytes, text_bytes, first, first_all, first_text;
  const std::unique_ptr<Executor> executor = NewTbbExecutor(1);  // Files are written beside.
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    ReaderOptions of_kept = of_text;
    of_kept.executor = executor.get();
    const std::string folder = JoinPath(setting.scratch, "rows");
    of_kept.cache = std::make_shared<RowCaches>(
        files, RowCacheOptions{.cache = cache, .folder = folder, .memory_max = uint64_t{4} << 30});
    // The first epoch of all keeps the rows.
    const Read keeping = ReadAll(files, data, of_kept, /*later=*/false);
    first.push_back(keeping.cpu_seconds);
    first_all.push_back(keeping.all_cpu_seconds);
    const Read later = ReadAll(files, data, of_kept, /*later=*/true);
    first_text.push_back(ReadAll(files, data, of_text, /*later=*/false).cpu_seconds);
    const Read parsed = ReadAll(files, data, of_text, /*later=*/true);
    kept.push_back(static_cast<double>(later.rows) / later.cpu_seconds);
    text.push_back(static_cast<double>(parsed.rows) / parsed.cpu_seconds);
    shares.push_back(later.cpu_seconds / parsed.cpu_seconds);
    const Result<StreamStamp> stamp =
        StampOfStream(files, data, data.train, of_kept, CachedForm::kDerived);
    CHECK(stamp.ok()) << stamp.status().message();
    const std::shared_ptr<const CachedRows> rows = of_kept.cache->Find(*stamp);
    CHECK(rows != nullptr) << "the rows were not kept";
    const auto num_rows = static_cast<double>(rows->num_rows());
    row_bytes.push_back(static_cast<double>(rows->bytes()) / num_rows);
    text_bytes.push_back(static_cast<double>(bytes) / num_rows);
    HDPS_RETURN_IF_ERROR(files.RemoveAll(folder));
  }
  report.AddBeside(kBench, c.name, "kept rows, by CPU time", "rows/s", kept, "text", text);
  report.Add(kBench, c.name, "CPU time of text", "of it", shares);
  report.AddBeside(kBench, c.name, "bytes of a row", "B", row_bytes, "text", text_bytes);
  report.AddBeside(kBench, c.name, "the epoch that keeps them", "CPU s", first, "text", first_text);
  report.AddBeside(kBench, c.name, "the same, with writing beside", "CPU s", first_all, "text",
                   first_text);
  return Status();
}

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

// The rows of a Criteo log as columns: numbers as int64, categories as texts.
class LogColumns {
 public:
  static constexpr size_t kColumns = 40, kNumbers = 14;  // The label is a number.

  LogColumns(FileSystem& files, const std::string& path) {
    LineReader lines(files, {path}, {});
    CHECK(lines.Start().ok());
    for (std::vector<int32_t>& ends : ends_) ends.push_back(0);
    for (Line line;;) {
      const Result<bool> found = lines.Next(&line);
      CHECK(found.ok()) << found.status().message();
      if (!*found) break;
      Add(line.text);
    }
  }

  // Returns a table of these columns, which must outlive it.
  std::shared_ptr<const ColumnTable> Table() const {
    std::vector<ColumnTable::Column> columns;
    std::vector<ColumnChunk> chunks;
    for (size_t c = 0; c < kColumns; ++c) {
      ColumnChunk chunk{.length = static_cast<int64_t>(rows_), .validity = valid_[c].data()};
      chunk.cells = c < kNumbers ? static_cast<const void*>(numbers_[c].data()) : ends_[c].data();
      chunk.bytes = texts_[c].data();
      const CellKind kind = c < kNumbers ? CellKind::kInt64 : CellKind::kText;
      columns.push_back({Name(c), {kind, nullptr, ""}});
      chunks.push_back(std::move(chunk));
    }
    auto table = ColumnTable::FromChunks(std::move(columns), std::move(chunks), nullptr);
    CHECK(table.ok()) << table.status().message();
    return *std::move(table);
  }

  static DataSpec Spec() {
    DataSpec data;
    data.delimiter = "\t";
    data.max_bad_rows = 1000;
    for (size_t c = 0; c < kColumns; ++c) {
      ColumnSpec column;
      column.name = Name(c);
      column.type = c == 0         ? ColumnType::kLabel
                    : c < kNumbers ? ColumnType::kNumeric
                                   : ColumnType::kCategorical;
      column.transform = c > 0 && c < kNumbers ? Transform::kLog1p : Transform::kNone;
      data.columns.push_back(std::move(column));
    }
    return data;
  }

 private:
  static std::string Name(size_t column) { return "c" + std::to_string(column); }

  void Add(std::string_view line) {
    for (size_t c = 0; c < kColumns; ++c) {
      const size_t end = std::min(line.find('\t'), line.size());
      const std::string_view cell = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
      double number = 0;
      const bool has_number = c < kNumbers && ParseDigits(cell, &number);
      valid_[c].resize(rows_ / 8 + 1);
      if (c < kNumbers ? has_number : !cell.empty()) {
        valid_[c][rows_ / 8] = static_cast<uint8_t>(valid_[c][rows_ / 8] | 1u << rows_ % 8);
      }
      if (c < kNumbers) {
        numbers_[c].push_back(static_cast<int64_t>(number));
      } else {
        texts_[c] += cell;
        ends_[c].push_back(static_cast<int32_t>(texts_[c].size()));
      }
    }
    ++rows_;
  }

  size_t rows_ = 0;
  std::array<std::vector<uint8_t>, kColumns> valid_;
  std::array<std::vector<int64_t>, kColumns> numbers_;
  std::array<std::vector<int32_t>, kColumns> ends_;
  std::array<std::string, kColumns> texts_;
};

void RunColumnarCase(const BenchSetting& setting, FileSystem& files, const std::string& path,
                     const Case& c, BenchReport& report) {
  constexpr char kTable[] = "memory:log";
  PrintProgress(kBench, c.name);
  const LogColumns columns(files, path);
  DataSpec of_file = LogColumns::Spec(), of_table = LogColumns::Spec();
  of_file.train = {path};
  of_table.train = {kTable};
  of_table.tables[kTable] = columns.Table();
  std::vector<double> table, csv;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    for (const DataSpec* const data : {&of_table, &of_file}) {
      const Read read =
          ReadAll(files, *data, {.batch_size = 4096, .shuffle = c.shuffle}, /*later=*/false);
      (data == &of_table ? table : csv).push_back(static_cast<double>(read.rows) / read.seconds);
    }
  }
  report.AddBeside(kBench, c.name, "rows of a table", "rows/s", table, "csv", csv);
}

// Compares a file of records with the CSV file of the same rows beside it, both by the columns of
// LogColumns; benchmarks/record_logs.py writes them.
void RunRecordsCase(const BenchSetting& setting, FileSystem& files, DataFormat format,
                    const std::string& path, const Case& c, BenchReport& report) {
  PrintProgress(kBench, c.name);
  DataSpec of_records = LogColumns::Spec(), of_csv = LogColumns::Spec();
  of_records.format = format;
  of_records.train = {path};
  of_csv.header = true;
  of_csv.train = {path.substr(0, path.rfind('.')) + ".csv"};
  std::vector<double> records, csv;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    for (const DataSpec* const data : {&of_records, &of_csv}) {
      const Read read =
          ReadAll(files, *data, {.batch_size = 4096, .shuffle = c.shuffle}, /*later=*/false);
      (data == &of_records ? records : csv)
          .push_back(static_cast<double>(read.rows) / read.cpu_seconds);
    }
  }
  report.AddBeside(kBench, c.name, "rows of records, by CPU time", "rows/s", records, "csv", csv);
}

// Runs the cases of the formats whose file lies beside the Parquet file.
void RunRecordsCases(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  constexpr std::string_view kEnd = ".parquet";
  const std::string begin = setting.data.substr(0, setting.data.size() - kEnd.size());
  for (const DataFormat format :
       {DataFormat::kParquet, DataFormat::kTfrecord, DataFormat::kJsonl}) {
    const std::string name(WordOf(format));
    const std::string path = begin + "." + name;
    if (!files.Exists(path)) continue;
    const std::string in_order = name + "_in_order", shuffled = name + "_shuffled";
    for (const Case& c : {Case{in_order.c_str(), false, 1}, Case{shuffled.c_str(), true, 1}}) {
      if (setting.Wants(c.name)) RunRecordsCase(setting, files, format, path, c, report);
    }
  }
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
  for (const Case& c : {Case{"kept_in_memory_shuffled", true, 1},
                        Case{"kept_in_memory_shuffled_1_of_4", true, 4}}) {
    if (!setting.Wants(c.name)) continue;
    HDPS_RETURN_IF_ERROR(RunCachedCase(setting, files, log, c, DataCache::kMemory, report));
  }
  if (const Case c{"kept_on_disk_shuffled", true, 1}; setting.Wants(c.name)) {
    HDPS_RETURN_IF_ERROR(RunCachedCase(setting, files, log, c, DataCache::kDisk, report));
  }
  for (const Case& c : {Case{"columnar_in_order", false, 1}, Case{"columnar_shuffled", true, 1}}) {
    if (setting.Wants(c.name)) RunColumnarCase(setting, files, log, c, report);
  }
  if (setting.data.empty()) return Status();
  if (NamesTopic(setting.data)) {
    return setting.Wants("topic") ? RunTopicCase(setting, files, report) : Status();
  }
  if (setting.data.ends_with(".parquet")) {
    RunRecordsCases(setting, files, report);
    return Status();
  }
  for (const Case& c : {Case{"data_in_order", false, 1}, Case{"data_shuffled", true, 1}}) {
    if (!setting.Wants(c.name)) continue;
    HDPS_RETURN_IF_ERROR(RunCase(setting, files, setting.data, c, report));
  }
  return Status();
}

}  // namespace hdps
