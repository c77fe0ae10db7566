// Checks each kind of cells by its own rule.
#include "worker/data/columnar/chunk_check.h"

#include <string>

#include "worker/data/columnar/cell_layout.h"

namespace hdps {
namespace {

Status Wrong(const std::string& what) { return {Code::kInvalidArgument, what}; }
Status WrongAt(const std::string& what, int64_t index) {
  return Wrong(what + " at cell " + std::to_string(index));
}

// Checks offsets into `end` cells or, if that is negative, into bytes whose number is not known.
template <typename Offset>
Status CheckOffsets(const ColumnChunk& chunk, int64_t end) {
  if (chunk.length == 0) return {};
  const int64_t begin = CellAt<Offset>(chunk, 0);
  if (begin < 0) return WrongAt("an offset is negative", 0);
  int64_t last = begin;
  for (int64_t i = 0; i < chunk.length; ++i) {
    const int64_t end_of_cell = CellAt<Offset>(chunk, i + 1);
    if (end_of_cell < last) return WrongAt("its offsets go backwards", i);
    last = end_of_cell;
  }
  if (end >= 0 && last > end) {
    return Wrong("its lists end at " + std::to_string(last) + ", but there are " +
                 std::to_string(end) + " cells in them");
  }
  if (end < 0 && chunk.bytes == nullptr && last > begin) {
    return Wrong("the bytes of its texts are missing");
  }
  return {};
}

template <typename Index>
Status CheckIndices(const ColumnChunk& chunk) {
  for (int64_t i = 0; i < chunk.length; ++i) {
    if (!HasCell(chunk, i)) continue;
    // An index beyond 63 bits becomes negative.
    const auto index = static_cast<int64_t>(CellAt<Index>(chunk, i));
    if (index < 0 || index >= chunk.values->length) {
      return WrongAt("its index into " + std::to_string(chunk.values->length) +
                         " values of the dictionary is " + std::to_string(index),
                     i);
    }
  }
  return {};
}

Status CheckViews(const ColumnChunk& chunk) {
  for (int64_t i = 0; i < chunk.length; ++i) {
    if (!HasCell(chunk, i)) continue;
    const TextView view = ViewAt(chunk, i);
    if (view.size < 0) return WrongAt("a text has a negative length", i);
    if (view.is_inline()) continue;
    const bool in_buffer = view.buffer >= 0 && view.offset >= 0 &&
                           static_cast<size_t>(view.buffer) < chunk.view_bytes.size() &&
                           static_cast<size_t>(view.offset) + static_cast<size_t>(view.size) <=
                               chunk.view_bytes[static_cast<size_t>(view.buffer)].size();
    if (!in_buffer) return WrongAt("a text lies outside of the buffers", i);
  }
  return {};
}

Status CheckDictionary(const ColumnChunk& chunk, CellKind kind) {
  switch (kind) {
    case CellKind::kInt8:
      return CheckIndices<int8_t>(chunk);
    case CellKind::kInt16:
      return CheckIndices<int16_t>(chunk);
    case CellKind::kInt32:
      return CheckIndices<int32_t>(chunk);
    case CellKind::kInt64:
      return CheckIndices<int64_t>(chunk);
    case CellKind::kUint8:
      return CheckIndices<uint8_t>(chunk);
    case CellKind::kUint16:
      return CheckIndices<uint16_t>(chunk);
    case CellKind::kUint32:
      return CheckIndices<uint32_t>(chunk);
    case CellKind::kUint64:
      return CheckIndices<uint64_t>(chunk);
    default:
      return Wrong("its dictionary has indices that are no integers");
  }
}

}  // namespace

Status CheckChunk(const CellType& type, const ColumnChunk& chunk, const ColumnChunk* checked) {
  if (chunk.first < 0 || chunk.length < 0 || chunk.length > kCellsMax ||
      chunk.first > kCellsMax - chunk.length) {
    return Wrong("it has " + std::to_string(chunk.length) + " cells from " +
                 std::to_string(chunk.first) + " on");
  }
  if (type.kind == CellKind::kOther || type.kind == CellKind::kNull) return {};
  if (chunk.cells == nullptr && chunk.length > 0)
    return Wrong("the buffer of its cells is missing");
  if (type.values != nullptr) {
    if (chunk.values == nullptr) return Wrong("its lists or its dictionary have no values");
    if (chunk.values.get() != checked) {
      HDPS_RETURN_IF_ERROR(CheckChunk(*type.values, *chunk.values));
    }
    if (type.is_dictionary()) return CheckDictionary(chunk, type.kind);
  }
  switch (type.kind) {
    case CellKind::kText:
      return CheckOffsets<int32_t>(chunk, -1);
    case CellKind::kLargeText:
      return CheckOffsets<int64_t>(chunk, -1);
    case CellKind::kTextViews:
      return CheckViews(chunk);
    case CellKind::kList:
      return CheckOffsets<int32_t>(chunk, chunk.values->length);
    case CellKind::kLargeList:
      return CheckOffsets<int64_t>(chunk, chunk.values->length);
    default:
      return {};
  }
}

}  // namespace hdps
