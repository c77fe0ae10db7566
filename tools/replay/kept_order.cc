// Follows each step of each worker through the order.
#include "tools/replay/kept_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace hdps {
namespace {

// The places of what was kept so far of one key list of a step.
struct ListAtHand {
  std::optional<size_t> rows;    // A pull to train, or ahead.
  std::optional<size_t> repair;  // Behind it.
  bool pushed = false;
};

}  // namespace

std::vector<OrderEntry> KeptOrder(const std::vector<OrderEntry>& all, Clock end, uint64_t* again) {
  std::map<std::tuple<WorkerId, Clock, uint32_t>, ListAtHand> lists;
  std::vector<bool> kept(all.size(), false);
  const auto drop = [&kept](std::optional<size_t>* place) {
    if (*place) kept[**place] = false;
    place->reset();
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const OrderEntry& entry = all[i];
    if (entry.step >= end) continue;
    if (entry.kind == OrderKind::kAdvance) {
      kept[i] = true;
      continue;
    }
    ListAtHand& list = lists[{entry.worker, entry.step, entry.part}];
    if (list.pushed) {
      ++*again;
      continue;
    }
    kept[i] = true;
    if (entry.kind == OrderKind::kPush) {
      list.pushed = true;
      continue;
    }
    drop(&list.repair);
    if (entry.kind == OrderKind::kRefresh) {
      list.repair = i;
    } else {
      drop(&list.rows);
      list.rows = i;
    }
  }
  std::vector<OrderEntry> order;
  for (size_t i = 0; i < all.size(); ++i) {
    if (kept[i]) order.push_back(all[i]);
  }
  return order;
}

Clock AdvancedTo(const std::vector<OrderEntry>& order, WorkerId worker, Clock begin) {
  Clock reached = begin;
  for (const OrderEntry& entry : order) {
    if (entry.kind == OrderKind::kAdvance && entry.worker == worker) {
      reached = std::max(reached, entry.step + 1);
    }
  }
  return reached;
}

}  // namespace hdps
