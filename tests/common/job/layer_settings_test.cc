// Tests model.layer_settings: the layers of a recipe are placed as those of a listed graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kAllreduce = "parallel.dense_exchange=allreduce";
constexpr const char* kHybrid = "parallel.parallel_mode=hybrid_parallel";

size_t IndexOf(const Job& job, const std::string& name) {
  const auto layer = std::ranges::find(job.model.layers, name, &LayerSpec::name);
  EXPECT_NE(layer, job.model.layers.end()) << name;
  return static_cast<size_t>(layer - job.model.layers.begin());
}

// Each setting gives the job that the graph of the recipe is with the same setting of its layer.
TEST(LayerSettingsTest, AreThoseOfTheEqualGraph) {
  const std::vector<std::string> settings[] = {
      {"deep1.device=cpu"},
      {"deep1.fusion=3", "deep2.fusion=0"},
      {"deep2.layerwise_parallel=true"},
      {"deep1.dense_exchange=servers", "deep2.dense_target=cpu"},
      {"deep1.shard=[1, 2]", "embedding.shard=[1, 4]"},
      {"deep1.shard=[[2, 1], [1, 2]]", "deep1.device=cpu", "deep1.fusion=1"}};
  for (const std::vector<std::string>& given : settings) {
    SCOPED_TRACE(testing::PrintToString(given));
    const Job plain = Good({kAllreduce, kHybrid});
    std::vector<std::string> of_recipe = {kAllreduce, kHybrid}, of_graph;
    for (const std::string& one : given) {
      of_recipe.push_back("model.layer_settings." + one);
      const size_t dot = one.find('.');
      of_graph.push_back("model.layers." + std::to_string(IndexOf(plain, one.substr(0, dot))) +
                         one.substr(dot));
    }
    const Job recipe = Good(of_recipe), graph = Good(of_graph, PrintJob(plain));
    EXPECT_NE(PrintJob(recipe), PrintJob(plain));
    EXPECT_EQ(PrintJob(recipe), PrintJob(graph));
    EXPECT_EQ(JobDigest(recipe), JobDigest(graph));
    EXPECT_EQ(TablesDigest(recipe), TablesDigest(graph));
    EXPECT_EQ(recipe.warnings, graph.warnings);
  }
  EXPECT_EQ(PrintJob(Good({"model.layer_settings={}"})), PrintJob(Good({})));
}

TEST(LayerSettingsTest, MistakesNameTheLayer) {
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"model.layer_settings.deep3.device=cpu"},
       {"model.layer_settings.deep3", "wide_deep has no layer of this name",
        "did you mean \"deep1\"?", "wide, numeric, wide_numeric", "deep1, deep2"}},
      {{"model.layer_settings.deep1=4"},
       {"model.layer_settings.deep1", "4 is not an object (layer_setting)"}},
      {{"model.layer_settings=[1]"},
       {"model.layer_settings", "an object of names, each with an object (layer_setting)"}},
      {{"model.layer_settings.deep1.units=4"},
       {"model.layer_settings.deep1.units", "there is no such key"}},
      {{"model.layer_settings.deep1.device=gpu"},
       {"model.layer_settings.deep1.device", "\"gpu\"", "auto, cpu, cuda"}},
      {{"model.layer_settings.deep1.fusion=-1"}, {"model.layer_settings.deep1.fusion", "-1"}},
      {{"model.layer_settings.deep1.layerwise_parallel=true"},
       {"model.layer_settings.deep1.layerwise_parallel", "dense_exchange is servers"}},
      {{kAllreduce, "model.layer_settings.numeric.layerwise_parallel=true"},
       {"model.layer_settings.numeric.layerwise_parallel", "no dense parameters"}},
      {{"model.layer_settings.deep1.dense_exchange=allreduce"},
       {"model.layer_settings.deep1.dense_exchange", "parallel.dense_exchange is servers",
        "set that to allreduce"}},
      {{kAllreduce, "model.layer_settings.embedding.dense_exchange=servers"},
       {"model.layer_settings.embedding.dense_exchange", "no dense parameters",
        "servers keep and update tables"}},
      {{kAllreduce, "model.layer_settings.deep1.dense_exchange=servers",
        "parallel.parallel_mode=auto_parallel"},
       {"model.layer_settings.deep1.dense_exchange", "under auto_parallel"}},
      {{kAllreduce, kHybrid, "model.layer_settings.deep1.dense_exchange=servers",
        "model.layer_settings.deep2.shard=[1, 2]"},
       {"dense_exchange", "servers hold layer \"deep1\" whole", "deep2.shard"}},
      {{kAllreduce, kHybrid, "model.layer_settings.deep1.dense_target=cpu",
        "model.layer_settings.deep2.shard=[1, 2]"},
       {"dense_target", "updated in one place", "deep2.shard"}},
      {{kAllreduce, "model.layer_settings.deep1.dense_exchange=servers",
        "model.layer_settings.deep1.layerwise_parallel=true"},
       {"model.layer_settings.deep1.layerwise_parallel", "its dense_exchange is servers"}},
      {{kAllreduce, "model.layer_settings.deep1.shard=[1, 2, 3]"},
       {"model.layer_settings.deep1.shard", "[1, 2, 3] of \"deep1\""}},
      {{kAllreduce, "parallel.parallel_mode=data_parallel",
        "model.layer_settings.deep1.shard=[1, 2]"},
       {"model.layer_settings.deep1.shard", "every worker has the whole model"}}};
  for (const auto& mistake : mistakes) {
    SCOPED_TRACE(testing::PrintToString(mistake.overrides));
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

TEST(LayerSettingsTest, BesideAListedGraphTheyAreToldToBeIdle) {
  EXPECT_THAT(Good({kGraph, "model.layer_settings.out.device=cpu"}).warnings,
              Contains(HasSubstr("model.layer_settings is ignored: it counts only where type is")));
  const Job listed = Good({"model.layer_settings.deep1.device=cpu"}, PrintJob(Good({})));
  EXPECT_THAT(listed.warnings, Contains("model.layer_settings is ignored: model.layers spells the "
                                        "model out"));
  EXPECT_EQ(listed.model.layers[IndexOf(listed, "deep1")].device, "auto");
}

}  // namespace
}  // namespace hdps
