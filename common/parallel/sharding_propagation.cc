// Spreads options breadth first from the pinned nodes.
#include <algorithm>
#include <deque>
#include <limits>

#include "common/parallel/plan_graph.h"

namespace hdps {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint32_t kOpen = UINT32_MAX;

class Propagation {
 public:
  explicit Propagation(const PlanGraph& graph) : graph_(graph), edges_(EdgesOfNodes(graph)) {}

  PlanChoice Run() {
    std::vector<uint32_t> starts;
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].pinned) starts.push_back(n);
    }
    if (!starts.empty()) {
      Spread(starts, std::vector<uint32_t>(starts.size(), 0));
      const PlanChoice spread = chosen_;
      // All nodes may be best with their first option, which they would have without pins.
      chosen_.assign(graph_.nodes.size(), 0);
      Settle();
      return PlanSeconds(graph_, spread) <= PlanSeconds(graph_, chosen_) ? spread : chosen_;
    }
    // Without pins, tries each option of the node with the most memory as if it were pinned.
    uint32_t heaviest = 0;
    double bytes = -1;
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto& options = graph_.nodes[n].options;
      const double most = std::ranges::max_element(options, {}, &PlanOption::bytes)->bytes;
      if (most <= bytes) continue;
      bytes = most;
      heaviest = n;
    }
    PlanChoice best;
    double best_seconds = kNever;
    for (uint32_t o = 0; o < graph_.nodes[heaviest].options.size(); ++o) {
      Spread({heaviest}, {o});
      const double seconds = PlanSeconds(graph_, chosen_);
      if (!best.empty() && seconds >= best_seconds) continue;
      best_seconds = seconds;
      best = chosen_;
    }
    return best;
  }

 private:
  void Spread(const std::vector<uint32_t>& starts, const std::vector<uint32_t>& options) {
    chosen_.assign(graph_.nodes.size(), kOpen);
    std::deque<uint32_t> reached;
    std::vector<bool> seen(graph_.nodes.size(), false);
    order_.clear();
    const auto reach = [&](uint32_t node) {
      if (seen[node]) return;
      seen[node] = true;
      reached.push_back(node);
    };
    for (size_t s = 0; s < starts.size(); ++s) {
      chosen_[starts[s]] = options[s];
      reach(starts[s]);
    }
    for (uint32_t next = 0; next < graph_.nodes.size(); ++next) {
      // When nothing more is reachable, continues in a part of the graph without a pin.
      for (; !reached.empty(); reached.pop_front()) {
        const uint32_t node = reached.front();
        order_.push_back(node);
        if (chosen_[node] == kOpen) chosen_[node] = Best(node);
        for (const auto& [other, edge] : edges_[node]) reach(other);
      }
      reach(next);
    }
    for (; !reached.empty(); reached.pop_front()) {
      chosen_[reached.front()] = Best(reached.front());
      order_.push_back(reached.front());
    }
    Settle();
  }

  // Returns the option with the least cost of its own and of its edges. An edge to a neighbor
  // without an option counts with the cheapest option there.
  uint32_t Best(uint32_t node) const {
    uint32_t best = 0;
    double best_seconds = kNever;
    for (uint32_t o = 0; o < graph_.nodes[node].options.size(); ++o) {
      const double seconds = Seconds(node, o);
      if (seconds >= best_seconds) continue;
      best_seconds = seconds;
      best = o;
    }
    return best;
  }

  double Seconds(uint32_t node, uint32_t option) const {
    double seconds = graph_.nodes[node].options[option].seconds;
    for (const auto& [other, edge] : edges_[node]) {
      if (chosen_[other] != kOpen) {
        seconds += EdgeSeconds(graph_.edges[edge], node, option, chosen_[other]);
        continue;
      }
      const std::vector<PlanOption>& others = graph_.nodes[other].options;
      double least = kNever;
      for (uint32_t p = 0; p < others.size(); ++p) {
        least =
            std::min(least, others[p].seconds + EdgeSeconds(graph_.edges[edge], node, option, p));
      }
      seconds += least;
    }
    return seconds;
  }

  // Changes nodes that are not pinned, alone or with one neighbor, while that helps.
  void Settle() {
    constexpr int kSweepsMax = 50;
    for (int sweep = 0; sweep < kSweepsMax; ++sweep) {
      bool moved = false;
      for (const uint32_t node : order_) moved = MoveWithNeighbour(node) || moved;
      if (!moved) return;
    }
  }

  bool MoveWithNeighbour(uint32_t node) {
    if (graph_.nodes[node].options.size() == 1) return false;
    const uint32_t was = chosen_[node];
    uint32_t best = was, best_other = kOpen, best_option = 0;
    double best_gain = 1e-12 * Seconds(node, was);
    const double before = Seconds(node, was);
    for (uint32_t o = 0; o < graph_.nodes[node].options.size(); ++o) {
      chosen_[node] = was;
      const double alone = before - Seconds(node, o);
      if (o != was && alone > best_gain) {
        best_gain = alone;
        best = o;
        best_other = kOpen;
      }
      for (const auto& [other, edge] : edges_[node]) {
        if (graph_.nodes[other].options.size() == 1) continue;
        const uint32_t other_was = chosen_[other];
        chosen_[node] = o;
        const double other_before = Seconds(other, other_was);
        const uint32_t other_best = Best(other);
        const double gain = alone + other_before - Seconds(other, other_best);
        chosen_[node] = was;
        if (gain <= best_gain) continue;
        best_gain = gain;
        best = o;
        best_other = other;
        best_option = other_best;
      }
    }
    chosen_[node] = best;
    if (best_other != kOpen) chosen_[best_other] = best_option;
    return best != was || best_other != kOpen;
  }

  const PlanGraph& graph_;
  const std::vector<std::vector<std::pair<uint32_t, uint32_t>>> edges_;
  PlanChoice chosen_;
  std::vector<uint32_t> order_;
};

}  // namespace

std::optional<PlanChoice> ShardingPropagation(const PlanGraph& graph, double bytes_max) {
  return UnderLimit(graph, bytes_max,
                    [](const PlanGraph& priced) { return Propagation(priced).Run(); });
}

}  // namespace hdps
