// Tests the searches against exhaustive ones, on small graphs, random ones and those of recipes.
#include "common/planning/strategy_search.h"

#include <gmock/gmock.h>

#include <cmath>
#include <ctime>
#include <limits>

#include "common/base/hash.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/strategy_of_job.h"
#include "tests/common/planning/planning_samples.h"

namespace hdps {
namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// Random numbers that are the same everywhere.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  double Uniform() {
    return static_cast<double>(MixBits(++state_ * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
  }
  size_t Below(size_t count) { return static_cast<size_t>(Uniform() * static_cast<double>(count)); }

 private:
  uint64_t state_;
};

// Tabulates the costs of edges.
void Tabulate(PlanGraph* graph) {
  for (PlanEdge& edge : graph->edges) {
    const size_t count = graph->nodes[edge.to].options.size();
    std::vector<double> seconds;
    for (size_t a = 0; a < graph->nodes[edge.from].options.size(); ++a) {
      for (size_t b = 0; b < count; ++b) seconds.push_back(edge.seconds(a, b));
    }
    edge.seconds = [seconds, count](size_t a, size_t b) { return seconds[a * count + b]; };
  }
}

// Returns the least seconds of all choices that fit; kAny: none does.
double BruteForce(PlanGraph graph, double bytes_max) {
  Tabulate(&graph);
  PlanChoice choice(graph.nodes.size(), 0);
  double best = kAny;
  for (;;) {
    if (PlanBytes(graph, choice) <= bytes_max) best = std::min(best, PlanSeconds(graph, choice));
    size_t n = 0;
    while (n < choice.size() && ++choice[n] == graph.nodes[n].options.size()) choice[n++] = 0;
    if (n == choice.size()) return best;
  }
}

// Returns a graph of random costs in which every node reads one earlier node, some two.
PlanGraph RandomGraph(uint64_t seed, size_t nodes, size_t options) {
  Numbers numbers(seed);
  PlanGraph graph;
  graph.workers = 4;
  for (size_t n = 0; n < nodes; ++n) {
    PlanNode& node = graph.nodes.emplace_back();
    const size_t count = 1 + numbers.Below(options);
    for (size_t o = 0; o < count; ++o) {
      node.options.push_back({{static_cast<uint32_t>(o + 1)},
                              numbers.Uniform(),
                              std::floor(numbers.Uniform() * 1000)});
    }
    const size_t inputs = n == 0 ? 0 : 1 + numbers.Below(std::min<size_t>(n, 2));
    for (size_t i = 0; i < inputs; ++i) {
      const auto from = static_cast<uint32_t>(numbers.Below(n));
      const uint64_t salt = MixBits(seed * 1000 + n * 10 + i);
      graph.edges.push_back({from, static_cast<uint32_t>(n), [salt](size_t a, size_t b) {
                               return Numbers(salt + a * 64 + b).Uniform();
                             }});
    }
  }
  return graph;
}

TEST(DynamicProgrammingTest, IsTheBestOfAllChoicesWithAndWithoutALimit) {
  int limited = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const PlanGraph graph = RandomGraph(seed, 2 + seed % 7, 5);
    const auto found = DynamicProgramming(graph, kAny);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(PlanSeconds(graph, *found), BruteForce(graph, kAny), 1e-12);
    const double least = LeastBytes(graph), free = PlanBytes(graph, *found);
    EXPECT_FALSE(DynamicProgramming(graph, least - 1).has_value());
    for (const double share : {0.0, 0.3, 0.7}) {
      const double bytes_max = std::floor(least + share * (free - least));
      const auto fits = DynamicProgramming(graph, bytes_max);
      ASSERT_TRUE(fits.has_value());
      EXPECT_LE(PlanBytes(graph, *fits), bytes_max);
      EXPECT_NEAR(PlanSeconds(graph, *fits), BruteForce(graph, bytes_max), 1e-12);
      limited += free > bytes_max ? 1 : 0;
    }
  }
  EXPECT_GT(limited, 60);
}

// The job's graph in auto_parallel, and its inputs.
struct Planned {
  explicit Planned(const Job& job, uint32_t workers, bool all_workers = false)
      : facts(FactsOf(job)), cost(facts, workers, job.parallel.rates) {
    Job searched = job;
    searched.parallel.parallel_mode = ParallelMode::kAuto;
    searched.parallel.fully_use_devices = all_workers;
    const auto choices = ChoicesOf(searched, facts, workers);
    EXPECT_TRUE(choices.ok()) << choices.status().message();
    plan = PlanGraphOf(facts, *choices, workers, cost);
  }
  JobFacts facts;
  StrategyCost cost;
  JobPlanGraph plan;
};

// Returns a tower of dense layers of these widths over an embedding; `batch` examples per step.
std::string Tower(const std::vector<int>& widths, int batch, bool activations = false) {
  std::string layers = R"({"name": "rows", "kind": "embedding", "table": "t"})";
  std::string below = "rows";
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string name = "d" + std::to_string(i);
    layers += R"(, {"name": ")" + name + R"(", "inputs": [")" + below + R"("], "units": )" +
              std::to_string(widths[i]) + "}";
    below = name;
    if (!activations) continue;
    below = "a" + std::to_string(i);
    layers += R"(, {"name": ")" + below + R"(", "kind": "activation", "activation": "relu", )" +
              R"("inputs": [")" + name + R"("]})";
  }
  return R"({"data": {"train": ["a.csv"], "columns": [{"name": "y", "type": "label"}, )"
         R"({"name": "x", "type": "numeric"}, {"name": "c"}, {"name": "d"}, {"name": "e"}]}, )"
         R"("train": {"batch_size": )" +
         std::to_string(batch) + R"(}, "model": {"type": "graph", "tables": [{"name": "t"}], )" +
         R"("layers": [)" + layers + R"(, {"name": "out", "inputs": [")" + below +
         R"("], "units": 1}]}, "parallel": {"parallel_mode": "auto_parallel", )" +
         R"("dense_exchange": "allreduce"}})";
}

// Returns towers of up to 8 layers, large and small, with large and small batches.
std::vector<std::string> SmallJobs() {
  std::vector<std::string> jobs;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Numbers numbers(seed * 77);
    std::vector<int> widths;
    const size_t count = 1 + numbers.Below(5);
    for (size_t i = 0; i < count; ++i) widths.push_back(1 << (2 + numbers.Below(13)));
    const bool activations = count <= 3 && seed % 2 == 0;
    jobs.push_back(Tower(widths, 1 << (4 + numbers.Below(11)), activations));
  }
  return jobs;
}

// Returns the worst result of propagation with one layer pinned at a time.
double WorstPropagation(const Planned& planned, double bytes_max) {
  double worst = 1;
  for (size_t n = 0; n < planned.plan.graph.nodes.size(); ++n) {
    PlanGraph pinned = planned.plan.graph;
    // Removing options would change the tables of edges, so the others get a prohibitive cost.
    const size_t keep = n % pinned.nodes[n].options.size();
    for (PlanEdge& edge : pinned.edges) {
      const auto all = edge.seconds;
      if (edge.from == n) edge.seconds = [all, keep](size_t, size_t b) { return all(keep, b); };
      if (edge.to == n) edge.seconds = [all, keep](size_t a, size_t) { return all(a, keep); };
    }
    pinned.nodes[n].options = {pinned.nodes[n].options[keep]};
    pinned.nodes[n].pinned = true;
    const auto found = ShardingPropagation(pinned, bytes_max);
    const auto best = DynamicProgramming(pinned, bytes_max);
    if (!found.has_value() || !best.has_value()) continue;
    EXPECT_EQ((*found)[n], 0u) << "a pin stays";
    worst = std::max(worst, PlanSeconds(pinned, *found) / PlanSeconds(pinned, *best));
  }
  return worst;
}

TEST(SearchesTest, OfRealGraphsAreAsGoodAsTheyPromise) {
  double recursive_worst = 1, propagation_worst = 1;
  int graphs = 0;
  for (const std::string& json : SmallJobs()) {
    for (const uint32_t workers : {2u, 4u}) {
      const Planned planned(GoodJob({}, json), workers);
      const PlanGraph& graph = planned.plan.graph;
      double count = 1;
      for (const PlanNode& node : graph.nodes) count *= static_cast<double>(node.options.size());
      const auto best = DynamicProgramming(graph, kAny);
      const double seconds = PlanSeconds(graph, *best);
      if (count < 2e5) {
        EXPECT_NEAR(seconds, BruteForce(graph, kAny), 1e-9 * seconds);
        ++graphs;
      }
      recursive_worst = std::max(recursive_worst,
                                 PlanSeconds(graph, *RecursiveProgramming(graph, kAny)) / seconds);
      propagation_worst = std::max(propagation_worst, WorstPropagation(planned, kAny));
    }
  }
  std::printf(
      "%d graphs by brute force; recursive_programming at most %.3f times the best, "
      "sharding_propagation %.3f\n",
      graphs, recursive_worst, propagation_worst);
  EXPECT_GE(graphs, 30);
  EXPECT_LE(recursive_worst, 1.3);
  EXPECT_LE(propagation_worst, 1.25);
}

TEST(SearchesTest, OfRandomGraphsPropagationStaysNear) {
  double worst = 1;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const PlanGraph graph = RandomGraph(seed, 2 + seed % 7, 5);
    const double best = PlanSeconds(graph, *DynamicProgramming(graph, kAny));
    worst = std::max(worst, PlanSeconds(graph, *ShardingPropagation(graph, kAny)) / best);
  }
  std::printf("random graphs: sharding_propagation at most %.3f times the best\n", worst);
  EXPECT_LE(worst, 1.25);
}

double ProcessSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(SearchesTest, RecursiveIsTenTimesFasterAtTwoHundredLayers) {
  std::vector<int> widths;
  Numbers numbers(5);
  for (int i = 0; i < 198; ++i) widths.push_back(1 << (5 + numbers.Below(8)));
  const Job job = GoodJob({}, Tower(widths, 1024));
  for (const uint32_t workers : {16u, 32u}) {
    std::vector<double> exact, fast;
    double ratio = 0;
    const Planned planned(job, workers);
    PlanGraph graph = planned.plan.graph;
    Tabulate(&graph);
    for (int round = 0; round < 5; ++round) {
      double start = ProcessSeconds();
      const auto best = DynamicProgramming(graph, kAny);
      exact.push_back(ProcessSeconds() - start);
      start = ProcessSeconds();
      const auto found = RecursiveProgramming(graph, kAny);
      fast.push_back(ProcessSeconds() - start);
      ratio = PlanSeconds(graph, *found) / PlanSeconds(graph, *best);
    }
    std::ranges::nth_element(exact, exact.begin() + 2);
    std::ranges::nth_element(fast, fast.begin() + 2);
    std::printf(
        "200 layers, %u workers: dynamic_programming %.4f s, recursive_programming %.4f s "
        "(%.1f times faster, %.3f times the best)\n",
        workers, exact[2], fast[2], exact[2] / fast[2], ratio);
    EXPECT_GE(exact[2] / fast[2], 10);
    EXPECT_LE(ratio, 1.3);
  }
}

TEST(AutoParallelTest, OneHugeLayerIsSplit) {
  for (const char* search :
       {"dynamic_programming", "recursive_programming", "sharding_propagation"}) {
    const Job job = GoodJob({std::string("parallel.search_mode=") + search},
                            Tower({64, 16384, 16384, 64}, 256));
    const Result<Strategy> strategy = StrategyOf(job, 4);
    ASSERT_TRUE(strategy.ok()) << strategy.status().message();
    const LayerSplit& huge = strategy->layers[3];  // The layer of 16384 x 16384 weights.
    EXPECT_GT(huge.inputs * huge.columns, 1u) << search;
  }
}

TEST(AutoParallelTest, OfASmallWideAndDeepNothingIsCut) {
  const Job job = GoodJob({"train.batch_size=1024"},
                          R"({"data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label"}, {"name": "x", "type": "numeric"}, {"name": "c"},
      {"name": "d"}]}, "model": {"type": "wide_deep"}, "parallel": {
      "parallel_mode": "auto_parallel", "dense_exchange": "allreduce"}})");
  const Result<Strategy> strategy = StrategyOf(job, 4);
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  EXPECT_TRUE(strategy->data_parallel()) << StrategyLine(job, *strategy);
}

TEST(AutoParallelTest, NoPlanNeedsMoreThanAWorkerMayHave) {
  const std::string json = Tower({512, 2048, 512}, 256);
  const JobFacts facts = FactsOf(GoodJob({}, json));
  const Job job = GoodJob({}, json);
  const Strategy free = *StrategyOf(job, 4);
  const double free_bytes = TotalOf(facts, free, job.parallel.rates).memory_bytes;
  const double least_bytes = LeastBytes(Planned(job, 4, true).plan.graph);
  ASSERT_LT(least_bytes, free_bytes);
  for (const char* search :
       {"dynamic_programming", "recursive_programming", "sharding_propagation"}) {
    for (const double share : {0.9, 0.5, 0.0}) {
      const auto limit = static_cast<uint64_t>(least_bytes + share * (free_bytes - least_bytes));
      const Job limited = GoodJob({std::string("parallel.search_mode=") + search,
                                   "parallel.worker_memory_limit=" + std::to_string(limit)},
                                  json);
      const Result<Strategy> strategy = StrategyOf(limited, 4);
      ASSERT_TRUE(strategy.ok()) << strategy.status().message();
      EXPECT_LE(TotalOf(facts, *strategy, job.parallel.rates).memory_bytes, double(limit));
    }
  }
  const Result<Strategy> none = StrategyOf(GoodJob({"parallel.worker_memory_limit=1MiB"}, json), 4);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(),
              testing::AllOf(testing::HasSubstr("worker_memory_limit: it is 1.00 MiB"),
                             testing::HasSubstr("needs least takes")));
}

TEST(AutoParallelTest, WithoutFullUseItIsNoWorse) {
  for (const std::string& json : SmallJobs()) {
    const Planned all(GoodJob({}, json), 4, true), any(GoodJob({}, json), 4, false);
    for (const PlanNode& node : all.plan.graph.nodes) {
      for (const PlanOption& option : node.options) EXPECT_EQ(option.split.product(), 4u);
    }
    const double full = PlanSeconds(all.plan.graph, *DynamicProgramming(all.plan.graph, kAny));
    const double free = PlanSeconds(any.plan.graph, *DynamicProgramming(any.plan.graph, kAny));
    EXPECT_LE(free, full * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace hdps
