// Tests that a strategy's table and graph are complete.
#include "tools/plan/strategy_view.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <regex>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/strategy_of_job.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

Job JobOf(const std::string& model, const std::vector<std::string>& overrides = {}) {
  const std::string json = R"({"data": {"train": ["a.csv"], "columns": [
      {"name": "y", "type": "label"}, {"name": "x", "type": "numeric"}, {"name": "c"},
      {"name": "d"}, {"name": "e"}, {"name": "f"}]},
      "train": {"batch_size": 256}, "model": )" +
                           model + R"(, "parallel": {"parallel_mode": "auto_parallel",
      "dense_exchange": "allreduce", "fully_use_devices": false}})";
  Result<Job> job = ParseJob(json, "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : Job();
}

struct Viewed {
  Viewed(const Job& job, uint32_t workers) : facts(FactsOf(job)) {
    const Result<Strategy> found = StrategyOf(job, workers);
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return;
    const StrategyView view = {facts, *found, job.parallel.rates, StrategyLine(job, *found)};
    text = StrategyText(view);
    dot = StrategyDot(view);
  }
  JobFacts facts;
  std::string text, dot;
};

// Returns the texts in front of and behind " -> " of each edge.
std::vector<std::pair<std::string, std::string>> EdgesOf(const std::string& dot) {
  const std::regex edge("\n  (\\w+) -> (\\w+) \\[");
  std::vector<std::pair<std::string, std::string>> edges;
  for (std::sregex_iterator at(dot.begin(), dot.end(), edge), end; at != end; ++at) {
    edges.emplace_back((*at)[1], (*at)[2]);
  }
  return edges;
}

TEST(StrategyViewTest, TheGraphHasABoxALayerAndAnEdgeAnInput) {
  for (const char* model :
       {R"({"type": "wide_deep"})", R"({"type": "dcn_v2", "hidden": [4096, 2048, 512]})",
        R"({"type": "xdeepfm", "hidden": [8192, 8192]})", R"({"type": "autoint"})"}) {
    SCOPED_TRACE(model);
    const Viewed viewed(JobOf(model), 4);
    const std::vector<LayerFacts>& layers = viewed.facts.layers;
    std::vector<std::pair<std::string, std::string>> edges;
    for (size_t i = 0; i < layers.size(); ++i) {
      const std::string name = "layer" + std::to_string(i);
      EXPECT_THAT(viewed.dot, HasSubstr("\n  " + name + " [label=\"" + layers[i].name + ": "));
      for (const uint32_t input : layers[i].inputs) {
        edges.emplace_back("layer" + std::to_string(input), name);
      }
    }
    edges.emplace_back("layer" + std::to_string(layers.size() - 1), "loss");
    EXPECT_EQ(EdgesOf(viewed.dot), edges);
    EXPECT_EQ(std::ranges::count(viewed.dot, '"') % 2, 0);
  }
}

TEST(StrategyViewTest, SaysWhatEachWorkerHolds) {
  const Viewed viewed(JobOf(R"({"type": "wide_deep"})",
                            {"parallel.parallel_mode=hybrid_parallel",
                             R"(parallel.blocks=[{"layers": ["deep1"], "shard": [1, 2]}])"}),
                      2);
  EXPECT_THAT(viewed.text, HasSubstr("deep1: columns 2"));
  EXPECT_THAT(viewed.text, HasSubstr("allgather"));
  EXPECT_THAT(viewed.text, HasSubstr("worker 0: "));
  EXPECT_THAT(viewed.text, testing::ContainsRegex("worker 1: .*deep1.0:[0-9]+, 32:64., the other"));
  EXPECT_THAT(viewed.dot, HasSubstr("allgather"));
}

}  // namespace
}  // namespace hdps
