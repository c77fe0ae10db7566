// Tests where dense weights may be kept and updated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/job_facts.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

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
  };
  for (const auto& mistake : mistakes) {
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
  EXPECT_EQ(WhyDenseOnHost(Good({cuda, all})), "");
}

}  // namespace
}  // namespace hdps
