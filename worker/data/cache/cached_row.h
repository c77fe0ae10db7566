// A parsed row as bytes, for reading it again without its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/row.h"

namespace hdps {

// What a row is packed as: the derived one goes into batches as it is. The base one lacks derived
// features and transforms, because negative examples are made of it.
enum class CachedForm : uint8_t { kDerived, kBase };

// The parts of all packed rows of a stream.
struct CachedShape {
  CachedForm form = CachedForm::kDerived;
  size_t num_numbers = 0;   // All of the row's, kept or not. float, of base rows double.
  size_t num_features = 0;  // Sparse features, of base rows without derived ones.
  uint32_t num_labels = 1;
  bool weights = false, groups = false, ids = false;
};

// Rows that were packed one after the other, with their places in the stream.
class CachedRun {
 public:
  struct Place {
    uint64_t row = 0;           // Number in the stream's order without shuffling.
    uint32_t window_lines = 0;  // WindowLines() of the row's text.
    size_t end = 0;             // Of the row in bytes().
  };

  void Clear() {
    bytes_.clear();
    places_.clear();
  }
  // Adds a row; `numeric` are its numbers after their transforms, unused for base rows.
  void Add(const CachedShape& shape, const Row& row, const std::vector<float>& numeric);
  // Adds a row that is bad, and why: DescribeRowError().
  void AddBad(std::string_view why);
  // Sets the place of the row that was added last.
  void EndRow(uint64_t row, uint32_t window_lines) {
    places_.push_back({row, window_lines, bytes_.size()});
  }
  // Removes what was added since the last EndRow().
  void DropRow() { bytes_.resize(places_.empty() ? 0 : places_.back().end); }

  size_t bytes() const { return bytes_.size(); }
  const std::vector<Place>& places() const { return places_; }
  std::span<const std::byte> BytesOf(size_t i) const {
    const size_t begin = i == 0 ? 0 : places_[i - 1].end;
    return std::span(bytes_).subspan(begin, places_[i].end - begin);
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<Place> places_;
};

// What a packed row was.
struct Unpacked {
  bool bad = false;
  std::string_view why;  // If it is bad; points into the bytes.
  // If every feature has one key and no key a weight. Row::key_ends is left as it was then.
  bool one_key_each = false;
};

// Fills `row`, and for derived rows `numeric`. `bytes` begin with the row and may go on behind it.
// Returns nothing if no row of the shape begins there; `row` is void then.
std::optional<Unpacked> Unpack(const CachedShape& shape, std::span<const std::byte> bytes, Row* row,
                               std::vector<float>* numeric);

}  // namespace hdps
