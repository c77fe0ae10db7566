// Joins the texts of a row's cells.
#include "worker/data/columnar/table_lines.h"

#include <utility>

#include "common/job/spec/data_spec.h"
#include "worker/data/row.h"

namespace hdps {

CellQuotes::CellQuotes(const DataSpec& data)
    : delimiter_(data.delimiter.empty() ? ',' : data.delimiter[0]),
      quote_(data.quote.empty() ? std::nullopt : std::optional(data.quote[0])) {}

void CellQuotes::Append(const std::string& cell, std::string* line) const {
  const char special[] = {delimiter_, '\r', '\n', quote_.value_or(delimiter_)};
  if (!quote_ || cell.find_first_of(special, 0, sizeof(special)) == std::string::npos) {
    *line += cell;
    return;
  }
  *line += *quote_;
  for (const char c : cell) {
    if (c == *quote_) *line += c;
    *line += c;
  }
  *line += *quote_;
}

bool CellQuotes::MayHold(const std::string& cell) const {
  if (cell.find_first_of("\r\n") != std::string::npos) return false;
  return quote_ || cell.find(delimiter_) == std::string::npos;
}

TableLines::TableLines(const DataSpec& data, std::shared_ptr<const ColumnTable> table,
                       const std::vector<uint32_t>& cell_of_column)
    : table_(std::move(table)), quotes_(data) {
  std::vector<std::string> separators(table_->columns().size(), ColumnSpec().separator);
  for (size_t c = 0; c < cell_of_column.size(); ++c) {
    if (cell_of_column[c] == CellOrder::kAbsent) continue;
    if (data.columns[c].type == ColumnType::kMulti) {
      separators[cell_of_column[c]] = data.columns[c].separator;
    }
  }
  for (size_t i = 0; i < separators.size(); ++i) {
    const CellType& type = table_->columns()[i].type;
    const bool readable = type.kind != CellKind::kOther;
    texts_.push_back(readable ? std::optional<ColumnTexts>(std::in_place, type, separators[i])
                              : std::nullopt);
  }
}

std::string TableLines::LineOf(uint64_t row) const {
  const ColumnTable::Place place = table_->PlaceOf(row);
  std::string line, cell;
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (i > 0) line += quotes_.delimiter();
    if (!texts_[i]) continue;
    cell.clear();
    texts_[i]->Append(table_->chunk(place.batch, i), place.index, &cell);
    quotes_.Append(cell, &line);
  }
  return line;
}

}  // namespace hdps
