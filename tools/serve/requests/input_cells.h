// Gathers the cells of one input of a request.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "tools/serve/requests/score_request.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// Cells of one input: one a row, or a list of them a row.
//
// Invariant: a missing text is empty and a missing floating-point number is NaN; other missing
// cells have a bit of their own.
class InputCells {
 public:
  // `datatype` stands for the cells in messages. Requires: kText, kInt64, kUint64 or kFloat64,
  // unless the cells come by TakeInPlace().
  InputCells(std::string name, CellKind kind, std::string datatype);

  const std::string& name() const { return name_; }
  CellKind kind() const { return kind_; }
  bool has_lists() const { return !list_ends_.empty(); }
  uint64_t rows() const { return has_lists() ? list_ends_.size() - 1 : count_; }

  // Prepares for so many cells.
  void Reserve(uint64_t cells);
  // Each appends a cell. Requires of a number: the type of the kind.
  void AddText(std::string_view text) {
    bytes_ += text;
    offsets_.push_back(static_cast<int32_t>(bytes_.size()));
    ++count_;
  }
  template <typename Number>
  void AddNumber(Number number) {
    numbers_.push_back(std::bit_cast<uint64_t>(number));
    ++count_;
    if (!validity_.empty()) validity_.resize(count_ / 8 + 1, 0xff);
  }
  void AddMissing();

  // Makes each row a list; rows that are there become empty ones. Returns false, and changes
  // nothing, if one of them has a value.
  bool MakeLists();
  void EndList() { list_ends_.push_back(static_cast<int32_t>(count_)); }
  // Makes the cells, rows * width of them, rows of `width` values.
  void SplitIntoLists(uint64_t width);
  // Takes numbers where they lie; they outlive this.
  void TakeInPlace(const char* numbers, uint64_t count);

  // Makes the column of a table of `rows` rows: its own, or its one row for all. The buffers are
  // those of this. Requires: rows() is `rows` or 1. kResourceExhausted if lists for all rows have
  // too many values together.
  Status MakeColumn(uint64_t rows, ColumnTable::Column* column, ColumnChunk* chunk);

 private:
  ColumnChunk Values() const;
  Status ShareList(uint64_t rows, ColumnTable::Column* column, ColumnChunk* chunk);

  std::string name_;
  CellKind kind_;
  std::string datatype_;
  std::vector<uint64_t> numbers_;   // Bits.
  std::vector<int32_t> offsets_;    // Of texts in `bytes_`, behind a 0.
  std::string bytes_;               // Of texts.
  const char* in_place_ = nullptr;  // Numbers that are not in `numbers_`.
  uint64_t count_ = 0;              // Cells, also those inside of lists.
  uint64_t missing_ = 0;
  std::vector<uint8_t> validity_;  // Empty: all cells are there.
  // The end of each list, behind a 0; empty: there are none.
  std::vector<int32_t> list_ends_;
  std::vector<uint32_t> shared_;  // Indices of the values of a list that all rows share.
};

}  // namespace hdps
