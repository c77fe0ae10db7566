// Reads cells of a column as texts and numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/data/columnar/cell_layout.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/number.h"

namespace hdps {

// Memory for the text of one cell. The longest text of a number is that of a decimal of 256 bits:
// its digits, with a sign and "0." before them.
struct CellText {
  static constexpr size_t kBytesMax = 96;
  char bytes[kBytesMax];
};

// Returns the shortest decimal text that reads as the same number, with a point or an exponent, as
// Python writes it: "0.1", "5.0", "1e+16", "inf". The text lies in `memory`.
std::string_view TextOfFloat(double number, CellText* memory);
std::string_view TextOfFloat(float number, CellText* memory);

// Returns a number of IEEE binary16. Requires: the chunk is of kFloat16.
float Float16At(const ColumnChunk& chunk, int64_t index);

// Returns the text without blanks around it, as a cell of a file is read.
inline std::string_view TrimmedCell(std::string_view text) {
  const auto may_be_blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  const bool trim = !text.empty() && (may_be_blank(text.front()) || may_be_blank(text.back()));
  return trim ? TrimBlanks(text) : text;
}

// Reads the cells of columns of one type that has no lists; for the cells inside of lists, it is
// made of their type.
//
// Every value has one text, whatever type holds it: a text itself, an integer its decimal digits,
// false and true "0" and "1", a decimal all digits of its scale ("2.50"), a floating-point number
// as TextOfFloat. NaN is missing.
class CellReader {
 public:
  // Chooses the functions of the type, so that no cell looks at it. Requires: not kOther, no list.
  explicit CellReader(const CellType& type);

  // Is true for integers, decimals, floating-point numbers and bools.
  bool has_numbers() const { return number_ != nullptr; }
  // Return false if the cell is missing. A text may lie in `memory`. Requires for Number():
  // has_numbers().
  bool Text(const ColumnChunk& chunk, int64_t index, CellText* memory,
            std::string_view* text) const {
    const ColumnChunk* values = &chunk;
    return Find(&values, &index) && text_(*values, index, memory, text);
  }
  bool Number(const ColumnChunk& chunk, int64_t index, double* number) const {
    const ColumnChunk* values = &chunk;
    return Find(&values, &index) && number_(*values, index, number);
  }

 private:
  using ReadText = bool (*)(const ColumnChunk&, int64_t, CellText*, std::string_view*);
  using ReadNumber = bool (*)(const ColumnChunk&, int64_t, double*);
  using ReadIndex = int64_t (*)(const ColumnChunk&, int64_t);

  // Goes from a cell of a dictionary to the value. Returns false if it is missing.
  bool Find(const ColumnChunk** chunk, int64_t* index) const {
    if (!HasCell(**chunk, *index)) return false;
    if (index_ == nullptr) return true;
    *index = index_(**chunk, *index);
    *chunk = (*chunk)->values.get();
    return HasCell(**chunk, *index);
  }

  ReadText text_ = nullptr;
  ReadNumber number_ = nullptr;  // Null: the cells are texts, or all are missing.
  ReadIndex index_ = nullptr;    // Null: no dictionary.
};

// Range of cells of `values` of a chunk of lists.
struct CellRange {
  int64_t begin = 0, end = 0;
};
// Returns the cells of a list; none if it is missing. Requires: IsList(kind), the chunk's.
inline CellRange ListAt(CellKind kind, const ColumnChunk& chunk, int64_t index) {
  if (!HasCell(chunk, index)) return {};
  if (kind == CellKind::kList) {
    return {CellAt<int32_t>(chunk, index), CellAt<int32_t>(chunk, index + 1)};
  }
  return {CellAt<int64_t>(chunk, index), CellAt<int64_t>(chunk, index + 1)};
}

}  // namespace hdps
