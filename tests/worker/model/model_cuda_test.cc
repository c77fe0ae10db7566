// Tests every model on the GPU against the CPU within E2; skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "common/job/spec/model_spec.h"
#include "kernels/dense_ops.h"
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

INSTANTIATE_TEST_SUITE_P(Models, ModelOnGpuTest,
                         testing::Values("logistic", "wide_deep", "deepfm", "dcn_v2", "dlrm", "mlp",
                                         "fm", "nfm", "pnn", "xdeepfm", "fibinet", "dcn_mix",
                                         "normalized", "max", "din_plain", "din_softmax",
                                         "attention", "attention_wide", "mixture", "cosine",
                                         "joint"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace hdps
