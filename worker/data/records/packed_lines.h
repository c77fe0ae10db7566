// Writes the rows of record batches as packed lines (packed_order.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/records/batch_lines.h"
#include "worker/data/records/cell_line.h"
#include "worker/data/records/packed_order.h"

namespace hdps {

// Computes the keys or numbers of one column. Of a dictionary each value is looked at once.
class PackedColumn {
 public:
  // Requires: WhyNotReadable() of the type is empty, and for a number the type has_numbers().
  PackedColumn(const CellType& type, const PackedOrder::Place& place, const std::string& missing);

  // Writes the 8 bytes of cells [begin, end) to `to`, `stride` bytes apart.
  void Write(const ColumnChunk& chunk, int64_t begin, int64_t end, char* to, size_t stride);
  // Tells that the chunk's values may be another dictionary than before.
  void UseDictionary(const ColumnChunk& chunk);

  // Returns true if the cells are numbers, or all missing.
  static bool HasNumbers(const CellType& type);

 private:
  uint64_t KeyOf(std::string_view text) const;
  // Returns the bytes of a cell of `reader`'s type.
  uint64_t BitsOf(const CellReader& reader, const ColumnChunk& chunk, int64_t index) const;
  void WriteDictionary(const ColumnChunk& chunk, int64_t begin, int64_t end, char* to,
                       size_t stride) const;

  const CellKind kind_;
  const bool key_;
  const uint64_t salt_;
  const std::string missing_text_;
  const CellReader cells_;
  const std::optional<CellReader> values_;  // Of a dictionary.
  const uint64_t missing_;                  // Bytes of a missing cell.
  std::shared_ptr<const ColumnChunk> dictionary_;
  std::vector<uint64_t> of_value_;  // [values of dictionary_]
};

// Writes rows of batches that have the same columns.
class PackedLines {
 public:
  // As BatchLines. Nothing: a number of the order is no number in these columns, so that the lines
  // cannot be packed.
  static std::optional<PackedLines> Make(const std::vector<ColumnTable::Column>& columns,
                                         const std::vector<uint32_t>& index_of_cell,
                                         const PackedOrder& order);

  // As BatchLines::Add().
  Status Add(const ColumnTable& table, int64_t begin, int64_t end, CellLineWriter* lines);

 private:
  struct Packed {
    size_t column, offset;
    PackedColumn cells;
  };
  explicit PackedLines(size_t bytes) : bytes_(bytes) {}

  const size_t bytes_;  // As PackedOrder::bytes().
  std::vector<Packed> packed_;
  std::optional<BatchLines> others_;  // Of cells that are not packed.
  std::vector<char> absent_;          // Packed bytes of a row whose cells are missing.
  std::vector<char> block_;           // Packed bytes of some rows.
};

}  // namespace hdps
