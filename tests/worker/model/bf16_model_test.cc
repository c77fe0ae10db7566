// Tests a model with dense layers in bf16 against the same in fp32. Skipped where the machine has
// no bf16 products; with HDPS_WIDENED_BF16=1 it runs on every machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "common/job/spec/model_spec.h"
#include "common/job/spec/precision.h"
#include "kernels/host/half_floats.h"
#include "kernels/products/bf16_gemm.h"
#include "tests/worker/model/model_fixture.h"

namespace hdps {
namespace {

using testing::HasSubstr;
using testing::Not;

// |a - b| / |b|, Euclidean.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    size += double{b[i]} * double{b[i]};
  }
  return size > 0 ? std::sqrt(difference / size) : difference;
}

class Bf16ModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Bf16ProductsOfThisMachine() == Bf16Products::kNone) {
      GTEST_SKIP() << "this machine has no products in bf16";
    }
  }
  // Returns the job with the first layer in bf16 too, whatever its size.
  static Job InBf16(Job job) {
    job.model.precision = Precision::kBf16;
    job.model.first_layer = FirstLayer::kPlain;
    return job;
  }
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
};

// The effect of rounding on a gradient depends on the model (on cancellation, and on ReLUs near
// their kink). So the measure is its change in fp32 when only the weights are rounded: one
// rounding, while a bf16 layer has three, of its input, its weights and the gradient. A wrong mask
// or a lost term would be as large as the gradient itself.
TEST_F(Bf16ModelTest, GradientsAreThoseOfFp32UpToRounding) {
  constexpr double kTimes = 8;
  std::vector<Job> jobs = {NormalizedGraph(Activation::kTanh, 0.2),
                           BatchNormGraph(Activation::kRelu, 0.1)};
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "pnn", "mlp"}) {
    jobs.push_back(TestJob(type));
  }
  double most = 0;
  for (Job& job : jobs) {
    for (LayerSpec& layer : job.model.layers) {
      // Layers of 8 units stay in fp32.
      if (layer.kind == "dense" && layer.units == 8) layer.units = 24;
    }
    SCOPED_TRACE(job.model.type);
    job.model.first_layer = FirstLayer::kPlain;
    ModelRun wide(job, *executor_), half(InBf16(job), *executor_), rounded(job, *executor_);
    EXPECT_THAT(half.model().Describe(), HasSubstr("precision=bf16"));
    EXPECT_THAT(wide.model().Describe(), Not(HasSubstr("precision")));
    for (float& weight : rounded.dense()) weight = FromBf16(NarrowToBf16(weight));
    const Batch batch = TestBatch(job, {200, 3, true, 4});
    const ModelRun::Gradients right = wide.Step(batch), is = half.Step(batch);
    const ModelRun::Gradients measure = rounded.Step(batch);
    EXPECT_NEAR(is.loss_sum / right.loss_sum, 1, 0x1p-7);
    EXPECT_NE(is.dense, right.dense) << "nothing was rounded";
    const auto expect_near = [&](const std::vector<float>& a, const std::vector<float>& b,
                                 const std::vector<float>& c) {
      const double unit = std::max(Distance(c, b), 0x1p-10);
      most = std::max(most, Distance(a, b) / unit);
      EXPECT_LE(Distance(a, b), kTimes * unit);
      EXPECT_LE(Distance(a, b), 0.25);
    };
    expect_near(is.dense, right.dense, measure.dense);
    for (size_t t = 0; t < right.rows.size(); ++t) {
      if (!right.rows[t].empty()) expect_near(is.rows[t], right.rows[t], measure.rows[t]);
    }
    std::vector<float> probabilities;
    EXPECT_NEAR(half.Predict(batch, &probabilities) / wide.Predict(batch, &probabilities), 1,
                0x1p-7);
  }
  std::printf(
      "figure: gradients in bf16 are at most %.1f times as far from fp32 as rounding the "
      "weights alone makes them\n",
      most);
}

// Gradients of rows first and tensors later, or all in order: the same bits.
TEST_F(Bf16ModelTest, TensorsMayComeLater) {
  for (const char* type : {"wide_deep", "dlrm"}) {
    ModelRun run(InBf16(TestJob(type)), *executor_);
    const Batch batch = TestBatch(run.job(), {70, 2, false, 5});
    const ModelRun::Gradients usual = run.Step(batch);
    std::vector<float> then;
    const ModelRun::Gradients later = run.StepRowsFirst(batch, &then);
    EXPECT_EQ(later.rows, usual.rows);
    EXPECT_EQ(later.dense, usual.dense);
    const ModelRun::Gradients pieces = run.StepInPieces(batch, 3);
    EXPECT_EQ(pieces.rows, usual.rows);
    EXPECT_EQ(pieces.dense, usual.dense);
  }
}

// Batches of other sizes in between have no effect.
TEST_F(Bf16ModelTest, AStepIsAFunctionOfItsBatch) {
  ModelRun run(InBf16(TestJob("wide_deep")), *executor_);
  const Batch batch = TestBatch(run.job(), {90, 2, true, 6});
  const ModelRun::Gradients first = run.Step(batch);
  run.Step(TestBatch(run.job(), {300, 1, false, 7}));
  run.Step(TestBatch(run.job(), {1, 1, false, 8}));
  const ModelRun::Gradients again = run.Step(batch);
  EXPECT_EQ(again.dense, first.dense);
  EXPECT_EQ(again.rows, first.rows);
}

// Distinct rows are multiplied in fp32, if asked for; the layers above stay in bf16.
TEST_F(Bf16ModelTest, AFirstLayerOnDistinctRowsStaysInFp32) {
  Job job = InBf16(TestJob("wide_deep"));
  job.model.first_layer = FirstLayer::kUniqueRows;
  ModelRun rows(job, *executor_), plain(InBf16(TestJob("wide_deep")), *executor_);
  const Batch batch = TestBatch(job, {120, 1, false, 9});
  const ModelRun::Gradients a = rows.Step(batch), b = plain.Step(batch);
  EXPECT_LE(Distance(a.dense, b.dense), 0x1p-5);
  EXPECT_THAT(rows.model().Describe(), HasSubstr("first_layer=unique_rows"));
}

}  // namespace
}  // namespace hdps
