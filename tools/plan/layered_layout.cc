// Barycentres for the order, then a few sweeps for the places.
#include "tools/plan/layered_layout.h"

#include <algorithm>
#include <numeric>

namespace hdps {
namespace {

double MeanOf(const std::vector<uint32_t>& joined, const std::vector<RowItem>& row) {
  double sum = 0;
  for (const uint32_t place : joined) sum += row[place].x;
  return sum / static_cast<double>(joined.size());
}

// Puts items in this order, and tells their neighbours.
void Reorder(const std::vector<uint32_t>& order, size_t r, ItemRows* rows) {
  std::vector<RowItem> sorted;
  std::vector<uint32_t> place_of(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place_of[order[i]] = i;
    sorted.push_back(std::move((*rows)[r][order[i]]));
  }
  (*rows)[r] = std::move(sorted);
  if (r > 0) {
    for (RowItem& item : (*rows)[r - 1]) {
      for (uint32_t& place : item.below) place = place_of[place];
    }
  }
  if (r + 1 < rows->size()) {
    for (RowItem& item : (*rows)[r + 1]) {
      for (uint32_t& place : item.above) place = place_of[place];
    }
  }
}

// As near to where they want to be as the gap allows: pushed to the right where they would touch,
// then all of the row moved by what that made of the mean.
void Place(const std::vector<double>& wanted, double gap, std::vector<RowItem>* row) {
  double moved = 0;
  for (size_t i = 0; i < row->size(); ++i) {
    RowItem& item = (*row)[i];
    item.x = wanted[i];
    if (i > 0) {
      const RowItem& left = (*row)[i - 1];
      item.x = std::max(item.x, left.x + (left.width + item.width) / 2 + gap);
    }
    moved += item.x - wanted[i];
  }
  for (RowItem& item : *row) item.x -= moved / static_cast<double>(row->size());
}

void Sweep(bool down, bool reorder, double gap, ItemRows* rows) {
  for (size_t step = 1; step < rows->size(); ++step) {
    const size_t r = down ? step : rows->size() - 1 - step;
    std::vector<RowItem>& row = (*rows)[r];
    const std::vector<RowItem>& other = (*rows)[down ? r - 1 : r + 1];
    const auto wanted_of = [&] {
      std::vector<double> wanted;
      for (const RowItem& item : (*rows)[r]) {
        const std::vector<uint32_t>& joined = down ? item.above : item.below;
        wanted.push_back(joined.empty() ? item.x : MeanOf(joined, other));
      }
      return wanted;
    };
    std::vector<double> wanted = wanted_of();
    if (reorder) {
      std::vector<uint32_t> order(row.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order,
                               [&](uint32_t a, uint32_t b) { return wanted[a] < wanted[b]; });
      Reorder(order, r, rows);
      wanted = wanted_of();
    }
    Place(wanted, gap, &row);
  }
}

}  // namespace

void PlaceRows(double gap, ItemRows* rows) {
  for (std::vector<RowItem>& row : *rows) {
    Place(std::vector<double>(row.size(), 0), gap, &row);
  }
  constexpr int kOrderings = 4, kPlacings = 6;
  for (int i = 0; i < kOrderings; ++i) Sweep(i % 2 == 0, true, gap, rows);
  for (int i = 0; i < kPlacings; ++i) Sweep(i % 2 == 0, false, gap, rows);
  double left = 0;
  bool first = true;
  for (const std::vector<RowItem>& row : *rows) {
    for (const RowItem& item : row) {
      const double edge = item.x - item.width / 2;
      left = first ? edge : std::min(left, edge);
      first = false;
    }
  }
  for (std::vector<RowItem>& row : *rows) {
    for (RowItem& item : row) item.x -= left;
  }
}

}  // namespace hdps
