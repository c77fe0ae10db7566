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

struct DataSpec;
struct LabelSpec;

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

// Returns the parts of packed rows of the data. `labels` as in LabelsOf(job).
CachedShape CachedShapeOf(const DataSpec& data, const std::vector<LabelSpec>& labels,
                          CachedForm form);
// Returns the bytes of a row with one key for each feature and no weights of keys.
size_t PackedBytes(const CachedShape& shape);

// Rows that were packed one after the other, with their places in the stream.
//
// Invariant: rows and the part of one lie in [0, used_) of bytes_, whose memory is kept for those
// that come after Clear().
class CachedRun {
 public:
  struct Place {
    uint64_t row = 0;           // Number in the stream's order without shuffling.
    uint32_t window_lines = 0;  // WindowLines() of the row's text.
    size_t end = 0;             // Of the row in bytes().
  };

  void Clear() {
    used_ = 0;
    places_.clear();
  }
  // Adds a row; `numeric` are its numbers after their transforms, unused for base rows.
  void Add(const CachedShape& shape, const Row& row, const std::vector<float>& numeric);
  // Adds a row that is bad, and why: DescribeRowError().
  void AddBad(std::string_view why);
  // Sets the place of the row that was added last.
  void EndRow(uint64_t row, uint32_t window_lines) {
    places_.push_back({row, window_lines, used_});
  }
  // Removes what was added since the last EndRow().
  void DropRow() { used_ = places_.empty() ? 0 : places_.back().end; }

  size_t bytes() const { return used_; }
  const std::vector<Place>& places() const { return places_; }
  std::span<const std::byte> BytesOf(size_t i) const {
    const size_t begin = i == 0 ? 0 : places_[i - 1].end;
    return std::span(bytes_).subspan(begin, places_[i].end - begin);
  }

 private:
  // Returns where so many bytes may be added.
  std::byte* Room(size_t bytes);
  void EndAt(const std::byte* end) { used_ = static_cast<size_t>(end - bytes_.data()); }

  std::vector<std::byte> bytes_;
  size_t used_ = 0;
  std::vector<Place> places_;
};

// A packed row, whose parts are read where they lie.
struct PackedRow : RowInPlace {
  bool bad = false;
  std::string_view why;  // If it is bad; nothing else is set then.
  // If every feature has one key and no key a weight. If not, RowInPlace::keys is not set.
  bool one_key_each = false;
  bool weighted = false;                       // Each key has a weight.
  std::span<const std::byte> counts_and_rest;  // If not one_key_each: what is behind the numbers.
};

// Finds the parts of a row. `bytes` begin with it and may go on behind it. Returns nothing if no
// row of the shape begins there.
std::optional<PackedRow> FindParts(const CachedShape& shape, std::span<const std::byte> bytes);
// Copies a row that is not bad to `row`, and the numbers of derived rows to `numeric`. Returns
// false if its keys are not there; `row` is void then.
bool Unpack(const CachedShape& shape, const PackedRow& packed, Row* row,
            std::vector<float>* numeric);

}  // namespace hdps
