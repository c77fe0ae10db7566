// How a matrix of a step, [examples, columns], lies over the workers of a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

// What the digits of a rank say about the part of a matrix that it has.
enum class AxisRole : uint8_t {
  kRows,     // Which of the examples.
  kColumns,  // Which of the columns.
  kSums,     // Nothing about where: all ranks along it have a summand of the same elements.
  kCopies,   // Likewise, but each has the elements themselves.
};

struct LayoutAxis {
  AxisRole role = AxisRole::kCopies;
  uint32_t parts = 1;
  friend bool operator==(const LayoutAxis&, const LayoutAxis&) = default;
};

// A part of `count` things cut into `parts`: the first count % parts have one more than the others.
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

// A rank is a number whose digits, the first axis the highest, say which part of the matrix it has.
//
// Invariant: every axis has two parts or more, no role but that of copies stands twice, and
// neighbours of one role are one axis. The product of the parts is the number of workers.
//
// Rows are counted in the order of the ranks: those that worker 0 reads of the step, then those of
// worker 1, ... An axis of rows with fewer parts than workers gives each part the rows of
// neighbouring workers, so the number of workers is a multiple of it.
class Layout {
 public:
  Layout() = default;  // Of one worker.
  // Axes of one part are left out, neighbours of one role joined.
  explicit Layout(const std::vector<LayoutAxis>& axes);
  // Every worker has its own rows, whole: data parallel.
  static Layout OwnRows(uint32_t workers) { return Layout({{AxisRole::kRows, workers}}); }
  static Layout Copies(uint32_t workers) { return Layout({{AxisRole::kCopies, workers}}); }

  const std::vector<LayoutAxis>& axes() const { return axes_; }
  uint32_t workers() const;
  uint32_t parts(AxisRole role) const;
  // The digit of a rank on the axis of the role; 0 where there is none.
  uint32_t PartOf(uint32_t rank, AxisRole role) const;
  // The ranks that differ from `rank` on the axis of the role alone, itself among them, ascending.
  // Not of copies.
  std::vector<uint32_t> Along(uint32_t rank, AxisRole role) const;
  // "rows 2 x columns 2"; "one worker".
  std::string Shown() const;
  friend bool operator==(const Layout&, const Layout&) = default;

 private:
  std::vector<LayoutAxis> axes_;
};

// How a matrix gets from one layout to another.
enum class ConversionKind : uint8_t {
  kNone,           // Nothing moves.
  kSlice,          // Every rank has what it needs.
  kAllGather,      // Parts become copies.
  kAllToAll,       // Parts of one kind become parts of another.
  kReduceScatter,  // Summands become parts of the sum.
  kAllReduce,      // Summands become copies of the sum: a reduce-scatter and an allgather.
};

struct Conversion {
  ConversionKind kind = ConversionKind::kNone;
  // The way: `from`, what stands between, `to`. Between two neighbours ranks exchange once.
  std::vector<Layout> way;
};

// The way from one layout to another of as many workers. `to` has no sums, unless it is `from`.
Conversion ConversionOf(const Layout& from, const Layout& to);

// Floats that leave a rank on the way, the mean over the ranks, for a matrix of [rows, columns].
double FloatsSent(const Conversion& conversion, double rows, double columns);

// "allgather" and so on.
const char* ConversionName(ConversionKind kind);

}  // namespace hdps
