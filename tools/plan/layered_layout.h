// Boxes of a graph in rows, from the top down: where each stands, so that none touches another.
#pragma once

#include <cstdint>
#include <vector>

namespace hdps {

// What stands in one row. Edges go from one row to the next; longer ones have an item without width
// in each row that they pass.
struct RowItem {
  uint32_t item = 0;  // Whose it is; the caller's.
  double width = 0;
  double x = 0;                        // Of its middle, once placed.
  std::vector<uint32_t> above, below;  // Places in the neighbouring rows.
};
using ItemRows = std::vector<std::vector<RowItem>>;

// Orders each row after the middles of what its items are joined with (Sugiyama et al. 1981), and
// places them at least `gap` apart, near what they are joined with, the leftmost at 0. `above` and
// `below` are places in the rows as they are given back.
void PlaceRows(double gap, ItemRows* rows);

}  // namespace hdps
