// Matches names and types.
#include "worker/data/columnar/column_sources.h"

#include <utility>

#include "common/job/spec/data_spec.h"
#include "worker/data/header_check.h"

namespace hdps {

Result<std::vector<uint32_t>> FindColumns(const std::vector<ColumnTable::Column>& of,
                                          const std::vector<ColumnSpec>& columns,
                                          const std::string& name, bool labels_read,
                                          const std::string& holder) {
  std::vector<NamedText> names;
  for (const ColumnTable::Column& column : of) names.push_back({"", column.name});
  HDPS_ASSIGN_OR_RETURN(HeaderMatch match, MatchHeader(name, names, columns, labels_read, holder));
  return std::move(match.order.cell_of_column);
}

std::string WhyNotReadable(const ColumnSpec& column, const CellType& type) {
  const bool multi = column.type == ColumnType::kMulti;
  if (column.type == ColumnType::kSkip) return "";
  if (type.kind == CellKind::kOther) {
    return "expected integers, decimals, floating-point numbers, bools or texts" +
           std::string(multi ? ", or lists of them" : "") + "; cast it";
  }
  if (IsList(type.kind) && !multi) return "expected one value a row, or a column of type multi";
  const CellType& cells = IsList(type.kind) ? *type.values : type;
  const CellType& values = cells.is_dictionary() ? *cells.values : cells;
  const bool keys =
      multi || column.type == ColumnType::kCategorical || column.type == ColumnType::kGroup;
  if (keys && IsDecimal(values.kind)) {
    return "expected integers or texts, because the keys of decimals depend on how many digits are "
           "written; cast it";
  }
  if (!keys || !IsFloat(values.kind)) return "";
  return "expected integers or texts, because the keys of floating-point numbers depend on how "
         "they "
         "are written; cast it (in pandas, integers with missing values are Int64)";
}

ColumnTexts::ColumnTexts(const CellType& type, std::string separator)
    : kind_(type.kind),
      separator_(std::move(separator)),
      reader_(IsList(type.kind) ? *type.values : type) {}

void ColumnTexts::Append(const ColumnChunk& chunk, int64_t index, std::string* text) const {
  CellText memory;
  std::string_view value;
  if (!IsList(kind_)) {
    if (reader_.Text(chunk, index, &memory, &value)) *text += value;
    return;
  }
  const CellRange cells = ListAt(kind_, chunk, index);
  for (int64_t i = cells.begin; i < cells.end; ++i) {
    if (i > cells.begin) *text += separator_;
    if (reader_.Text(*chunk.values, i, &memory, &value)) *text += value;
  }
}

}  // namespace hdps
