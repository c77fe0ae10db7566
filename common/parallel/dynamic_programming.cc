// Finds the best choice by elimination of nodes, with traces of how each table entry was made.
#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "common/parallel/plan_graph.h"

namespace hdps {
namespace {

constexpr uint32_t kNothing = UINT32_MAX;
constexpr double kNever = std::numeric_limits<double>::infinity();
// Limit on the entries that one elimination looks at. Beyond it, a node's options are tried one by
// one.
constexpr double kTableMax = 5e6;

// Seconds and bytes of the eliminated nodes, above the least that each part can have, and the trace
// of their options.
struct Entry {
  double seconds = 0, bytes = 0;
  uint32_t trace = kNothing;
};
using Entries = std::vector<Entry>;  // Sorted by seconds; Pareto-optimal.

// A function of the options of some nodes.
struct Factor {
  std::vector<uint32_t> scope;  // Nodes, in ascending order.
  std::vector<Entries> table;   // The last node of the scope varies fastest.
};

class Eliminator {
 public:
  // If `limited`, entries distinguish bytes up to bytes_max; otherwise only the least seconds
  // count.
  Eliminator(const PlanGraph& graph, bool limited, double bytes_max, double seconds_max)
      : graph_(graph),
        limited_(limited),
        bytes_max_(bytes_max),
        seconds_max_(seconds_max),
        slack_(1e-9 * seconds_max) {}

  std::optional<PlanChoice> Run() {
    std::vector<Factor> factors;
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) factors.push_back(NodeFactor(n));
    for (const PlanEdge& edge : graph_.edges) factors.push_back(EdgeFactor(edge));
    std::vector<uint32_t> left(graph_.nodes.size());
    for (uint32_t n = 0; n < left.size(); ++n) left[n] = n;
    const Entries found = Solve(std::move(factors), std::move(left));
    if (found.empty() || found[0].seconds == kNever) return std::nullopt;
    PlanChoice choice(graph_.nodes.size(), 0);
    Follow(found[0].trace, &choice);
    return choice;
  }

 private:
  struct Trace {
    uint32_t left, right;  // Other traces, or kNothing.
    uint32_t node, option;
  };

  size_t Options(uint32_t node) const { return graph_.nodes[node].options.size(); }

  uint32_t Remember(uint32_t left, uint32_t right, uint32_t node, uint32_t option) {
    traces_.push_back({left, right, node, option});
    return static_cast<uint32_t>(traces_.size() - 1);
  }

  void Follow(uint32_t trace, PlanChoice* choice) const {
    std::vector<uint32_t> open = {trace};
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (at == kNothing) continue;
      const Trace& here = traces_[at];
      if (here.node != kNothing) (*choice)[here.node] = here.option;
      open.push_back(here.left);
      open.push_back(here.right);
    }
  }

  Factor NodeFactor(uint32_t node) {
    const std::vector<PlanOption>& options = graph_.nodes[node].options;
    const double seconds = std::ranges::min_element(options, {}, &PlanOption::seconds)->seconds;
    const double bytes = std::ranges::min_element(options, {}, &PlanOption::bytes)->bytes;
    seconds_max_ -= seconds;
    bytes_max_ -= bytes;
    Factor factor{{node}, {}};
    for (uint32_t o = 0; o < options.size(); ++o) {
      factor.table.push_back({{options[o].seconds - seconds, options[o].bytes - bytes,
                               Remember(kNothing, kNothing, node, o)}});
    }
    return factor;
  }

  Factor EdgeFactor(const PlanEdge& edge) {
    const uint32_t low = std::min(edge.from, edge.to), high = std::max(edge.from, edge.to);
    Factor factor{{low, high}, {}};
    double least = kNever;
    for (uint32_t i = 0; i < Options(low); ++i) {
      for (uint32_t j = 0; j < Options(high); ++j) {
        const double seconds = EdgeSeconds(edge, low, i, j);
        least = std::min(least, seconds);
        factor.table.push_back({{seconds, 0, kNothing}});
      }
    }
    for (Entries& entries : factor.table) entries[0].seconds -= least;
    seconds_max_ -= least;
    return factor;
  }

  // Sorts the entries, and removes those that another one dominates or that exceed a limit.
  void Prune(Entries* entries) const {
    std::erase_if(*entries, [&](const Entry& entry) {
      return entry.seconds > seconds_max_ + slack_ || (limited_ && entry.bytes > bytes_max_);
    });
    std::ranges::stable_sort(*entries, [](const Entry& a, const Entry& b) {
      return std::tie(a.seconds, a.bytes) < std::tie(b.seconds, b.bytes);
    });
    size_t kept = 0;
    for (size_t i = 0; i < entries->size(); ++i) {
      if (kept > 0 && (!limited_ || (*entries)[i].bytes >= (*entries)[kept - 1].bytes)) continue;
      (*entries)[kept++] = (*entries)[i];
    }
    entries->resize(kept);
  }

  Entries Sum(const Entries& a, const Entries& b) {
    Entries sums;
    for (const Entry& x : a) {
      for (const Entry& y : b) {
        const uint32_t trace = x.trace == kNothing   ? y.trace
                               : y.trace == kNothing ? x.trace
                                                     : Remember(x.trace, y.trace, kNothing, 0);
        sums.push_back({x.seconds + y.seconds, x.bytes + y.bytes, trace});
      }
    }
    if (sums.size() > 1) Prune(&sums);
    return sums;
  }

  // Returns the index in a factor's table of the given options.
  static size_t PlaceIn(const Factor& factor, const PlanGraph& graph,
                        const std::vector<uint32_t>& options) {
    size_t place = 0;
    for (const uint32_t node : factor.scope) {
      place = place * graph.nodes[node].options.size() + options[node];
    }
    return place;
  }

  static bool Has(const Factor& factor, uint32_t node) {
    return std::ranges::binary_search(factor.scope, node);
  }

  // The factors, also by node.
  struct Pool {
    std::vector<Factor> factors;                 // Factors that were used have an empty table.
    std::vector<std::vector<uint32_t>> of_node;  // Indices in `factors`, including used ones.
  };

  void Add(Factor factor, Pool* pool) const {
    for (const uint32_t node : factor.scope) {
      pool->of_node[node].push_back(static_cast<uint32_t>(pool->factors.size()));
    }
    pool->factors.push_back(std::move(factor));
  }

  // Returns the other nodes that share a factor with `node`.
  static std::vector<uint32_t> Neighbours(const Pool& pool, uint32_t node) {
    std::vector<uint32_t> found;
    for (const uint32_t at : pool.of_node[node]) {
      const Factor& factor = pool.factors[at];
      if (factor.table.empty()) continue;
      found.insert(found.end(), factor.scope.begin(), factor.scope.end());
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::erase(found, node);
    return found;
  }

  double TableSize(const std::vector<uint32_t>& scope) const {
    double size = 1;
    for (const uint32_t node : scope) size *= static_cast<double>(Options(node));
    return size;
  }

  // Eliminates the node and adds a factor over its neighbors, which are returned.
  std::vector<uint32_t> Eliminate(uint32_t node, Pool* pool) {
    Factor result{Neighbours(*pool, node), {}};
    std::vector<Factor> with;
    for (const uint32_t at : pool->of_node[node]) {
      Factor& factor = pool->factors[at];
      if (!factor.table.empty()) with.push_back(std::exchange(factor, {}));
    }
    std::vector<uint32_t> options(graph_.nodes.size(), 0);
    const auto count = static_cast<size_t>(TableSize(result.scope));
    result.table.reserve(count);
    for (size_t at = 0; at < count; ++at) {
      size_t rest = at;
      for (size_t s = result.scope.size(); s-- > 0;) {
        const size_t radix = Options(result.scope[s]);
        options[result.scope[s]] = static_cast<uint32_t>(rest % radix);
        rest /= radix;
      }
      result.table.push_back(Best(with, node, &options));
    }
    std::vector<uint32_t> neighbours = result.scope;
    Add(std::move(result), pool);
    return neighbours;
  }

  // Returns the entries over all options of the node, with the other nodes' options fixed.
  Entries Best(const std::vector<Factor>& with, uint32_t node, std::vector<uint32_t>* options) {
    if (!limited_) return BestAlone(with, node, options);
    Entries all;
    for (uint32_t o = 0; o < Options(node); ++o) {
      (*options)[node] = o;
      Entries sum = {{}};
      for (const Factor& factor : with) {
        sum = Sum(sum, factor.table[PlaceIn(factor, graph_, *options)]);
      }
      all.insert(all.end(), sum.begin(), sum.end());
    }
    Prune(&all);
    return all;
  }

  // The same for the case of at most one entry each: only the best option leaves a trace.
  Entries BestAlone(const std::vector<Factor>& with, uint32_t node,
                    std::vector<uint32_t>* options) {
    double best = kNever;
    uint32_t best_option = kNothing;
    for (uint32_t o = 0; o < Options(node); ++o) {
      (*options)[node] = o;
      double seconds = 0;
      for (const Factor& factor : with) {
        const Entries& entries = factor.table[PlaceIn(factor, graph_, *options)];
        seconds += entries.empty() ? kNever : entries[0].seconds;
      }
      if (seconds < best) {
        best = seconds;
        best_option = o;
      }
    }
    if (best_option == kNothing) return {};
    (*options)[node] = best_option;
    Entry entry{best, 0, kNothing};
    for (const Factor& factor : with) {
      const uint32_t trace = factor.table[PlaceIn(factor, graph_, *options)][0].trace;
      if (trace == kNothing) continue;
      entry.trace = entry.trace == kNothing ? trace : Remember(entry.trace, trace, kNothing, 0);
    }
    return {entry};
  }

  // Eliminates all nodes that are left and returns the entries of the best choices.
  Entries Solve(std::vector<Factor> factors, std::vector<uint32_t> left) {
    Pool pool;
    pool.of_node.resize(graph_.nodes.size());
    for (Factor& factor : factors) Add(std::move(factor), &pool);
    std::vector<double> sizes(graph_.nodes.size());
    const auto measure = [&](uint32_t node) {
      sizes[node] = TableSize(Neighbours(pool, node)) * static_cast<double>(Options(node));
    };
    std::ranges::for_each(left, measure);
    while (!left.empty()) {
      const auto smallest =
          std::ranges::min_element(left, {}, [&](uint32_t node) { return sizes[node]; });
      if (sizes[*smallest] > kTableMax) return TryEach(pool, std::move(left));
      const uint32_t node = *smallest;
      left.erase(smallest);
      std::ranges::for_each(Eliminate(node, &pool), measure);
    }
    Entries sum = {{}};
    for (const Factor& factor : pool.factors) {
      if (!factor.table.empty()) sum = Sum(sum, factor.table[0]);
    }
    return sum;
  }

  // Solves once for each option of the node with the most neighbors.
  Entries TryEach(const Pool& pool, std::vector<uint32_t> left) {
    const auto most = std::ranges::max_element(
        left, {}, [&](uint32_t node) { return Neighbours(pool, node).size(); });
    const uint32_t node = *most;
    left.erase(most);
    Entries all;
    for (uint32_t o = 0; o < Options(node); ++o) {
      std::vector<Factor> fixed;
      double least = 0;
      for (const Factor& factor : pool.factors) {
        if (factor.table.empty()) continue;
        fixed.push_back(Has(factor, node) ? Restricted(factor, node, o) : factor);
        double of_factor = kNever;
        for (const Entries& entries : fixed.back().table) {
          if (!entries.empty()) of_factor = std::min(of_factor, entries[0].seconds);
        }
        least += of_factor;
      }
      // Bound: it cannot beat the best known choice.
      if (least > seconds_max_ + slack_) continue;
      Entries found = Solve(std::move(fixed), left);
      if (!limited_ && !found.empty()) seconds_max_ = std::min(seconds_max_, found[0].seconds);
      all.insert(all.end(), found.begin(), found.end());
    }
    Prune(&all);
    return all;
  }

  Factor Restricted(const Factor& factor, uint32_t node, uint32_t option) const {
    Factor less{factor.scope, {}};
    std::erase(less.scope, node);
    size_t behind = 1;
    bool passed = false;
    for (const uint32_t other : factor.scope) {
      if (passed) behind *= Options(other);
      passed = passed || other == node;
    }
    for (size_t i = 0; i < factor.table.size(); ++i) {
      if (i / behind % Options(node) == option) less.table.push_back(factor.table[i]);
    }
    return less;
  }

  const PlanGraph& graph_;
  const bool limited_;
  double bytes_max_, seconds_max_;  // Above the least that each part can have.
  const double slack_;              // In seconds, for rounding: sums in another order differ.
  std::vector<Trace> traces_;
};

PlanChoice Fastest(const PlanGraph& graph) {
  const auto choice = Eliminator(graph, false, kNever, kNever).Run();
  CHECK(choice.has_value()) << "an edge whose costs are all infinite";
  return *choice;
}

}  // namespace

std::optional<PlanChoice> DynamicProgramming(const PlanGraph& graph, double bytes_max) {
  const PlanChoice fastest = Fastest(graph);
  if (PlanBytes(graph, fastest) <= bytes_max) return fastest;
  // A choice that fits, by a price on memory, gives an upper bound.
  const auto priced = UnderLimit(graph, bytes_max, Fastest);
  if (!priced.has_value()) return std::nullopt;
  const auto best = Eliminator(graph, true, bytes_max, PlanSeconds(graph, *priced)).Run();
  return best.has_value() ? best : priced;
}

}  // namespace hdps
