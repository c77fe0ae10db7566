// Tests every model on the GPU against the CPU within E2; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/job/spec/model_spec.h"
#include "common/job/spec/precision.h"
#include "kernels/dense_ops.h"
#include "kernels/host/half_floats.h"
#include "tests/worker/model/expect_e2.h"
#include "tests/worker/model/model_fixture.h"
#include "tests/worker/model/sequence_graphs.h"

namespace hdps {
namespace {

class ModelOnGpuTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Result<std::unique_ptr<DenseOps>> ops = NewCudaOps();
    if (!ops.ok()) GTEST_SKIP() << "no GPU: " << ops.status().message();
  }
};

// Finds a recipe or a graph of the tests by name.
Job JobOf(const std::string& name) {
  for (const NamedJob& graph : SequenceGraphs()) {
    if (graph.name == name) return graph.job;
  }
  return name == "normalized" ? NormalizedGraph(Activation::kGelu, 0.3) : TestJob(name);
}

TEST_P(ModelOnGpuTest, AgreesWithCpuAndWithItself) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Job job = JobOf(GetParam());
  const Batch batch = TestBatch(job, {300, 3, true, 9});
  ModelRun cpu(job, *executor);
  job.model.device = "cuda";
  ModelRun gpu(job, *executor);
  for (const uint32_t count : {300u, 0u, 77u}) {
    const Batch part = PartOf(batch, 0, count);
    const ModelRun::Gradients expected = cpu.Step(part), actual = gpu.Step(part);
    EXPECT_NEAR(actual.loss_sum, expected.loss_sum, 1e-5 * std::max(1.0, expected.loss_sum));
    ExpectE2(actual.dense, expected.dense);
    for (size_t t = 0; t < actual.rows.size(); ++t) ExpectE2(actual.rows[t], expected.rows[t]);
    std::vector<float> on_gpu, on_cpu;
    gpu.Predict(part, &on_gpu);
    cpu.Predict(part, &on_cpu);
    ExpectE2(on_gpu, on_cpu);
    const ModelRun::Gradients again = gpu.Step(part);
    EXPECT_EQ(again.dense, actual.dense) << "bit for bit";
    EXPECT_EQ(again.rows, actual.rows) << "bit for bit";
    EXPECT_EQ(gpu.StepInPieces(part, 3).rows, actual.rows) << "bit for bit";
  }
}

// The distance of two gradients beside the size of the second.
double Distance(const std::vector<float>& is, const std::vector<float>& right) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    apart += std::pow(double{is[i]} - right[i], 2);
    size += std::pow(double{right[i]}, 2);
  }
  return size == 0 ? apart : std::sqrt(apart / size);
}

// As Bf16ModelTest.GradientsAreThoseOfFp32UpToRounding has it for the host, but here every product
// is rounded, not those of dense layers alone.
TEST_P(ModelOnGpuTest, GradientsInBf16AreThoseOfFp32UpToRounding) {
  constexpr double kTimes = 16;
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Job job = JobOf(GetParam());
  for (LayerSpec& layer : job.model.layers) {
    if (layer.kind == "dense" && layer.units == 8) layer.units = 24;  // Those of 8 stay in fp32.
  }
  job.model.device = "cuda";
  ModelRun wide(job, *executor), rounded(job, *executor);
  job.model.precision = Precision::kBf16;
  ModelRun half(job, *executor);
  for (float& weight : rounded.dense()) weight = FromBf16(NarrowToBf16(weight));
  const Batch batch = TestBatch(job, {300, 3, true, 9});
  const ModelRun::Gradients right = wide.Step(batch), measure = rounded.Step(batch);
  const ModelRun::Gradients is = half.Step(batch);
  EXPECT_NEAR(is.loss_sum / right.loss_sum, 1, 0x1p-6);
  const auto expect_near = [&](const std::vector<float>& a, const std::vector<float>& b,
                               const std::vector<float>& c) {
    EXPECT_LE(Distance(a, b), kTimes * std::max(Distance(c, b), 0x1p-9));
    EXPECT_LE(Distance(a, b), 0.25);
  };
  expect_near(is.dense, right.dense, measure.dense);
  for (size_t t = 0; t < right.rows.size(); ++t) {
    if (!right.rows[t].empty()) expect_near(is.rows[t], right.rows[t], measure.rows[t]);
  }
  EXPECT_EQ(half.Step(batch).dense, is.dense) << "two runs";
}

INSTANTIATE_TEST_SUITE_P(Models, ModelOnGpuTest,
                         testing::Values("logistic", "wide_deep", "deepfm", "dcn_v2", "dlrm", "mlp",
                                         "fm", "nfm", "pnn", "xdeepfm", "fibinet", "dcn_mix",
                                         "normalized", "max", "din_plain", "din_softmax",
                                         "attention", "attention_wide", "mixture", "cosine",
                                         "joint"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace hdps
