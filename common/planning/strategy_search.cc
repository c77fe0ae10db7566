// Propagation and search over the plan graph of a job.
#include "common/planning/strategy_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "common/base/byte_count.h"
#include "common/job/spec/parallel_spec.h"

namespace hdps {
namespace {

constexpr double kAnyBytes = std::numeric_limits<double>::infinity();

// Fixes the split of a layer, and of all layers in its node, as chosen.
void Fix(const JobPlanGraph& plan, const PlanChoice& choice, size_t layer,
         StrategyChoices* choices) {
  const uint32_t node = plan.node_of[layer];
  for (size_t i = 0; i < plan.node_of.size(); ++i) {
    if (plan.node_of[i] != node) continue;
    choices->splits[i] = {plan.graph.nodes[node].options[choice[node]].split};
    choices->pinned[i] = true;
  }
}

// The cost that a block's level minimizes: 0 counts what moves between workers, 1 counts memory, 2
// counts everything. A small part of the total breaks ties.
struct LevelCost {
  int level;
  double OfLayer(const LayerCost& cost) const {
    constexpr double kLittle = 1e-6, kByteSeconds = 1e-3;
    if (level == 0) return cost.reduce_seconds + kLittle * cost.seconds();
    if (level == 1) return kByteSeconds * cost.memory_bytes + kLittle * cost.seconds();
    return cost.seconds();
  }
};

// Derives the layers of blocks. Layers around them count only if they are fixed.
void DeriveBlocks(const JobFacts& facts, uint32_t workers, const StrategyCost& cost,
                  StrategyChoices* choices) {
  for (int level = 0; level <= 2; ++level) {
    if (std::ranges::find(choices->level, level) == choices->level.end()) continue;
    const LevelCost of{level};
    JobPlanGraph plan = PlanGraphOf(facts, *choices, workers, cost);
    std::vector<bool> inside(plan.graph.nodes.size(), false);
    for (size_t i = 0; i < facts.layers.size(); ++i) {
      if (choices->level[i] == level) inside[plan.node_of[i]] = true;
    }
    for (PlanNode& node : plan.graph.nodes) {
      for (PlanOption& option : node.options) option.seconds = 0;
    }
    for (size_t i = 0; i < facts.layers.size(); ++i) {
      for (PlanOption& option : plan.graph.nodes[plan.node_of[i]].options) {
        option.seconds += of.OfLayer(cost.OfLayer(i, option.split));
      }
    }
    std::erase_if(plan.graph.edges, [&](const PlanEdge& edge) {
      const auto open = [&](uint32_t node) {
        return !inside[node] && plan.graph.nodes[node].options.size() > 1;
      };
      return open(edge.from) || open(edge.to) || (!inside[edge.from] && !inside[edge.to]);
    });
    const auto choice = ShardingPropagation(plan.graph, kAnyBytes);
    for (size_t i = 0; i < facts.layers.size(); ++i) {
      if (choices->level[i] == level) Fix(plan, *choice, i, choices);
    }
  }
}

// Makes the least of the options cost nothing, because the searches count on seconds of at least 0.
PlanNode NodeOf(const TableChoices& table) {
  const double least = std::ranges::min_element(table.options, {}, &TableOption::seconds)->seconds;
  PlanNode node;
  for (const TableOption& option : table.options) {
    node.options.push_back({{}, option.seconds - least, option.bytes});
  }
  return node;
}

Status NothingFits(const ParallelSpec& parallel, const PlanGraph& graph) {
  return {Code::kInvalidArgument,
          "parallel.worker_memory_limit: it is " + ShowByteCount(parallel.worker_memory_limit) +
              ", and of all strategies for " + std::to_string(graph.workers) +
              " workers the one that needs least takes " +
              ShowByteCount(static_cast<uint64_t>(LeastBytes(graph))) +
              " of each; raise it, start more workers, or make the model or the batch smaller"};
}

}  // namespace

JobPlanGraph PlanGraphOf(const JobFacts& facts, const StrategyChoices& choices, uint32_t workers,
                         const StrategyCost& cost) {
  JobPlanGraph plan;
  plan.graph.workers = workers;
  std::map<std::string, uint32_t> node_of_table;
  for (size_t i = 0; i < facts.layers.size(); ++i) {
    const auto next = static_cast<uint32_t>(plan.graph.nodes.size());
    const std::string& table = facts.layers[i].table;
    const uint32_t node = table.empty() ? next : node_of_table.emplace(table, next).first->second;
    plan.node_of.push_back(node);
    if (node == next) {
      PlanNode& made = plan.graph.nodes.emplace_back();
      for (const LayerSplit& split : choices.splits[i]) made.options.push_back({.split = split});
    }
    PlanNode& at = plan.graph.nodes[node];
    at.pinned = at.pinned || choices.pinned[i];
    for (PlanOption& option : at.options) {
      const LayerCost of = cost.OfLayer(i, option.split);
      option.seconds += of.seconds();
      option.bytes += of.memory_bytes;
      if (i + 1 == facts.layers.size()) {
        option.seconds += cost.OfConversion(i, option.split, kLoss, {}).seconds;
      }
    }
    for (const uint32_t input : facts.layers[i].inputs) {
      const uint32_t from = plan.node_of[input];
      const auto seconds = [&cost, input, i, from_splits = choices.splits[input],
                            to_splits = choices.splits[i]](size_t a, size_t b) {
        return cost.OfConversion(input, from_splits[a], i, to_splits[b]).seconds;
      };
      plan.graph.edges.push_back({from, node, seconds});
    }
  }
  return plan;
}

Result<FoundStrategy> SearchStrategy(const ParallelSpec& parallel, const JobFacts& facts,
                                     const StrategyChoices& choices, uint32_t workers,
                                     const std::vector<TableChoices>& tables) {
  const StrategyCost cost(facts, workers, parallel.rates);
  StrategyChoices left = choices;
  DeriveBlocks(facts, workers, cost, &left);
  const bool pins = std::ranges::find(left.pinned, true) != left.pinned.end();
  if (parallel.parallel_mode == ParallelMode::kSemiAuto && !pins) {
    return FoundStrategy{Strategy::DataParallel(workers, facts.layers.size()), {}};
  }
  JobPlanGraph plan = PlanGraphOf(facts, left, workers, cost);
  const size_t first_table = plan.graph.nodes.size();
  for (const TableChoices& table : tables) plan.graph.nodes.push_back(NodeOf(table));
  const double bytes_max = parallel.worker_memory_limit == 0
                               ? kAnyBytes
                               : static_cast<double>(parallel.worker_memory_limit);
  std::optional<PlanChoice> choice;
  if (!tables.empty()) {
    choice = DynamicProgramming(plan.graph, bytes_max);
  } else if (parallel.parallel_mode != ParallelMode::kAuto ||
             parallel.search_mode == SearchMode::kPropagation) {
    choice = ShardingPropagation(plan.graph, bytes_max);
  } else if (parallel.search_mode == SearchMode::kRecursiveProgramming) {
    choice = RecursiveProgramming(plan.graph, bytes_max);
  } else {
    choice = DynamicProgramming(plan.graph, bytes_max);
  }
  if (!choice.has_value()) return NothingFits(parallel, plan.graph);
  FoundStrategy found{{workers, {}}, {choice->begin() + ptrdiff_t(first_table), choice->end()}};
  for (const uint32_t node : plan.node_of) {
    found.strategy.layers.push_back(plan.graph.nodes[node].options[(*choice)[node]].split);
  }
  return found;
}

}  // namespace hdps
