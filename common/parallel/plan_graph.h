// A graph in which each node takes one of several options, and searches for the choice that takes
// the least time within a memory limit.
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
  double bytes = 0;  // Memory on one worker; a whole number.
};

// Invariant: there is at least one option.
struct PlanNode {
  std::vector<PlanOption> options;
  bool pinned = false;  // Sharding propagation begins here; has one option.
};

// The cost of a pair of options of two nodes. Two nodes may have several edges. `seconds` is called
// only for pairs that a search looks at, and must always return the same.
struct PlanEdge {
  uint32_t from = 0, to = 0;
  std::function<double(size_t from_option, size_t to_option)> seconds;
};

struct PlanGraph {
  uint32_t workers = 1;
  std::vector<PlanNode> nodes;
  std::vector<PlanEdge> edges;  // Between different nodes of the graph.
};

// One option for each node.
using PlanChoice = std::vector<uint32_t>;
double PlanSeconds(const PlanGraph& graph, const PlanChoice& choice);
double PlanBytes(const PlanGraph& graph, const PlanChoice& choice);
// Returns the memory of the choice that needs the least.
double LeastBytes(const PlanGraph& graph);

// The three searches return a choice with at most `bytes_max` of memory, or none if they find none.

// Finds the choice with the least seconds. Nodes are eliminated one after the other, the one with
// the smallest table first, as in bucket elimination (Dechter 1999). If every table would be too
// large, the options of one node are tried one by one, with branch and bound. If the fastest choice
// breaks the limit, tables keep all Pareto-optimal pairs of seconds and bytes.
std::optional<PlanChoice> DynamicProgramming(const PlanGraph& graph, double bytes_max);

// Splits the number of workers into prime factors, the largest first, and assigns each factor to an
// axis of every node: the axis that would be best if all remaining factors went there too. The
// first factor is assigned to all nodes together, the others to one node after the other. Looks at
// four options for each node and factor.
std::optional<PlanChoice> RecursiveProgramming(const PlanGraph& graph, double bytes_max);

// Spreads options from the pinned nodes to their neighbors, breadth first. Each node takes the
// option with the least cost of its own and of its edges to nodes that have one. Then single nodes
// change while that helps. Pinned nodes stay. Without pins, it starts at the node with the most
// memory and tries each of its options.
std::optional<PlanChoice> ShardingPropagation(const PlanGraph& graph, double bytes_max);

// The part that the searches share. Returns for each node its edges, as (other node, edge).
std::vector<std::vector<std::pair<uint32_t, uint32_t>>> EdgesOfNodes(const PlanGraph& graph);
// Returns the cost of an edge of `node` for options of this node and of the other.
double EdgeSeconds(const PlanEdge& edge, uint32_t node, uint32_t option, uint32_t other_option);

using PlanSearch = std::function<PlanChoice(const PlanGraph&)>;
// Makes a search without a memory limit respect one: memory gets a price in seconds (a Lagrange
// multiplier), the lowest for which the result fits.
std::optional<PlanChoice> UnderLimit(const PlanGraph& graph, double bytes_max,
                                     const PlanSearch& search);

}  // namespace hdps
