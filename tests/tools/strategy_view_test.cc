// The table and the picture of a strategy: all is said, and nothing lies over anything else.
#include "tools/plan/strategy_view.h"

#include <gmock/gmock.h>

#include <regex>

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
    svg = StrategySvg(view);
  }
  JobFacts facts;
  std::string text, svg;
};

struct Area {
  double left, top, right, bottom;
  bool Meets(const Area& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

std::vector<Area> Find(const std::string& svg, const std::regex& what) {
  std::vector<Area> found;
  for (std::sregex_iterator at(svg.begin(), svg.end(), what), end; at != end; ++at) {
    const double x = std::stod((*at)[1]), y = std::stod((*at)[2]);
    found.push_back({x, y, x + std::stod((*at)[3]), y + std::stod((*at)[4])});
  }
  return found;
}

TEST(StrategyViewTest, NothingInThePictureLiesOverAnother) {
  const std::regex box("<rect x='([-0-9.]+)' y='([-0-9.]+)' width='([0-9.]+)' height='([0-9.]+)'");
  for (const char* model :
       {R"({"type": "wide_deep"})", R"({"type": "dcn_v2", "hidden": [4096, 2048, 512]})",
        R"({"type": "deepfm"})", R"({"type": "dlrm"})", R"({"type": "fibinet"})",
        R"({"type": "xdeepfm", "hidden": [8192, 8192]})", R"({"type": "autoint"})"}) {
    SCOPED_TRACE(model);
    const Viewed viewed(JobOf(model), 4);
    std::vector<Area> areas = Find(viewed.svg, box);
    ASSERT_GE(areas.size(), viewed.facts.layers.size() + 1) << "layers and the loss";
    // Lines of text in no box: the labels of edges, each a line high.
    const std::regex label("<text x='([-0-9.]+)' y='([-0-9.]+)' text-anchor='middle'>([^<]*)<");
    std::vector<Area> labels;
    for (std::sregex_iterator at(viewed.svg.begin(), viewed.svg.end(), label), end; at != end;
         ++at) {
      const double half = 7.3 * static_cast<double>((*at)[3].length()) / 2;
      const double x = std::stod((*at)[1]), y = std::stod((*at)[2]);
      labels.push_back({x - half, y - 11, x + half, y + 3});
    }
    for (size_t a = 0; a < areas.size(); ++a) {
      for (size_t b = 0; b < a; ++b) EXPECT_FALSE(areas[a].Meets(areas[b])) << a << " " << b;
    }
    for (size_t a = 0; a < labels.size(); ++a) {
      for (size_t b = 0; b < a; ++b) EXPECT_FALSE(labels[a].Meets(labels[b])) << a << " " << b;
      for (const Area& other : areas) {
        const bool inside = other.left <= labels[a].left && labels[a].right <= other.right &&
                            other.top <= labels[a].top && labels[a].bottom <= other.bottom;
        EXPECT_TRUE(inside || !other.Meets(labels[a]));
      }
    }
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
  EXPECT_THAT(viewed.svg, HasSubstr("allgather"));
}

}  // namespace
}  // namespace hdps
