// A model whose dense layers multiply in bf16, beside the same in fp32. Where this machine has no
// such products the tests are skipped; with HDPS_WIDENED_BF16=1 they run on every machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

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
  return std::sqrt(difference / size);
}

class Bf16ModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Bf16ProductsOfThisMachine() == Bf16Products::kNone) {
      GTEST_SKIP() << "this machine has no products in bf16";
    }
  }
  static Job InBf16(Job job) {
    job.model.precision = Precision::kBf16;
    return job;
  }
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
};

// A rounding is at most 2^-8 of a number, and those of many numbers are unlike: a few of them in a
// row, layer by layer, stay below 8 of them. A wrong mask or a lost term is of the size of the
// gradient itself.
TEST_F(Bf16ModelTest, GradientsAreThoseOfFp32UpToRounding) {
  std::vector<Job> jobs = {NormalizedGraph(Activation::kTanh, 0.2),
                           BatchNormGraph(Activation::kRelu, 0.1)};
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "pnn", "mlp"}) {
    jobs.push_back(TestJob(type));
  }
  for (const Job& job : jobs) {
    SCOPED_TRACE(job.model.type);
    ModelRun wide(job, *executor_), half(InBf16(job), *executor_);
    EXPECT_THAT(half.model().Describe(), HasSubstr("precision=bf16"));
    EXPECT_THAT(wide.model().Describe(), Not(HasSubstr("precision")));
    const Batch batch = TestBatch(job, {200, 3, true, 4});
    const ModelRun::Gradients right = wide.Step(batch), is = half.Step(batch);
    EXPECT_NEAR(is.loss_sum / right.loss_sum, 1, 0x1p-8);
    EXPECT_NE(is.dense, right.dense) << "nothing was rounded";
    EXPECT_LE(Distance(is.dense, right.dense), 0x1p-5);
    for (size_t t = 0; t < right.rows.size(); ++t) {
      EXPECT_LE(Distance(is.rows[t], right.rows[t]), 0x1p-5) << "table " << t;
    }
    std::vector<float> probabilities;
    EXPECT_DOUBLE_EQ(half.Predict(batch, &probabilities), half.Step(batch).loss_sum);
  }
}

// Rows' gradients first and tensors later, or all in their order: the same bits.
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

// Batches of other sizes in between leave no trace.
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

// Distinct rows are multiplied in fp32, by whoever asks for that; the layers above stay in bf16.
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
