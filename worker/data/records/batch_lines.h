// Writes the rows of record batches as lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/records/cell_line.h"

namespace hdps {

// Writes the cells of one column into lines.
class CellColumnWriter {
 public:
  // Chooses the functions of the type. Requires: WhyNotReadable() of the type is empty.
  explicit CellColumnWriter(const CellType& type);
  void Add(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) const;

 private:
  using AddValue = void (*)(const ColumnChunk&, int64_t, CellLineWriter*);
  using ReadIndex = int64_t (*)(const ColumnChunk&, int64_t);
  void AddOne(const ColumnChunk& chunk, int64_t index, CellLineWriter* line) const;

  CellKind kind_;
  AddValue add_ = nullptr;     // Of a cell that is there; null: all are missing.
  ReadIndex index_ = nullptr;  // Null: no dictionary.
};

// Writes rows of batches that have the same columns.
class BatchLines {
 public:
  // `index_of_cell` has for each cell of a line its column in the batches; CellOrder::kAbsent: it
  // is missing in all lines.
  BatchLines(const std::vector<ColumnTable::Column>& columns,
             const std::vector<uint32_t>& index_of_cell);

  // Appends the framed lines of rows [begin, end) of the table's only batch. kInvalidArgument for a
  // row of more bytes than a line may have. Each line begins with the next `packed_bytes` of
  // `packed`.
  Status Add(const ColumnTable& table, int64_t begin, int64_t end, CellLineWriter* lines,
             const char* packed = nullptr, size_t packed_bytes = 0) const;

 private:
  struct Cell {
    size_t column;  // SIZE_MAX: missing.
    CellColumnWriter writer;
  };
  std::vector<Cell> cells_;
};

}  // namespace hdps
