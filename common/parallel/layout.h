// The distribution of a matrix of a step, [examples, columns], over the workers of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

// The meaning of a rank's digit for its part of a matrix.
enum class AxisRole : uint8_t {
  kRows,     // Selects the examples.
  kColumns,  // Selects the columns.
  kSums,     // Selects nothing: each rank along the axis has a summand of the same elements.
  kCopies,   // Selects nothing: each rank along the axis has a copy of the same elements.
};

struct LayoutAxis {
  AxisRole role = AxisRole::kCopies;
  uint32_t parts = 1;
  friend bool operator==(const LayoutAxis&, const LayoutAxis&) = default;
};

// Part `part` of `count` items in `parts` parts: the first count % parts of them have one item
// more.
struct Cut {
  size_t begin = 0;
  size_t size = 0;
  size_t end() const { return begin + size; }
  friend bool operator==(const Cut&, const Cut&) = default;
};
inline Cut CutOf(size_t count, size_t part, size_t parts) {
  const size_t each = count / parts, longer = count % parts;
  return {part * each + (part < longer ? part : longer), each + (part < longer ? 1 : 0)};
}

// The digits of a rank, one for each axis with the first axis the highest, say which part of the
// matrix it has.
//
// Invariant: every axis has at least two parts, no role except kCopies occurs twice, and adjacent
// axes have different roles. The product of the parts is the number of workers.
//
// Rows are in the order of the ranks: those that worker 0 reads for the step, then those of worker
// 1, ... An axis of rows with fewer parts than workers gives each part the rows of consecutive
// workers, so the number of workers is a multiple of its parts.
class Layout {
 public:
  Layout() = default;  // The layout for one worker.
  // Drops axes of one part and joins adjacent axes of one role.
  explicit Layout(const std::vector<LayoutAxis>& axes);
  // Every worker has its own rows, whole: data parallel.
  static Layout OwnRows(uint32_t workers) { return Layout({{AxisRole::kRows, workers}}); }
  static Layout Copies(uint32_t workers) { return Layout({{AxisRole::kCopies, workers}}); }

  const std::vector<LayoutAxis>& axes() const { return axes_; }
  uint32_t workers() const;
  uint32_t parts(AxisRole role) const;
  // Returns the digit of a rank on the axis of a role; 0 if there is no such axis.
  uint32_t PartOf(uint32_t rank, AxisRole role) const;
  // Returns the ranks that differ from `rank` only on the axis of the role, including itself,
  // ascending. Not for kCopies.
  std::vector<uint32_t> Along(uint32_t rank, AxisRole role) const;
  // Returns "rows 2 x columns 2" or "one worker".
  std::string Shown() const;
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<LayoutAxis> axes_;
};

// The operation that moves a matrix from one layout to another.
enum class ConversionKind : uint8_t {
  kNone,           // Nothing moves.
  kSlice,          // Every rank already has what it needs.
  kAllGather,      // Parts become copies.
  kAllToAll,       // Parts of one kind become parts of another.
  kReduceScatter,  // Summands become parts of the sum.
  kAllReduce,      // Summands become copies of the sum, by a reduce-scatter and an allgather.
};

struct Conversion {
  ConversionKind kind = ConversionKind::kNone;
  // The layouts in order: `from`, intermediate ones, `to`. Each step between two is one exchange.
  std::vector<Layout> way;
};

// Returns the conversion between layouts of equally many workers. `to` must have no sums unless it
// equals `from`.
Conversion ConversionOf(const Layout& from, const Layout& to);

// Returns the floats that a rank sends in the conversion of a matrix [rows, columns], averaged over
// the ranks.
double FloatsSent(const Conversion& conversion, double rows, double columns);

// Returns "allgather" and so on.
const char* ConversionName(ConversionKind kind);

}  // namespace hdps
