// Factors of the number of workers dealt to axes, one after the other.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "common/parallel/plan_graph.h"

namespace hdps {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Prime factors, the largest first.
std::vector<uint32_t> FactorsOf(uint32_t number) {
  std::vector<uint32_t> factors;
  for (uint32_t prime = 2; prime * prime <= number; ++prime) {
    for (; number % prime == 0; number /= prime) factors.push_back(prime);
  }
  if (number > 1) factors.push_back(number);
  std::ranges::reverse(factors);
  return factors;
}

class Recursion {
 public:
  explicit Recursion(const PlanGraph& graph) : graph_(graph), edges_(EdgesOfNodes(graph)) {
    for (const PlanNode& node : graph.nodes) {
      auto& places = places_.emplace_back();
      for (uint32_t o = 0; o < node.options.size(); ++o) {
        places.emplace(Key(node.options[o].split), o);
      }
    }
  }

  PlanChoice Run() {
    const auto count = graph_.nodes.size();
    chosen_.assign(count, 0);
    for (size_t n = 0; n < count; ++n) chosen_[n] = Cheapest(n);
    dealt_.assign(count, LayerSplit());
    uint32_t left = graph_.workers;
    for (const uint32_t factor : FactorsOf(graph_.workers)) {
      for (uint32_t n = 0; n < count; ++n) Deal(n, factor, left);
      left /= factor;
    }
    // Once more, from the last to the first: what came later may have changed what is best.
    left = graph_.workers;
    dealt_.assign(count, LayerSplit());
    for (const uint32_t factor : FactorsOf(graph_.workers)) {
      for (size_t n = count; n-- > 0;) Deal(static_cast<uint32_t>(n), factor, left);
      left /= factor;
    }
    return chosen_;
  }

 private:
  static std::tuple<uint32_t, uint32_t, uint32_t> Key(const LayerSplit& split) {
    return {split.examples, split.inputs, split.columns};
  }

  uint32_t Cheapest(size_t node) const {
    const auto& options = graph_.nodes[node].options;
    return static_cast<uint32_t>(std::ranges::min_element(options, {}, &PlanOption::seconds) -
                                 options.begin());
  }

  double Seconds(uint32_t node, uint32_t option) const {
    double seconds = graph_.nodes[node].options[option].seconds;
    for (const auto& [other, edge] : edges_[node]) {
      seconds += EdgeSeconds(graph_.edges[edge], node, option, chosen_[other]);
    }
    return seconds;
  }

  // Gives the node's next factor to the axis that is best where all that is left goes there; the
  // last axis are copies.
  void Deal(uint32_t node, uint32_t factor, uint32_t left) {
    if (graph_.nodes[node].options.size() == 1) return;
    LayerSplit& dealt = dealt_[node];
    const std::array<uint32_t LayerSplit::*, 3> axes = {&LayerSplit::examples, &LayerSplit::inputs,
                                                        &LayerSplit::columns};
    double best = kNever;
    uint32_t LayerSplit::*best_axis = nullptr;
    for (size_t a = 0; a <= axes.size(); ++a) {
      LayerSplit split = dealt;
      if (a < axes.size()) split.*axes[a] *= left;
      const auto found = places_[node].find(Key(split));
      if (found == places_[node].end()) continue;
      const double seconds = Seconds(node, found->second);
      if (seconds >= best) continue;
      best = seconds;
      best_axis = a < axes.size() ? axes[a] : nullptr;
      chosen_[node] = found->second;
    }
    if (best_axis != nullptr) dealt.*best_axis *= factor;
  }

  const PlanGraph& graph_;
  const std::vector<std::vector<std::pair<uint32_t, uint32_t>>> edges_;
  std::vector<std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t>> places_;
  PlanChoice chosen_;              // Of each node, what it is as if all were dealt.
  std::vector<LayerSplit> dealt_;  // The factors that it has been dealt.
};

}  // namespace

std::optional<PlanChoice> RecursiveProgramming(const PlanGraph& graph, double bytes_max) {
  return UnderLimit(graph, bytes_max,
                    [](const PlanGraph& priced) { return Recursion(priced).Run(); });
}

}  // namespace hdps
