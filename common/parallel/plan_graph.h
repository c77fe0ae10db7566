// A graph whose nodes each have one of several options, and the searches for the choice that takes
// the least time under a limit of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/parallel/strategy.h"

namespace hdps {

struct PlanOption {
  LayerSplit split;
  double seconds = 0;
  double bytes = 0;  // Of one worker's memory; a whole number.
};

// Invariant: there is an option.
struct PlanNode {
  std::vector<PlanOption> options;
  bool pinned = false;  // Where sharding propagation begins; has one option.
};

// What an option of one node costs beside one of another. Two nodes may have several edges. Asked
// only for what a search looks at; the same each time.
struct PlanEdge {
  uint32_t from = 0, to = 0;
  std::function<double(size_t from_option, size_t to_option)> seconds;
};

struct PlanGraph {
  uint32_t workers = 1;
  std::vector<PlanNode> nodes;
  std::vector<PlanEdge> edges;  // Between nodes of the graph, no node with itself.
};

// An option of each node.
using PlanChoice = std::vector<uint32_t>;
double PlanSeconds(const PlanGraph& graph, const PlanChoice& choice);
double PlanBytes(const PlanGraph& graph, const PlanChoice& choice);
// What the choice with the least memory needs.
double LeastBytes(const PlanGraph& graph);

// Each: a choice with at most `bytes_max` of memory; none where there is none.

// The least seconds that there are: nodes are eliminated one after the other, the one with the
// smallest table first, as bucket elimination does (Dechter 1999); where every table would be too
// large, a node's options are tried one by one, those left out that cannot be better. Under a limit
// that the fastest choice breaks, tables keep all pairs of seconds and bytes of which none is
// better in both.
std::optional<PlanChoice> DynamicProgramming(const PlanGraph& graph, double bytes_max);

// Cuts the workers into their prime factors, from the largest, and gives every node one factor at a
// time, along the axis that would be best if all that is left of them went there: the first to all
// nodes together, the others one node after the other. Looks at four options a node and factor.
std::optional<PlanChoice> RecursiveProgramming(const PlanGraph& graph, double bytes_max);

// From the pinned nodes to their neighbours, breadth first, each at the least cost of its own and
// of its edges to those that have one already; then nodes move one at a time while that is better.
// Pinned nodes stay. Without pins from the node with the most memory, each of its options tried.
std::optional<PlanChoice> ShardingPropagation(const PlanGraph& graph, double bytes_max);

// What the searches share: for each node its edges, as (other node, edge).
std::vector<std::vector<std::pair<uint32_t, uint32_t>>> EdgesOfNodes(const PlanGraph& graph);
// Of an edge of `node`, with the options of this node and of the other.
double EdgeSeconds(const PlanEdge& edge, uint32_t node, uint32_t option, uint32_t other_option);

// A search that knows no limit, made to keep one: memory is given a price in seconds, as low as
// fits (Lagrange's multiplier).
using PlanSearch = std::function<PlanChoice(const PlanGraph&)>;
std::optional<PlanChoice> UnderLimit(const PlanGraph& graph, double bytes_max,
                                     const PlanSearch& search);

}  // namespace hdps
