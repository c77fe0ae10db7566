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

bool IsPull(const OrderEntry& entry) { return entry.kind < OrderKind::kPush; }

// Counts pushes from `end` on that stand before a pull that is kept.
uint64_t PushesSeen(const std::vector<OrderEntry>& all, const std::vector<bool>& kept, Clock end) {
  uint64_t seen = 0;
  bool pull_behind = false;
  for (size_t i = all.size(); i-- > 0;) {
    pull_behind = pull_behind || (kept[i] && IsPull(all[i]));
    seen += pull_behind && all[i].kind == OrderKind::kPush && all[i].step >= end;
  }
  return seen;
}

}  // namespace

std::vector<OrderEntry> KeptOrder(const std::vector<OrderEntry>& all, Clock end,
                                  LeftOut* left_out) {
  std::map<std::tuple<WorkerId, Clock, uint32_t>, ListAtHand> lists;
  std::map<WorkerId, Clock> advanced;
  std::vector<bool> kept(all.size(), false);
  const auto drop = [&kept](std::optional<size_t>* place) {
    if (*place) kept[**place] = false;
    place->reset();
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const OrderEntry& entry = all[i];
    if (entry.step >= end) continue;
    if (entry.kind == OrderKind::kAdvance) {
      // A backup that leads after a loss may record an advance that the primary has recorded.
      const auto [last, first] = advanced.try_emplace(entry.worker, entry.step);
      kept[i] = first || entry.step > last->second;
      last->second = std::max(last->second, entry.step);
      continue;
    }
    ListAtHand& list = lists[{entry.worker, entry.step, entry.part}];
    if (list.pushed) {
      ++left_out->again;
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
  left_out->pushes += PushesSeen(all, kept, end);
  std::vector<OrderEntry> order;
  for (size_t i = 0; i < all.size(); ++i) {
    if (kept[i]) order.push_back(all[i]);
  }
  return order;
}

Clock ExactStep(const std::vector<std::vector<OrderEntry>>& orders, Clock begin, Clock end) {
  std::map<Clock, Clock> seen;  // By the step of pulls: the newest step whose push one had seen.
  for (const std::vector<OrderEntry>& order : orders) {
    Clock pushed = -1;
    for (const OrderEntry& entry : order) {
      if (entry.kind == OrderKind::kPush) pushed = std::max(pushed, entry.step);
      if (!IsPull(entry)) continue;
      Clock& newest = seen.try_emplace(entry.step, -1).first->second;
      newest = std::max(newest, pushed);
    }
  }
  Clock exact = begin, newest = -1;  // `newest` is that of all pulls before a step.
  for (const auto& [step, pushed] : seen) {
    if (step > end) break;
    if (newest < step) exact = step;
    newest = std::max(newest, pushed);
  }
  return exact;
}

Clock PushedTo(const std::vector<OrderEntry>& order, WorkerId worker, Clock begin) {
  std::vector<Clock> pushed;
  for (const OrderEntry& entry : order) {
    if (entry.kind == OrderKind::kPush && entry.worker == worker) pushed.push_back(entry.step);
  }
  std::ranges::sort(pushed);  // A push that was sent again may come behind the next.
  Clock reached = begin;
  for (const Clock step : pushed) reached += step == reached;
  return reached;
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
