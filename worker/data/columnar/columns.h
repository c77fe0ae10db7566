// Holds a table in memory as another library made it: columns of cells, in batches of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

struct ArrowArrayStream;

namespace hdps {

// Tells how the cells of a column lie in memory, as in Arrow's columnar format.
enum class CellKind : uint8_t {
  kNull,  // All cells are missing, and there are no buffers.
  kBool,  // A bit a cell.
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kDecimal128,  // Two's complement; the value is that times 10 to the power of -scale.
  kDecimal256,
  kText,       // Bytes between 32-bit offsets.
  kLargeText,  // Bytes between 64-bit offsets.
  kTextViews,  // 16 bytes a cell, with the bytes of the text or where they are.
  kList,       // Cells of `values` between 32-bit offsets.
  kLargeList,  // Cells of `values` between 64-bit offsets.
  kOther,      // hdps cannot read the cells.
};

inline constexpr int kDecimalDigitsMax = 76;

inline bool IsInteger(CellKind kind) {
  return kind >= CellKind::kInt8 && kind <= CellKind::kUint64;
}
inline bool IsFloat(CellKind kind) {
  return kind >= CellKind::kFloat16 && kind <= CellKind::kFloat64;
}
inline bool IsDecimal(CellKind kind) {
  return kind == CellKind::kDecimal128 || kind == CellKind::kDecimal256;
}
inline bool IsText(CellKind kind) {
  return kind >= CellKind::kText && kind <= CellKind::kTextViews;
}
inline bool IsList(CellKind kind) {
  return kind == CellKind::kList || kind == CellKind::kLargeList;
}

// Type of the cells of a column. `values` is the type of a list's cells or, if `kind` is an
// integer, that of the values to which the cells are indices (a dictionary); else it is null.
//
// Invariant of a table's types: no list or dictionary is inside of a dictionary, and no list inside
// of a list.
struct CellType {
  CellKind kind = CellKind::kOther;
  std::shared_ptr<const CellType> values;
  std::string name;   // Of the type, for messages: "int64", "list of int64", "timestamp".
  uint8_t scale = 0;  // Of decimals: digits behind the point, at most kDecimalDigitsMax.

  bool is_dictionary() const { return IsInteger(kind) && values != nullptr; }
};

// Cells of one column in one batch: where they lie in memory that something else keeps.
struct ColumnChunk {
  int64_t first = 0;   // Index of the first cell in the buffers.
  int64_t length = 0;  // Number of cells.
  // Bit i tells whether cell i of the buffers is there, from the lowest bit of each byte on; null:
  // all are.
  const uint8_t* validity = nullptr;
  const void* cells = nullptr;  // Numbers, bits, views; of texts and lists the offsets.
  const char* bytes = nullptr;  // kText, kLargeText.
  std::vector<std::string_view> view_bytes = {};        // kTextViews: what long texts point into.
  std::shared_ptr<const ColumnChunk> values = nullptr;  // As in CellType.
  uint8_t scale = 0;                                    // As in CellType.
};

// A table whose rows are numbered from 0.
//
// Invariant: each batch has a chunk of every column, all with the same number of cells. In columns
// that can be read, offsets ascend from 0 on, and offsets, views and indices of valid cells lie
// inside of what they refer to. So reading a cell needs no check.
class ColumnTable {
 public:
  struct Column {
    std::string name;
    CellType type;
  };
  // A row's batch, and its index there.
  struct Place {
    size_t batch = 0;
    int64_t index = 0;
  };

  // Takes all batches of a stream and releases it, also after an error. Copies no cells, and keeps
  // the producer's buffers until it is destroyed. kInvalidArgument for what contradicts the
  // interface, as far as can be seen: it does not tell how long buffers are.
  static Result<std::unique_ptr<ColumnTable>> FromStream(ArrowArrayStream* stream);
  // Makes a table of one batch; chunks[i] has the cells of columns[i]. `keeps` owns the buffers.
  // kInvalidArgument if chunks have unequal lengths or break the invariant.
  static Result<std::unique_ptr<ColumnTable>> FromChunks(std::vector<Column> columns,
                                                         std::vector<ColumnChunk> chunks,
                                                         std::shared_ptr<const void> keeps);

  // Makes a table of the batches of several, in their order, which it keeps. Requires: there is at
  // least one, and their columns are alike.
  static std::shared_ptr<const ColumnTable> Joined(
      const std::vector<std::shared_ptr<const ColumnTable>>& tables);

  uint64_t num_rows() const { return begins_.back(); }
  const std::vector<Column>& columns() const { return columns_; }
  // Requires: row < num_rows(). `hint` is the batch of a row that was asked for before.
  Place PlaceOf(uint64_t row, size_t hint = 0) const;
  const ColumnChunk& chunk(size_t batch, size_t column) const { return batches_[batch][column]; }

 private:
  friend class ColumnStream;
  ColumnTable() = default;
  // Adds a batch that keeps the invariant; without rows it is left out. `before`, if not null, is a
  // table of the same columns: a dictionary that it has, too, is not checked again.
  Status AddBatch(std::vector<ColumnChunk> chunks, const ColumnTable* before = nullptr);
  // Adds the batches of another table of the same columns, and keeps it.
  void AddBatchesOf(std::shared_ptr<const ColumnTable> table);

  std::vector<Column> columns_;
  std::vector<std::vector<ColumnChunk>> batches_;   // [batches, columns]
  std::vector<uint64_t> begins_ = {0};              // First row of each batch, and the end.
  std::vector<std::shared_ptr<const void>> keeps_;  // Owners of the buffers.
};

// Is true if the columns have the same names and types in the same order.
bool AreAlike(const std::vector<ColumnTable::Column>& a, const std::vector<ColumnTable::Column>& b);

}  // namespace hdps
