// Assigns the factors of the number of workers to axes, one after the other.
#include <algorithm>
#include <limits>

#include "common/parallel/plan_graph.h"

namespace hdps {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// Returns the prime factors, the largest first.
std::vector<uint32_t> FactorsOf(uint32_t number) {
  std::vector<uint32_t> factors;
  for (uint32_t prime = 2; prime * prime <= number; ++prime) {
    for (; number % prime == 0; number /= prime) factors.push_back(prime);
  }
  if (number > 1) factors.push_back(number);
  std::ranges::reverse(factors);
  return factors;
}

// The axis that a factor goes to; null makes copies.
using Axis = uint32_t LayerSplit::*;
constexpr Axis kAxes[] = {&LayerSplit::examples, &LayerSplit::inputs, &LayerSplit::columns,
                          nullptr};

class Recursion {
 public:
  explicit Recursion(const PlanGraph& graph)
      : graph_(graph), edges_(EdgesOfNodes(graph)), dealt_(graph.nodes.size()) {}

  PlanChoice Run() {
    uint32_t left = graph_.workers;
    chosen_.assign(graph_.nodes.size(), 0);
    for (const uint32_t factor : FactorsOf(graph_.workers)) {
      if (left == graph_.workers) {
        DealTogether(factor, left);
      } else {
        for (size_t n = 0; n < graph_.nodes.size(); ++n) DealAlone(n, factor, left);
      }
      left /= factor;
    }
    return chosen_;
  }

 private:
  // A possible next assignment of a node: the resulting option, and the axis of the next factor.
  struct Candidate {
    uint32_t option;
    Axis axis;
  };

  std::vector<Candidate> CandidatesOf(size_t node, uint32_t left) const {
    const std::vector<PlanOption>& options = graph_.nodes[node].options;
    if (options.size() == 1) return {{0, nullptr}};
    std::vector<Candidate> found;
    for (const Axis axis : kAxes) {
      LayerSplit split = dealt_[node];
      if (axis != nullptr) split.*axis *= left;
      const auto place = std::ranges::find(options, split, &PlanOption::split);
      if (place == options.end()) continue;
      found.push_back({static_cast<uint32_t>(place - options.begin()), axis});
    }
    if (!found.empty()) return found;
    const auto cheapest = std::ranges::min_element(options, {}, &PlanOption::seconds);
    return {{static_cast<uint32_t>(cheapest - options.begin()), nullptr}};
  }

  void Take(size_t node, const Candidate& candidate, uint32_t factor) {
    chosen_[node] = candidate.option;
    if (candidate.axis != nullptr) dealt_[node].*candidate.axis *= factor;
  }

  // Assigns the factor to all nodes at once, each to the axis that is best if all that is left goes
  // there.
  void DealTogether(uint32_t factor, uint32_t left) {
    PlanGraph few;
    few.workers = graph_.workers;
    std::vector<std::vector<Candidate>> candidates;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      candidates.push_back(CandidatesOf(n, left));
      PlanNode& node = few.nodes.emplace_back();
      for (const Candidate& candidate : candidates.back()) {
        node.options.push_back(graph_.nodes[n].options[candidate.option]);
      }
    }
    for (const PlanEdge& edge : graph_.edges) {
      few.edges.push_back({edge.from, edge.to, [&](size_t a, size_t b) {
                             return edge.seconds(candidates[edge.from][a].option,
                                                 candidates[edge.to][b].option);
                           }});
    }
    const PlanChoice best = *DynamicProgramming(few, kAny);
    for (size_t n = 0; n < best.size(); ++n) Take(n, candidates[n][best[n]], factor);
  }

  // Assigns the factor to one node, with its neighbors as they are.
  void DealAlone(size_t n, uint32_t factor, uint32_t left) {
    const std::vector<Candidate> candidates = CandidatesOf(n, left);
    const Candidate* best = nullptr;
    double best_seconds = kAny;
    for (const Candidate& candidate : candidates) {
      double seconds = graph_.nodes[n].options[candidate.option].seconds;
      for (const auto& [other, edge] : edges_[n]) {
        seconds += EdgeSeconds(graph_.edges[edge], static_cast<uint32_t>(n), candidate.option,
                               chosen_[other]);
      }
      if (best != nullptr && seconds >= best_seconds) continue;
      best_seconds = seconds;
      best = &candidate;
    }
    Take(n, *best, factor);
  }

  const PlanGraph& graph_;
  const std::vector<std::vector<std::pair<uint32_t, uint32_t>>> edges_;
  PlanChoice chosen_;              // Option of each node if all that is left goes to its last axis.
  std::vector<LayerSplit> dealt_;  // Factors assigned to each node.
};

}  // namespace

std::optional<PlanChoice> RecursiveProgramming(const PlanGraph& graph, double bytes_max) {
  return UnderLimit(graph, bytes_max,
                    [](const PlanGraph& priced) { return Recursion(priced).Run(); });
}

}  // namespace hdps
