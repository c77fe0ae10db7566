// Tells where the parts of a cell lie in the buffers of its chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "worker/data/columnar/columns.h"

namespace hdps {

// A chunk with more cells than this is taken for a mistake.
inline constexpr int64_t kCellsMax = int64_t{1} << 48;

// Returns true if the chunk has the cell. In all functions `index` counts from the chunk's first
// cell.
inline bool HasCell(const ColumnChunk& chunk, int64_t index) {
  if (chunk.validity == nullptr) return true;
  const auto bit = static_cast<uint64_t>(chunk.first + index);
  return (chunk.validity[bit / 8] >> (bit % 8) & 1) != 0;
}

// Buffers need not be aligned.
template <typename T>
T CellAt(const ColumnChunk& chunk, int64_t index) {
  T cell;
  const auto at = static_cast<size_t>(chunk.first + index) * sizeof(T);
  std::memcpy(&cell, static_cast<const char*>(chunk.cells) + at, sizeof(T));
  return cell;
}

inline bool BitAt(const ColumnChunk& chunk, int64_t index) {
  const auto bit = static_cast<uint64_t>(chunk.first + index);
  return (static_cast<const uint8_t*>(chunk.cells)[bit / 8] >> (bit % 8) & 1) != 0;
}

// A cell of kTextViews: 32 bits of its length, then either up to 12 bytes of text, or 4 bytes of
// its beginning, the number of a buffer and the offset there (Arrow's "variable-size binary view").
struct TextView {
  static constexpr int32_t kInlineBytes = 12;
  int32_t size = 0, buffer = 0, offset = 0;
  bool is_inline() const { return size <= kInlineBytes; }
};

inline const char* ViewBytesAt(const ColumnChunk& chunk, int64_t index) {
  constexpr int64_t kViewBytes = 16;
  return static_cast<const char*>(chunk.cells) + (chunk.first + index) * kViewBytes;
}

inline TextView ViewAt(const ColumnChunk& chunk, int64_t index) {
  const char* const bytes = ViewBytesAt(chunk, index);
  TextView view;
  std::memcpy(&view.size, bytes, sizeof(int32_t));
  std::memcpy(&view.buffer, bytes + 8, sizeof(int32_t));
  std::memcpy(&view.offset, bytes + 12, sizeof(int32_t));
  return view;
}

// Returns the text of a cell of kTextViews that CheckChunk() has found right.
inline std::string_view ViewedText(const ColumnChunk& chunk, int64_t index) {
  const TextView view = ViewAt(chunk, index);
  const auto size = static_cast<size_t>(view.size);
  if (view.is_inline()) return {ViewBytesAt(chunk, index) + sizeof(int32_t), size};
  return chunk.view_bytes[static_cast<size_t>(view.buffer)].substr(static_cast<size_t>(view.offset),
                                                                   size);
}

// Returns the text of a cell of kText (with int32_t) or kLargeText (int64_t).
template <typename Offset>
std::string_view TextAt(const ColumnChunk& chunk, int64_t index) {
  const auto begin = CellAt<Offset>(chunk, index), end = CellAt<Offset>(chunk, index + 1);
  return {chunk.bytes + begin, static_cast<size_t>(end - begin)};
}

// Returns the bytes of a cell in ColumnChunk::cells; 0: less than one, or there are none.
inline int64_t CellBytes(CellKind kind) {
  constexpr int8_t kBytes[] = {0, 0, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 16, 32, 4, 8, 16, 4, 8, 0};
  static_assert(sizeof(kBytes) == static_cast<size_t>(CellKind::kOther) + 1);
  return kBytes[static_cast<size_t>(kind)];
}

// Brings a cell without the bytes of its text into the cache.
inline void PrefetchCell(CellKind kind, const ColumnChunk& chunk, int64_t index) {
  const int64_t at = chunk.first + index;
  const int64_t bytes = kind == CellKind::kBool ? at / 8 : at * CellBytes(kind);
  if (chunk.validity != nullptr) __builtin_prefetch(chunk.validity + at / 8);
  if (chunk.cells != nullptr) __builtin_prefetch(static_cast<const char*>(chunk.cells) + bytes);
}

// Brings the bytes of a text into the cache. Requires: HasCell() and IsText(kind).
inline void PrefetchText(CellKind kind, const ColumnChunk& chunk, int64_t index) {
  const std::string_view text = kind == CellKind::kText        ? TextAt<int32_t>(chunk, index)
                                : kind == CellKind::kLargeText ? TextAt<int64_t>(chunk, index)
                                                               : ViewedText(chunk, index);
  __builtin_prefetch(text.data());
}

}  // namespace hdps
