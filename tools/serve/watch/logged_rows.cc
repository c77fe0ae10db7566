// Writes cells of tables as the readers of files take them.
#include "tools/serve/watch/logged_rows.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "tools/serve/watch/answer_sums.h"
#include "worker/data/data_description.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

// Keeps the choice apart from other uses of the hash, such as data.validation_share.
constexpr uint64_t kLogSalt = 0x6c6f676765643031;

// Returns the data of the log's lines: those of the job, and for criteo the same as cells between
// tabs.
DataSpec DataOfLines(const DataSpec& data) {
  if (data.format != DataFormat::kCriteo) return data;
  DataSpec lines = data;
  lines.delimiter = "\t";
  lines.quote.clear();
  lines.columns.clear();
  for (const std::string& name : ColumnNames(data)) {
    ColumnSpec& column = lines.columns.emplace_back();
    column.name = name;
    if (name == "label") column.type = ColumnType::kLabel;
    if (name.starts_with('I')) column.type = ColumnType::kNumeric;
  }
  return lines;
}

// The predictions of a row, with the digits that tell all floats apart.
std::string ScoresOf(const std::vector<const OutputColumn*>& predictions, uint64_t row) {
  std::string text;
  for (const OutputColumn* column : predictions) {
    for (uint32_t i = 0; i < column->width; ++i) {
      char number[32];
      const float score = column->numbers[row * column->width + i];
      std::snprintf(number, sizeof(number), "%.9g", static_cast<double>(score));
      text += (text.empty() ? "" : " ") + std::string(number);
    }
  }
  return text;
}

}  // namespace

std::string LoggedRows::WhyNot(const Job& job) {
  if (job.data.format == DataFormat::kIdx || HasTypedCells(job.data.format)) {
    return "rows of the format " + std::string(WordOf(job.data.format)) + " are no lines of cells";
  }
  for (const ColumnSpec& column : job.data.columns) {
    for (const char* own : kLogColumns) {
      if (column.name == own) {
        return "the job has a column '" + column.name + "', a name that the log gives";
      }
    }
  }
  return "";
}

LoggedRows::LoggedRows(const Job& job, double share)
    : data_(DataOfLines(job.data)),
      has_columns_(!data_.columns.empty()),
      quotes_(data_),
      share_(share),
      tasks_(LabelsOf(job).size()) {}

std::string LoggedRows::Header() const {
  std::string line;
  if (!has_columns_ || !data_.header) return line;
  for (const ColumnSpec& column : data_.columns) {
    if (!column.has_cell()) continue;
    quotes_.Append(column.name, &line);
    line += quotes_.delimiter();
  }
  for (const char* own : kLogColumns) line += own + std::string(1, quotes_.delimiter());
  line.back() = '\n';
  return line;
}

std::vector<LoggedRows::Source> LoggedRows::SourcesOf(const ColumnTable& table) const {
  std::vector<Source> sources;
  const auto found =
      FindColumns(table.columns(), data_.columns, "the request", /*labels_read=*/false);
  if (!found.ok()) return sources;
  for (size_t c = 0; c < data_.columns.size(); ++c) {
    const ColumnSpec& spec = data_.columns[c];
    if (!spec.has_cell()) continue;
    Source& source = sources.emplace_back();
    source.column = c;
    source.index = (*found)[c];
    const bool empty = source.index == CellOrder::kAbsent || spec.type == ColumnType::kLabel ||
                       spec.type == ColumnType::kWeight;
    if (empty) continue;
    const CellType& type = table.columns()[source.index].type;
    if (type.kind != CellKind::kOther) source.texts.emplace(type, spec.separator);
  }
  return sources;
}

bool LoggedRows::WriteRow(const ColumnTable& table, const std::vector<Source>& sources,
                          uint64_t row, std::string* line) const {
  line->clear();
  const ColumnTable::Place place = table.PlaceOf(row);
  if (!has_columns_) {
    ColumnTexts(table.columns()[0].type, "").Append(table.chunk(place.batch, 0), place.index, line);
    return line->find_first_of("\r\n") == std::string::npos;
  }
  std::string cell;
  for (const Source& source : sources) {
    const ColumnSpec& spec = data_.columns[source.column];
    cell = spec.type == ColumnType::kWeight ? "1" : "";
    if (source.texts) {
      source.texts->Append(table.chunk(place.batch, source.index), place.index, &cell);
      const bool comma =
          spec.type == ColumnType::kNumeric && !data_.decimal.empty() && data_.decimal[0] != '.';
      if (comma) std::ranges::replace(cell, '.', data_.decimal[0]);
    }
    if (!quotes_.MayHold(cell)) return false;
    if (source.column != sources.front().column) *line += quotes_.delimiter();
    quotes_.Append(cell, line);
  }
  return true;
}

void LoggedRows::AppendLogged(const std::array<std::string, 5>& values, std::string* line) const {
  const auto& [id, row, time, step, score] = values;
  if (!has_columns_) {
    *line += " # hdps_row=" + row + " hdps_time=" + time + " hdps_step=" + step +
             " hdps_score=" + score + " hdps_id=" + id + "\n";
    return;
  }
  for (const std::string& cell : values) {
    *line += quotes_.delimiter();
    quotes_.Append(cell, line);
  }
  *line += '\n';
}

LoggedRows::Lines LoggedRows::Choose(const ScoreRequest& request, const ScoreAnswer& answer,
                                     int64_t unix_ms, size_t bytes_max) const {
  Lines lines;
  const std::vector<const OutputColumn*> predictions = PredictionsOf(request, answer, tasks_);
  if (predictions.empty() || request.rows == nullptr) return lines;
  const ColumnTable& table = *request.rows;
  const std::vector<Source> sources = has_columns_ ? SourcesOf(table) : std::vector<Source>();
  const std::string time = std::to_string(unix_ms), step = std::to_string(answer.step);
  const bool id_fits = quotes_.MayHold(request.id);
  std::string line;
  for (uint64_t row = 0; row < std::min(table.num_rows(), answer.rows); ++row) {
    bool fits = WriteRow(table, sources, row, &line);
    const auto hash = static_cast<double>(HashString(line, kLogSalt));
    if (hash >= share_ * 0x1p64 && share_ < 1) continue;
    fits = fits && id_fits && (data_.comment.empty() || !line.starts_with(data_.comment));
    if (fits) {
      AppendLogged({request.id, std::to_string(row), time, step, ScoresOf(predictions, row)},
                   &line);
    }
    if (!fits || line.size() > bytes_max - lines.text.size()) {
      ++lines.left_out;
      continue;
    }
    lines.text += line;
    ++lines.rows;
  }
  return lines;
}

}  // namespace hdps
