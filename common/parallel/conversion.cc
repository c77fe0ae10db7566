// Finds how to move a matrix from one layout to another.
#include <glog/logging.h>

#include <algorithm>
#include <optional>

#include "common/parallel/layout.h"

namespace hdps {
namespace {

// The part of a matrix that a rank has, with rows and columns scaled to [0, 1]. All workers are
// assumed to have equally many rows.
struct Rectangle {
  double row_begin, row_end, column_begin, column_end;

  double area() const { return (row_end - row_begin) * (column_end - column_begin); }
  double Common(const Rectangle& other) const {
    const double rows = std::min(row_end, other.row_end) - std::max(row_begin, other.row_begin);
    const double columns =
        std::min(column_end, other.column_end) - std::max(column_begin, other.column_begin);
    return rows <= 0 || columns <= 0 ? 0 : rows * columns;
  }
};

Rectangle RectangleOf(const Layout& layout, uint32_t rank) {
  const double rows = layout.parts(AxisRole::kRows), columns = layout.parts(AxisRole::kColumns);
  const double row = layout.PartOf(rank, AxisRole::kRows);
  const double column = layout.PartOf(rank, AxisRole::kColumns);
  return {row / rows, (row + 1) / rows, column / columns, (column + 1) / columns};
}

// Returns the part of the matrix that a rank receives in a direct conversion, averaged over the
// ranks: what it needs of every summand minus what it has itself.
double ShareMoved(const Layout& from, const Layout& to) {
  const uint32_t workers = from.workers(), sums = from.parts(AxisRole::kSums);
  double moved = 0;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    const Rectangle needed = RectangleOf(to, rank);
    moved += needed.area() * sums - needed.Common(RectangleOf(from, rank));
  }
  return moved / workers;
}

// Returns the layouts in which every rank has a part of the sums of `from`. The axis of the sums
// cuts rows or columns instead, if these are not cut, or cut by an adjacent axis.
std::vector<Layout> Scattered(const Layout& from) {
  std::vector<Layout> found;
  for (const AxisRole role : {AxisRole::kRows, AxisRole::kColumns}) {
    std::vector<LayoutAxis> axes = from.axes();
    const auto sums = std::ranges::find(axes, AxisRole::kSums, &LayoutAxis::role);
    const auto cut = std::ranges::find(axes, role, &LayoutAxis::role);
    if (cut != axes.end() && std::abs(cut - sums) != 1) continue;
    sums->role = role;
    found.push_back(Layout(axes));
  }
  return found;
}

ConversionKind KindOf(const Layout& from, const std::vector<Layout>& way) {
  if (way.size() == 1) return ConversionKind::kNone;
  if (from.parts(AxisRole::kSums) > 1) {
    return way.size() > 2 || way.back().parts(AxisRole::kCopies) > from.parts(AxisRole::kCopies)
               ? ConversionKind::kAllReduce
               : ConversionKind::kReduceScatter;
  }
  if (ShareMoved(from, way.back()) == 0) return ConversionKind::kSlice;
  return way.back().parts(AxisRole::kCopies) > from.parts(AxisRole::kCopies)
             ? ConversionKind::kAllGather
             : ConversionKind::kAllToAll;
}

double ShareOf(const std::vector<Layout>& way) {
  double share = 0;
  for (size_t i = 0; i + 1 < way.size(); ++i) share += ShareMoved(way[i], way[i + 1]);
  return share;
}

}  // namespace

Conversion ConversionOf(const Layout& from, const Layout& to) {
  CHECK_EQ(from.workers(), to.workers());
  Conversion conversion;
  conversion.way = {from};
  if (from == to) return conversion;
  CHECK_EQ(to.parts(AxisRole::kSums), 1u) << to.Shown();
  conversion.way.push_back(to);
  if (from.parts(AxisRole::kSums) > 1) {
    for (const Layout& between : Scattered(from)) {
      const std::vector<Layout> way = {from, between, to};
      if (between != to && ShareOf(way) < ShareOf(conversion.way)) conversion.way = way;
    }
  }
  conversion.kind = KindOf(from, conversion.way);
  return conversion;
}

double FloatsSent(const Conversion& conversion, double rows, double columns) {
  return ShareOf(conversion.way) * rows * columns;
}

const char* ConversionName(ConversionKind kind) {
  switch (kind) {
    case ConversionKind::kNone:
      return "none";
    case ConversionKind::kSlice:
      return "slice";
    case ConversionKind::kAllGather:
      return "allgather";
    case ConversionKind::kAllToAll:
      return "all-to-all";
    case ConversionKind::kReduceScatter:
      return "reduce-scatter";
    case ConversionKind::kAllReduce:
      break;
  }
  return "allreduce";
}

}  // namespace hdps
