// Writes a row of typed cells as bytes that stand for themselves, and reads it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/columnar/cell_reader.h"

namespace hdps {

// What a cell of a line holds. A tag stands before the value; see CellLineWriter.
enum class CellTag : uint8_t {
  kMissing,
  kInt32,    // An integer that fits, in 4 bytes.
  kInt64,    // 8 bytes.
  kUint64,   // 8 bytes, of integers beyond 63 bits.
  kFloat32,  // 4 bytes; not NaN, which is missing.
  kFloat64,  // 8 bytes; not NaN.
  kText,     // 32 bits of its length, and its bytes.
  kList,     // 32 bits of the bytes of its values, and these as cells that are no lists.
  kPacked,   // No cell: the first byte of a packed line (packed_order.h).
};

// Appends the cells of rows to a buffer, one behind the other. One value has one form, whatever
// type held it, so rows that are equal have equal lines.
//
// Invariant: the buffer has the cells that were added since Clear(); a list is complete after its
// EndList().
class CellLineWriter {
 public:
  void Clear() { size_ = 0; }
  size_t size() const { return size_; }
  const char* data() const { return bytes_.data(); }

  void AddMissing() { Put(CellTag::kMissing); }
  void AddInteger(int64_t value) {
    const auto small = static_cast<int32_t>(value);
    if (small == value) return PutValue(CellTag::kInt32, small);
    PutValue(CellTag::kInt64, value);
  }
  void AddUnsigned(uint64_t value) {
    if (value <= INT64_MAX) return AddInteger(static_cast<int64_t>(value));
    PutValue(CellTag::kUint64, value);
  }
  void AddFloat(float value) { AddNumber(CellTag::kFloat32, value); }
  void AddDouble(double value) { AddNumber(CellTag::kFloat64, value); }
  // Requires: less than 4 GiB.
  void AddText(std::string_view text) {
    char* const to = Room(1 + sizeof(uint32_t) + text.size());
    const auto bytes = static_cast<uint32_t>(text.size());
    to[0] = static_cast<char>(CellTag::kText);
    std::memcpy(to + 1, &bytes, sizeof(bytes));
    if (bytes > 0) std::memcpy(to + 1 + sizeof(bytes), text.data(), bytes);
  }
  // Adds bytes of a packed line.
  void AddBytes(const char* bytes, size_t count) {
    if (count > 0) std::memcpy(Room(count), bytes, count);
  }
  // Returns what EndList() needs; between the two come the list's values.
  size_t BeginList() {
    PutValue(CellTag::kList, uint32_t{0});
    return size_;
  }
  void EndList(size_t begin) { Overwrite(begin - sizeof(uint32_t), size_ - begin); }

  // Begins a framed line: 32 bits of its length stand before it. EndLine() fills them in.
  size_t BeginLine() {
    Room(sizeof(uint32_t));
    return size_;
  }
  // Returns the bytes of the line.
  size_t EndLine(size_t begin) {
    Overwrite(begin - sizeof(uint32_t), size_ - begin);
    return size_ - begin;
  }

 private:
  // Returns `bytes` more of the buffer, which grows.
  char* Room(size_t bytes) {
    if (size_ + bytes > bytes_.size()) bytes_.resize(2 * (size_ + bytes));
    char* const to = bytes_.data() + size_;
    size_ += bytes;
    return to;
  }
  void Put(CellTag tag) { *Room(1) = static_cast<char>(tag); }
  template <typename T>
  void PutValue(CellTag tag, T value) {
    char* const to = Room(1 + sizeof(T));
    to[0] = static_cast<char>(tag);
    std::memcpy(to + 1, &value, sizeof(T));
  }
  template <typename T>
  void AddNumber(CellTag tag, T value) {
    value == value ? PutValue(tag, value) : AddMissing();
  }
  void Overwrite(size_t at, size_t bytes) {
    const auto length = static_cast<uint32_t>(bytes);
    std::memcpy(bytes_.data() + at, &length, sizeof(length));
  }

  std::vector<char> bytes_;
  size_t size_ = 0;
};

// A cell of a line.
struct CellValue {
  CellTag tag = CellTag::kMissing;
  int64_t integer = 0;    // kInt32, kInt64; kUint64 has its bits.
  double number = 0;      // kFloat32, kFloat64.
  std::string_view text;  // kText; of a list its values, in the line.

  bool is_number() const { return tag >= CellTag::kInt32 && tag <= CellTag::kFloat64; }
  // The number of a cell that is one; -0 is 0, as in text.
  double Number() const;
  // Returns the text of a cell that is no list, as CellReader has it, maybe in `memory`; empty if
  // it is missing.
  std::string_view Text(CellText* memory) const;
};

// Takes the first cell off the line. Nothing: the bytes are not those of a cell.
std::optional<CellValue> TakeCell(std::string_view* line);

// Calls use(text) with each value of the cell, behind each other: those of a list, or the cell's
// own. A missing cell and an empty text have none.
template <typename Use>
void ForEachValue(const CellValue& cell, const Use& use) {
  CellText memory;
  const auto give = [&](const CellValue& value) {
    const std::string_view text = value.Text(&memory);
    if (!text.empty()) use(text);
  };
  if (cell.tag != CellTag::kList) return give(cell);
  for (std::string_view values = cell.text; !values.empty();) {
    const std::optional<CellValue> value = TakeCell(&values);
    if (!value || value->tag == CellTag::kList) return;
    give(*value);
  }
}

// Returns a hash of the cells' values but those of the cells `left_out`, which ascend. Lists of one
// value and the value alone are equal.
uint64_t HashOfCells(std::string_view line, const std::vector<uint32_t>& left_out, uint64_t seed);

}  // namespace hdps
