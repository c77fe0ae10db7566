// Tests where dense weights may be kept and updated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

const std::string kOfDeep1 = "model.layer_settings.deep1.dense_target=";

TEST(JobMistakesTest, OfPlacesOnDevicesAreAnsweredWithWhatKeepsThemAway) {
  const std::string cuda = "model.dense_target=cuda", all = "parallel.dense_exchange=allreduce";
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"model.dense_target=ascend"}, {"model.dense_target", "\"ascend\"", "cuda"}},
      {{cuda}, {"model.dense_target", "dense_exchange is servers", "allreduce"}},
      {{cuda, all, "model.device=cpu"}, {"model.device is cpu"}},
      {{cuda, all, "train.clip_norm=1"}, {"train.clip_norm"}},
      {{cuda, all, "parallel.enable_parallel_optimizer=true"}, {"enable_parallel_optimizer"}},
      {{cuda, all, "model.deep_optimizer.kind=adam", "parallel.gradient_fp32_sync=false"},
       {"gradient_fp32_sync"}},
      {{kOfDeep1 + "cuda"}, {"model.layer_settings.deep1.dense_target", "servers, which update"}},
      {{kOfDeep1 + "cuda", all, "model.device=cpu"}, {"deep1.dense_target", "model.device is cpu"}},
      {{kOfDeep1 + "cuda", all, "train.clip_norm=1"}, {"deep1.dense_target", "train.clip_norm"}},
      {{kOfDeep1 + "cuda", all, "model.layer_settings.deep1.dense_exchange=servers"},
       {"deep1.dense_target", "dense_exchange of layer \"deep1\" is servers"}},
      {{"model.layer_settings.numeric.dense_target=cpu", all},
       {"model.layer_settings.numeric.dense_target", "no dense parameters"}},
  };
  for (const auto& mistake : mistakes) {
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
  EXPECT_EQ(WhyDenseOnHost(Good({cuda, all})), "");
}

TEST(LayerTargetTest, ALayersOwnWordStandsBeforeTheModels) {
  const auto why = [](const Job& job, const std::string& name) {
    const auto layer = std::ranges::find(job.model.layers, name, &LayerSpec::name);
    return WhyDenseOnHost(job, *layer);
  };
  const std::string all = "parallel.dense_exchange=allreduce";
  const Job host = Good({all, "model.dense_target=cpu", kOfDeep1 + "cuda"});
  EXPECT_EQ(why(host, "deep1"), "");
  EXPECT_EQ(why(host, "deep2"), "model.dense_target is cpu");
  const Job device = Good({all, "model.dense_target=cuda", kOfDeep1 + "cpu"});
  EXPECT_EQ(why(device, "deep1"), "dense_target of layer \"deep1\" is cpu");
  EXPECT_EQ(why(device, "deep2"), "");
  EXPECT_THAT(CudaTargetsOf(host.model), testing::ElementsAre("dense_target of layer deep1"));
  EXPECT_THAT(CudaTargetsOf(device.model), testing::ElementsAre("model.dense_target"));
  EXPECT_EQ(JobDigest(host), JobDigest(device));
}

}  // namespace
}  // namespace hdps
