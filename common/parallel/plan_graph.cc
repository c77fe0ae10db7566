// Sums over a choice, and searches with a price on memory.
#include "common/parallel/plan_graph.h"

#include <algorithm>

namespace hdps {

double PlanSeconds(const PlanGraph& graph, const PlanChoice& choice) {
  double seconds = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    seconds += graph.nodes[n].options[choice[n]].seconds;
  }
  for (const PlanEdge& edge : graph.edges) {
    seconds += edge.seconds(choice[edge.from], choice[edge.to]);
  }
  return seconds;
}

double PlanBytes(const PlanGraph& graph, const PlanChoice& choice) {
  double bytes = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) bytes += graph.nodes[n].options[choice[n]].bytes;
  return bytes;
}

namespace {

PlanChoice LeastChoice(const PlanGraph& graph) {
  PlanChoice choice;
  for (const PlanNode& node : graph.nodes) {
    const auto least = std::ranges::min_element(node.options, {}, &PlanOption::bytes);
    choice.push_back(static_cast<uint32_t>(least - node.options.begin()));
  }
  return choice;
}

}  // namespace

double LeastBytes(const PlanGraph& graph) { return PlanBytes(graph, LeastChoice(graph)); }

std::vector<std::vector<std::pair<uint32_t, uint32_t>>> EdgesOfNodes(const PlanGraph& graph) {
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> of(graph.nodes.size());
  for (uint32_t e = 0; e < graph.edges.size(); ++e) {
    of[graph.edges[e].from].emplace_back(graph.edges[e].to, e);
    of[graph.edges[e].to].emplace_back(graph.edges[e].from, e);
  }
  return of;
}

double EdgeSeconds(const PlanEdge& edge, uint32_t node, uint32_t option, uint32_t other_option) {
  return edge.from == node ? edge.seconds(option, other_option)
                           : edge.seconds(other_option, option);
}

std::optional<PlanChoice> UnderLimit(const PlanGraph& graph, double bytes_max,
                                     const PlanSearch& search) {
  PlanChoice choice = search(graph);
  if (PlanBytes(graph, choice) <= bytes_max) return choice;
  PlanChoice best = LeastChoice(graph);
  if (PlanBytes(graph, best) > bytes_max) return std::nullopt;
  double best_seconds = PlanSeconds(graph, best);
  PlanGraph priced = graph;
  const auto fits_at = [&](double price) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (size_t o = 0; o < graph.nodes[n].options.size(); ++o) {
        const PlanOption& option = graph.nodes[n].options[o];
        priced.nodes[n].options[o].seconds = option.seconds + price * option.bytes;
      }
    }
    const PlanChoice found = search(priced);
    if (PlanBytes(graph, found) > bytes_max) return false;
    if (const double seconds = PlanSeconds(graph, found); seconds < best_seconds) {
      best_seconds = seconds;
      best = found;
    }
    return true;
  };
  // Starts at the price at which all memory costs as much as the step, and searches up and down.
  double price = PlanSeconds(graph, choice) / std::max(PlanBytes(graph, choice), 1.0);
  constexpr int kDoublings = 24, kHalvings = 12;
  double too_low = 0;
  for (int i = 0; i < kDoublings && !fits_at(price); ++i) {
    too_low = price;
    price *= 2;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (too_low + price) / 2;
    (fits_at(middle) ? price : too_low) = middle;
  }
  return best;
}

}  // namespace hdps
