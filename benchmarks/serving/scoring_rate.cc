// Cuts a file into tables of columns, and scores them in turns until the time is over.
#include "benchmarks/serving/scoring_rate.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/platform/executor.h"
#include "tools/scoring/row_scorer.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

namespace {

// The cells of one table, as columns that requests have: numbers in 32 bits, where a missing one is
// NaN, and texts.
struct Cells {
  std::vector<std::vector<float>> numbers;  // [columns][rows]; empty for a column of texts.
  std::vector<std::string> texts;           // [columns]
  std::vector<std::vector<int32_t>> ends;   // [columns][rows + 1]

  explicit Cells(size_t columns) : numbers(columns), texts(columns), ends(columns, {0}) {}

  void Add(size_t column, bool is_number, std::string_view cell) {
    if (!is_number) {
      texts[column] += cell;
      ends[column].push_back(static_cast<int32_t>(texts[column].size()));
      return;
    }
    float number = std::numeric_limits<float>::quiet_NaN();
    std::from_chars(cell.data(), cell.data() + cell.size(), number);
    numbers[column].push_back(number);
  }
};

constexpr uint64_t kDataBytesMax = 1 << 30;

using Table = std::shared_ptr<const ColumnTable>;

Result<Table> TableOf(const std::vector<ColumnSpec>& specs, std::shared_ptr<const Cells> cells,
                      size_t rows) {
  std::vector<ColumnTable::Column> columns;
  std::vector<ColumnChunk> chunks;
  for (size_t c = 0; c < specs.size(); ++c) {
    const bool is_number = specs[c].type == ColumnType::kNumeric;
    columns.push_back(
        {specs[c].name, {is_number ? CellKind::kFloat32 : CellKind::kText, nullptr, ""}});
    ColumnChunk chunk{.length = static_cast<int64_t>(rows)};
    chunk.cells = is_number ? static_cast<const void*>(cells->numbers[c].data())
                            : static_cast<const void*>(cells->ends[c].data());
    chunk.bytes = cells->texts[c].data();
    chunks.push_back(std::move(chunk));
  }
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ColumnTable> table,
                        ColumnTable::FromChunks(std::move(columns), std::move(chunks), cells));
  return Table(std::move(table));
}

// Returns the rows of the file as tables of `batch` rows; a last one that is shorter is left out.
Result<std::vector<Table>> TablesOf(const std::vector<ColumnSpec>& specs, std::string_view text,
                                    size_t batch) {
  std::vector<Table> tables;
  auto cells = std::make_shared<Cells>(specs.size());
  for (size_t row = 1; !text.empty(); ++row) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    for (size_t c = 0; c < specs.size(); ++c) {
      const size_t tab = line.find('\t');  // Ends the label, or the column before.
      if (tab == std::string_view::npos) {
        return Status(Code::kInvalidArgument, "line " + std::to_string(row) + " has no column " +
                                                  specs[c].name + ": expected Criteo's layout");
      }
      line.remove_prefix(tab + 1);
      cells->Add(c, specs[c].type == ColumnType::kNumeric, line.substr(0, line.find('\t')));
    }
    if (row % batch != 0) continue;
    HDPS_ASSIGN_OR_RETURN(Table table, TableOf(specs, cells, batch));
    tables.push_back(std::move(table));
    cells = std::make_shared<Cells>(specs.size());
  }
  if (tables.empty())
    return Status(Code::kInvalidArgument, "there are less than " + std::to_string(batch) + " rows");
  return tables;
}

// Scores tables in turns from the `first` on until the time is over. Returns their number.
Result<uint64_t> ScoreUntil(RowScorer& scorer, const std::vector<Table>& tables, size_t first,
                            std::chrono::steady_clock::time_point end) {
  uint64_t scored = 0;
  for (; std::chrono::steady_clock::now() < end; ++scored) {
    const Table& table = tables[(first + scored) % tables.size()];
    HDPS_RETURN_IF_ERROR(scorer.ScoreTable(table, ScoreForm::kPredictions).status());
  }
  return scored;
}

}  // namespace

Result<double> ScoringRate(FileSystem& files, const ScoringPlan& plan) {
  const std::unique_ptr<Executor> executor = NewTbbExecutor(0);
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<RowScorer> scorer,
                        RowScorer::Open(files, plan.checkpoint, WhichCheckpoint::kNewest,
                                        UnknownKeys::kInitial, *executor));
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, plan.data, kDataBytesMax));
  HDPS_ASSIGN_OR_RETURN(const std::vector<Table> tables,
                        TablesOf(scorer->columns().columns, text, plan.batch));
  // The first calls make engines and wake threads.
  HDPS_RETURN_IF_ERROR(scorer->ScoreTable(tables[0], ScoreForm::kPredictions).status());
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + std::chrono::nanoseconds(static_cast<int64_t>(plan.seconds * 1e9));
  const auto calls = static_cast<size_t>(plan.calls);
  std::vector<Result<uint64_t>> scored(calls, uint64_t{0});
  std::vector<std::unique_ptr<Thread>> threads;
  for (size_t i = 0; i < calls; ++i) {
    threads.push_back(StartThread("scoring", [&, i] {
      scored[i] = ScoreUntil(*scorer, tables, i * tables.size() / calls, end);
    }));
  }
  for (const std::unique_ptr<Thread>& thread : threads) thread->Join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  uint64_t all = 0;
  for (const Result<uint64_t>& of_call : scored) {
    HDPS_RETURN_IF_ERROR(of_call.status());
    all += *of_call * plan.batch;
  }
  return static_cast<double>(all) / seconds.count();
}

}  // namespace hdps
