// Cuts lines into cells by the job's parser, and puts them together by columns.
#include "worker/data/columnar/file_tables.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/data_description.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/line_reader.h"

namespace hdps {
namespace {

// A table ends behind the row with which its lines reach this length.
constexpr size_t kTableBytesMax = size_t{64} << 20;

// The buffers of one column.
struct TextBuffers {
  std::vector<int32_t> offsets = {0};
  std::string bytes;
};

bool IsNumeric(const DataSpec& data, const std::string& name) {
  const auto column = std::ranges::find(data.columns, name, &ColumnSpec::name);
  return column != data.columns.end() && column->type == ColumnType::kNumeric;
}

}  // namespace

std::shared_ptr<const ColumnTable> TableOfTexts(
    const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& cells) {
  auto buffers = std::make_shared<std::vector<TextBuffers>>(names.size());
  std::vector<ColumnTable::Column> columns;
  std::vector<ColumnChunk> chunks;
  for (size_t c = 0; c < names.size(); ++c) {
    TextBuffers& of_column = (*buffers)[c];
    for (const std::string& cell : cells[c]) {
      of_column.bytes += cell;
      of_column.offsets.push_back(static_cast<int32_t>(of_column.bytes.size()));
    }
    columns.push_back({names[c], {CellKind::kText, nullptr, "text"}});
    chunks.push_back({.length = static_cast<int64_t>(cells[c].size()),
                      .cells = of_column.offsets.data(),
                      .bytes = of_column.bytes.data()});
  }
  Result<std::unique_ptr<ColumnTable>> table =
      ColumnTable::FromChunks(std::move(columns), std::move(chunks), std::move(buffers));
  CHECK(table.ok()) << table.status().message();
  return *std::move(table);
}

FileTables::FileTables(const DataSpec& data, std::unique_ptr<RowAdder> rows)
    : has_columns_(!ColumnNames(data).empty()),
      decimal_(data.format == DataFormat::kCsv && !data.decimal.empty() ? data.decimal[0] : '.'),
      names_(ColumnNames(data)),
      rows_(std::move(rows)) {
  if (!has_columns_) names_ = {"row"};
  for (const std::string& name : names_) numeric_.push_back(IsNumeric(data, name));
}

FileTables::~FileTables() = default;

Result<std::unique_ptr<FileTables>> FileTables::Open(FileSystem& files, const DataSpec& data,
                                                     std::vector<std::string> paths,
                                                     const ReaderOptions& options) {
  if (TableOf(data, paths) != nullptr || data.format == DataFormat::kIdx) {
    return Status(Code::kInvalidArgument, "expected files with a line for each row");
  }
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowAdder> rows,
                        RowAdder::Make(data, paths, {{"", kLabelsNotRead}}));
  std::unique_ptr<FileTables> tables(new FileTables(data, std::move(rows)));
  RowAdder& adder = *tables->rows_;
  const auto take = [&adder](uint32_t file, std::string_view text) {
    return adder.TakeHeader(file, text);
  };
  const LineRules rules = RulesOf(data, paths, options);
  tables->lines_ = std::make_unique<LineReader>(files, std::move(paths), rules, take);
  HDPS_RETURN_IF_ERROR(tables->lines_->Start());
  return tables;
}

Result<std::shared_ptr<const ColumnTable>> FileTables::Next(uint64_t rows_max) {
  std::vector<std::vector<std::string>> cells(names_.size());
  Line line;
  size_t bytes = 0;
  while (cells[0].size() < rows_max && bytes < kTableBytesMax) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines_->Next(&line));
    if (!found) break;
    bytes += line.text.size();
    for (std::vector<std::string>& column : cells) column.emplace_back();
    if (!has_columns_) {
      cells[0].back() = line.text;
      continue;
    }
    for (NamedText& value : rows_->Values(line)) {
      const auto column = std::ranges::find(names_, value.name);
      if (column == names_.end()) continue;  // The job does not name it.
      const auto c = static_cast<size_t>(column - names_.begin());
      if (numeric_[c] && decimal_ != '.') std::ranges::replace(value.text, decimal_, '.');
      cells[c].back() = std::move(value.text);
    }
  }
  if (cells[0].empty()) return std::shared_ptr<const ColumnTable>();
  return TableOfTexts(names_, cells);
}

}  // namespace hdps
