// Holds one function for the values of each kind of cells.
#include "worker/data/records/batch_lines.h"

#include <string_view>

#include "worker/data/columnar/cell_layout.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

template <typename T>
void AddSigned(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddInteger(CellAt<T>(chunk, index));
}
template <typename T>
void AddUnsigned(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddUnsigned(CellAt<T>(chunk, index));
}
void AddBool(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddInteger(BitAt(chunk, index) ? 1 : 0);
}
void AddFloat32(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddFloat(CellAt<float>(chunk, index));
}
void AddFloat64(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddDouble(CellAt<double>(chunk, index));
}
template <typename Offset>
void AddText(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddText(TextAt<Offset>(chunk, index));
}
void AddView(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddText(ViewedText(chunk, index));
}
void AddFloat16(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  line->AddFloat(Float16At(chunk, index));
}
// For kinds that are rare in data.
template <CellKind kKind>
void AddDigits(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) {
  CellText memory;
  std::string_view text;
  CellReader(CellType{kKind, nullptr, ""}).Text(chunk, index, &memory, &text);
  line->AddText(text);
}

using AddValue = void (*)(const ColumnChunk&, int64_t, CellLineWriter*);

AddValue AdderOf(CellKind kind) {
  switch (kind) {
    case CellKind::kBool:
      return AddBool;
    case CellKind::kInt8:
      return AddSigned<int8_t>;
    case CellKind::kInt16:
      return AddSigned<int16_t>;
    case CellKind::kInt32:
      return AddSigned<int32_t>;
    case CellKind::kInt64:
      return AddSigned<int64_t>;
    case CellKind::kUint8:
      return AddUnsigned<uint8_t>;
    case CellKind::kUint16:
      return AddUnsigned<uint16_t>;
    case CellKind::kUint32:
      return AddUnsigned<uint32_t>;
    case CellKind::kUint64:
      return AddUnsigned<uint64_t>;
    case CellKind::kFloat16:
      return AddFloat16;
    case CellKind::kFloat32:
      return AddFloat32;
    case CellKind::kFloat64:
      return AddFloat64;
    case CellKind::kDecimal128:
      return AddDigits<CellKind::kDecimal128>;
    case CellKind::kDecimal256:
      return AddDigits<CellKind::kDecimal256>;
    case CellKind::kText:
      return AddText<int32_t>;
    case CellKind::kLargeText:
      return AddText<int64_t>;
    case CellKind::kTextViews:
      return AddView;
    default:
      return nullptr;
  }
}

// Indices of dictionaries are not negative, so their bytes are those of unsigned ones.
template <typename T>
int64_t Index(const ColumnChunk& chunk, int64_t index) {
  return static_cast<int64_t>(CellAt<T>(chunk, index));
}

}  // namespace

CellColumnWriter::CellColumnWriter(const CellType& type) : kind_(type.kind) {
  const CellType& cells = IsList(type.kind) ? *type.values : type;
  if (cells.is_dictionary()) {
    constexpr ReadIndex kIndex[] = {nullptr, Index<uint8_t>,  Index<uint16_t>,
                                    nullptr, Index<uint32_t>, nullptr,
                                    nullptr, nullptr,         Index<uint64_t>};
    index_ = kIndex[CellBytes(cells.kind)];
  }
  add_ = AdderOf(cells.is_dictionary() ? cells.values->kind : cells.kind);
}

void CellColumnWriter::AddOne(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) const {
  if (add_ == nullptr || !HasCell(chunk, index)) return line->AddMissing();
  if (index_ == nullptr) return add_(chunk, index, line);
  const int64_t value = index_(chunk, index);
  HasCell(*chunk.values, value) ? add_(*chunk.values, value, line) : line->AddMissing();
}

void CellColumnWriter::Add(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) const {
  if (!IsList(kind_)) return AddOne(chunk, index, line);
  if (!HasCell(chunk, index)) return line->AddMissing();
  const CellRange cells = ListAt(kind_, chunk, index);
  const size_t begin = line->BeginList();
  for (int64_t i = cells.begin; i < cells.end; ++i) AddOne(*chunk.values, i, line);
  line->EndList(begin);
}

BatchLines::BatchLines(const std::vector<ColumnTable::Column>& columns,
                       const std::vector<uint32_t>& index_of_cell) {
  for (const uint32_t index : index_of_cell) {
    const bool absent = index == CellOrder::kAbsent;
    cells_.push_back(
        {absent ? SIZE_MAX : index,
         CellColumnWriter(absent ? CellType{CellKind::kNull, nullptr, ""} : columns[index].type)});
  }
}

Status BatchLines::Add(const ColumnTable& table, int64_t begin, int64_t end, CellLineWriter* lines,
                       const char* packed, size_t packed_bytes) const {
  for (int64_t row = begin; row < end; ++row, packed += packed_bytes) {
    const size_t line = lines->BeginLine();
    lines->AddBytes(packed, packed_bytes);
    for (const Cell& cell : cells_) {
      if (cell.column == SIZE_MAX) {
        lines->AddMissing();
      } else {
        cell.writer.Add(table.chunk(0, cell.column), row, lines);
      }
    }
    if (lines->EndLine(line) <= kLineBytesMax) continue;
    return {Code::kInvalidArgument, "a row of more than " + std::to_string(kLineBytesMax) +
                                        " bytes: expected values of rows to train on"};
  }
  return {};
}

}  // namespace hdps
