// Asks for each kind of value whether all readers of a cell take it.
#include "worker/data/records/row_cells.h"

#include <memory>
#include <utility>

#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/header_check.h"
#include "worker/data/records/record_columns.h"

namespace hdps {
namespace {

CellType ListOf(CellKind kind) {
  return {CellKind::kList, std::make_shared<const CellType>(CellType{kind, nullptr, ""}), "list"};
}

}  // namespace

RowCells::RowCells(const DataSpec& data, bool labels_read) {
  for (const ColumnSpec& column : RecordColumns(data)) {
    index_.emplace(column.name, cells_.size());
    Cell& cell = cells_.emplace_back();
    cell.name = column.name;
    cell.multi = cell.ignored = true;
  }
  const CellType types[] = {{CellKind::kFloat64, nullptr, ""},
                            ListOf(CellKind::kText),
                            ListOf(CellKind::kFloat64),
                            {CellKind::kOther, nullptr, ""}};
  for (const ColumnSpec& column : data.columns) {
    const auto found = index_.find(column.cell());
    if (column.type == ColumnType::kSkip || found == index_.end()) continue;
    Cell& cell = cells_[found->second];
    cell.multi = cell.multi && column.type == ColumnType::kMulti;
    cell.ignored = cell.ignored && !labels_read && MayBeAbsent(column.type);
    for (size_t kind = 0; kind < cell.why_not.size(); ++kind) {
      if (cell.why_not[kind].empty()) cell.why_not[kind] = WhyNotReadable(column, types[kind]);
    }
  }
  // Errors put the word in front.
  constexpr std::string_view kExpected = "expected ";
  for (Cell& cell : cells_) {
    for (std::string& why : cell.why_not) {
      if (why.starts_with(kExpected)) why.erase(0, kExpected.size());
    }
  }
}

void RowCells::Clear() {
  values_.Clear();
  next_ = 0;
  for (Cell& cell : cells_) {
    cell.found = false;
    cell.begin = cell.end = 0;
  }
}

size_t RowCells::Find(std::string_view name) {
  size_t cell = next_;
  if (cell >= cells_.size() || cells_[cell].name != name) {
    const auto found = index_.find(name);
    if (found == index_.end()) return kNone;
    cell = found->second;
  }
  next_ = cell + 1;
  return cell;
}

bool RowCells::BeginCell(size_t cell) {
  if (cells_[cell].found) return false;
  current_ = cell;
  cells_[cell].found = true;
  cells_[cell].begin = cells_[cell].end = values_.size();
  return true;
}

void RowCells::WriteTo(CellLineWriter* line) const {
  for (const Cell& cell : cells_) {
    if (cell.begin == cell.end) {
      line->AddMissing();
    } else {
      line->AddBytes(values_.data() + cell.begin, cell.end - cell.begin);
    }
  }
}

}  // namespace hdps
