// Copies what a job wants of a row together, so that reading it later visits one place in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// How a packed row holds a cell.
enum class PackedForm : uint8_t {
  kNumber,   // A double; kMissingNumber if the cell is missing.
  kKey,      // The key of the cell's text.
  kCell,     // The cell of a fixed width and a byte that tells whether it is there.
  kInPlace,  // Not at all: it is read where it lies.
};

// One of the columns that a job reads.
struct PackedColumn {
  size_t index;  // In the table.
  CellReader reader;
  uint64_t salt;  // Of its keys.
  PackedForm form;
};

// Packs rows of a table. A packed row is the row's number as in table_files.h and the columns, one
// behind the other, so all have the same length.
//
// Rows are packed in blocks of neighbours, column by column, for a processor reads ahead in a few
// places at a time and not in a hundred.
class PackedRows {
 public:
  // `missing`: cells of this text are missing, as empty ones are.
  PackedRows(std::shared_ptr<const ColumnTable> table, std::vector<PackedColumn> columns,
             std::string missing);

  // As RowParser::UseTable().
  void UseTable(std::shared_ptr<const ColumnTable> table);
  // Returns the packed row, valid until the next call. Quick if rows come in their order.
  // Requires: row < num_rows().
  std::string_view Pack(uint64_t row);

  // Returns true for the length of a packed row that holds more than its number.
  bool IsPacked(std::string_view line) const;
  // Returns where column c begins in a packed row.
  const char* At(std::string_view packed, size_t c) const { return packed.data() + begins_[c]; }
  // Returns the bytes of a cell of this kind that is held as kCell; 0: it cannot be.
  static size_t CellBytesOf(const CellType& type);

 private:
  void PackBlock(uint64_t row);
  void PackColumn(size_t c, const ColumnChunk& chunk, int64_t index);
  // Stores value(cell) of each row in the column's place; finds it once if all cells are one.
  template <typename Value>
  void StoreEach(size_t c, const ColumnChunk& chunk, int64_t index, const Value& value);
  double NumberOf(const CellReader& reader, const ColumnChunk& chunk, int64_t index);
  uint64_t KeyOf(const PackedColumn& column, const ColumnChunk& chunk, int64_t index);

  std::shared_ptr<const ColumnTable> table_;
  const std::vector<PackedColumn> columns_;
  const std::string missing_;
  const bool missing_is_number_;
  std::vector<size_t> begins_;      // [columns + 1]: of the columns in a row; the end.
  uint64_t block_rows_;             // At most so many in a block.
  uint64_t first_ = 0, count_ = 0;  // The block has the rows [first_, first_ + count_).
  size_t batch_ = 0;                // Of the block.
  std::vector<char> bytes_;         // [block_rows_, bytes of a row]
  CellText text_;                   // Of the current cell.
};

}  // namespace hdps
