// Assumes that the rows used last stay, as if each table had one list of all its rows (LRU).
#include "tools/plan/row_tiers.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/planning/key_law.h"
#include "embedding/disk/disk_rows.h"

namespace hdps {
namespace {

// Bytes for all rows of one table: if they are in memory, and for the index if they are on disk.
struct TableNeed {
  double rows, found;
};

// Returns the bytes that the rows of one table may take so that all tables take `bytes`. The
// largest tables give way first, so all get the same limit, and small tables need less.
double LevelFor(const std::vector<TableNeed>& needs, double bytes) {
  double low = 0, high = 0;
  for (const TableNeed& need : needs) high = std::max(high, need.rows);
  const auto taken = [&](double level) {
    double sum = 0;
    for (const TableNeed& need : needs) {
      const double stay = std::min(1.0, level / need.rows);
      sum += stay * need.rows + (1 - stay) * need.found;
    }
    return sum;
  };
  if (taken(high) <= bytes) return high;
  constexpr int kHalvings = 60;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (low + high) / 2;
    (taken(middle) <= bytes ? low : high) = middle;
  }
  return low;
}

}  // namespace

RowTiers PlanTiers(const TierQuestion& question, double rows) {
  RowTiers tiers;
  std::vector<TableNeed> needs;
  constexpr size_t kMany = 1 << 20;
  for (const JobShape::Table& table : question.shape.tables) {
    const double found = double(DiskRows::PredictBytes(table.row_bytes, kMany)) / kMany;
    needs.push_back({rows * (double(table.row_bytes) + question.index_bytes), rows * found});
  }
  if (needs.empty()) return tiers;
  const double level = LevelFor(needs, question.bytes);
  double share = 0;
  for (size_t t = 0; t < needs.size(); ++t) {
    const double stay = std::min(1.0, level / needs[t].rows);
    share += stay / static_cast<double>(needs.size());
    if (stay == 1) continue;
    // A row is in memory if, since its last use, fewer draws passed than it takes to see as many
    // other rows as memory holds. The rows that come back are those that a step adds beyond that.
    const double held = stay * question.values;
    const double draws = DrawsUntil(question.values, question.zipf, held);
    if (std::isinf(draws)) continue;
    const double with_step =
        ExpectedDistinct(question.values, question.zipf, draws + question.draws);
    tiers.rows_back += question.shape.tables[t].features * std::max(with_step - held, 0.0);
  }
  tiers.share_in_memory = share;
  return tiers;
}

}  // namespace hdps
