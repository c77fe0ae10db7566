// Tests one step of a model whose dense weights stay on the device: bytes over the bus, memory of
// the device, and layers in the middle that the host computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "kernels/dense_ops.h"
#include "tests/cuda_on_cpu/stand_in.h"
#include "tests/worker/model/expect_e2.h"
#include "tests/worker/model/model_fixture.h"

namespace hdps {
namespace {

using cuda_on_cpu::Counters;
using cuda_on_cpu::CountersNow;

size_t AlignedUp(size_t bytes) { return (bytes + 15) / 16 * 16; }

// A batch, and rows for its keys.
class StepOnDevice {
 public:
  StepOnDevice(const Job& job, const BatchOptions& options)
      : job_(job), executor_(NewInlineExecutor()), batch_(TestBatch(job, options)) {
    Result<std::unique_ptr<Model>> model = NewModel(job, *executor_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    gradients_.emplace(&model_->ops());
    KeyFinder finder(job);
    finder.Find(batch_, &sets_);
    inputs_.resize(job.tables.size());
    rows_.resize(job.tables.size());
    for (size_t t = 0; t < inputs_.size(); ++t) {
      if (finder.table_keys()[t] < 0) continue;
      const KeySet& set = sets_[static_cast<size_t>(finder.table_keys()[t])];
      rows_[t].assign(set.unique.size() * job.tables[t].dim, 0.25f);
      inputs_[t] = {&set, rows_[t]};
    }
    model_->SetDense(model_->InitialDense(1));
    model_->ops().Finish();
  }

  void Step() {
    const size_t floats = model_->dense_floats();
    model_->Step(batch_, inputs_, &result_, DenseGradients(gradients_->Reserve(floats), floats));
  }
  // Bytes of one step: rows, offsets and rows of keys of the layers, numbers, labels.
  size_t BytesUp() const {
    size_t bytes = 0;
    for (const LayerSpec& layer : job_.model.layers) {
      if (layer.kind != "embedding") continue;
      const size_t features = layer.features.empty() ? batch_.sparse.size() : layer.features.size();
      size_t keys = 0;
      for (size_t f = 0; f < features; ++f) keys += batch_.sparse[f].keys.size();
      bytes += AlignedUp(4 * (features * batch_.num_examples + 1)) + AlignedUp(4 * keys);
    }
    for (const auto& rows : rows_) bytes += AlignedUp(4 * rows.size());
    return bytes + AlignedUp(4 * batch_.numeric.size()) + 4 * batch_.labels.size();
  }
  // Gradients of rows, and the sum of the losses.
  size_t BytesDown() const {
    size_t bytes = 16;
    for (const auto& rows : rows_) bytes += AlignedUp(4 * rows.size());
    return bytes;
  }
  const Batch& batch() const { return batch_; }
  DenseOps& ops() { return model_->ops(); }

 private:
  const Job job_;
  const std::unique_ptr<Executor> executor_;
  const Batch batch_;
  std::unique_ptr<Model> model_;
  std::optional<DeviceArray> gradients_;
  std::vector<KeySet> sets_;
  std::vector<TableInput> inputs_;
  std::vector<std::vector<float>> rows_;
  StepResult result_;
};

Job OnGpu(Job job) {
  job.model.device = "cuda";
  return job;
}

// The host makes four calls per step: a copy up, a graph, a copy down, a wait. It starts no kernel
// or product alone, and no dense tensor crosses the bus.
TEST(StepOnDevice, OneCopyUpOneGraphAndOneCopyDown) {
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm"}) {
    StepOnDevice step(OnGpu(TestJob(type)), {.num_examples = 96});
    step.Step();  // Warms up: memory grows.
    for (int i = 0; i < 3; ++i) {
      const Counters before = CountersNow();
      step.Step();
      const Counters after = CountersNow();
      const uint64_t kernels = after.kernels - before.kernels;
      const uint64_t products = after.products - before.products;
      const uint64_t updates = after.graph_updates - before.graph_updates;
      EXPECT_EQ(after.up_copies - before.up_copies, 1u) << type;
      EXPECT_EQ(after.down_copies - before.down_copies, 1u) << type;
      EXPECT_EQ(after.up_bytes - before.up_bytes, step.BytesUp()) << type;
      EXPECT_EQ(after.down_bytes - before.down_bytes, step.BytesDown()) << type;
      EXPECT_EQ(after.graph_launches - before.graph_launches, 1u) << type;
      EXPECT_EQ(updates, i == 0 ? 0u : 1u) << type;
      EXPECT_EQ(after.graphs_built - before.graphs_built, i == 0 ? 1u : 0u) << type;
      EXPECT_EQ(after.in_graphs - before.in_graphs, kernels + products) << type;
      if (i < 2) continue;
      std::printf(
          "%-9s of %u examples: %lu bytes up, %lu down, 1 copy each, 1 graph of %lu kernels and "
          "%lu products (%lu with an epilogue), 0 outside\n",
          type, step.batch().num_examples, after.up_bytes - before.up_bytes,
          after.down_bytes - before.down_bytes, kernels, products,
          after.epilogues - before.epilogues);
    }
  }
}

// Reports copies and the computation between them by the host's clock; nothing without an observer.
TEST(StepOnDevice, TellsWhenItCopiesAndComputes) {
  using enum DeviceSpan::Kind;
  StepOnDevice step(OnGpu(TestJob("wide_deep")), {.num_examples = 96});
  step.Step();
  EXPECT_TRUE(step.ops().TakeSpans().empty());
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t begin = clock->NowNs();
  step.ops().WatchSpans(*clock);
  constexpr int kSteps = 3;
  for (int i = 0; i < kSteps; ++i) {
    step.Step();
    step.ops().EndSpan();
  }
  const std::vector<DeviceSpan> spans = step.ops().TakeSpans();
  const int64_t end = clock->NowNs();
  std::map<DeviceSpan::Kind, std::vector<DeviceSpan>> of_kind;
  for (const DeviceSpan& span : spans) {
    EXPECT_LE(span.begin_ns, span.end_ns);
    // A device's times are floats of milliseconds.
    EXPECT_GE(span.begin_ns, begin - 1000);
    EXPECT_LE(span.end_ns, end + 1000);
    of_kind[span.kind].push_back(span);
  }
  ASSERT_EQ(of_kind[kCopyUp].size(), size_t{kSteps});
  ASSERT_EQ(of_kind[kCopyDown].size(), size_t{kSteps});
  ASSERT_GE(of_kind[kCompute].size(), size_t{kSteps});
  for (int i = 0; i < kSteps; ++i) {
    const DeviceSpan& up = of_kind[kCopyUp][i];
    const DeviceSpan& down = of_kind[kCopyDown][i];
    EXPECT_LE(up.end_ns, down.begin_ns + 1000);
    const auto between = std::ranges::count_if(of_kind[kCompute], [&](const DeviceSpan& span) {
      return span.begin_ns + 1000 >= up.end_ns && span.end_ns <= down.begin_ns + 1000;
    });
    EXPECT_GE(between, 1) << "step " << i;
  }
  step.Step();
  EXPECT_TRUE(step.ops().TakeSpans().empty());
}

// The host computes the products, the lookups, or every other layer: the same but for rounding.
TEST(StepOnDevice, LayersMayBeComputedByTheHost) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const Job plain = TestJob("wide_deep");
  const Batch batch = TestBatch(plain, {.num_examples = 70, .keys_max = 2});
  ModelRun cpu(plain, *executor);
  const ModelRun::Gradients expected = cpu.Step(batch);
  std::set<std::string> kinds;
  for (const LayerSpec& layer : plain.model.layers) kinds.insert(layer.kind);
  std::vector<std::function<bool(const LayerSpec&, size_t)>> choices = {
      [](const LayerSpec&, size_t i) { return i % 2 == 0; },
      [](const LayerSpec&, size_t i) { return i % 2 == 1; },
      [](const LayerSpec&, size_t) { return true; },
  };
  for (const std::string& kind : kinds) {
    choices.push_back([kind](const LayerSpec& layer, size_t) { return layer.kind == kind; });
  }
  for (const auto& on_host : choices) {
    Job job = OnGpu(plain);
    std::string hosted;
    for (size_t i = 0; i < job.model.layers.size(); ++i) {
      if (!on_host(job.model.layers[i], i)) continue;
      job.model.layers[i].device = "cpu";
      hosted += job.model.layers[i].name + " ";
    }
    SCOPED_TRACE(hosted);
    ModelRun mixed(job, *executor);
    for (int again = 0; again < 2; ++again) {
      const ModelRun::Gradients found = mixed.Step(batch);
      EXPECT_NEAR(found.loss_sum, expected.loss_sum, 1e-5 * std::fabs(expected.loss_sum));
      ExpectE2(found.dense, expected.dense);
      for (size_t t = 0; t < found.rows.size(); ++t) ExpectE2(found.rows[t], expected.rows[t]);
    }
    const std::string text = mixed.model().Describe();
    for (const LayerSpec& layer : job.model.layers) {
      const char* const device = layer.device == "cpu" ? "cpu" : "cuda";
      EXPECT_THAT(text, testing::HasSubstr("layer " + layer.name + " kind=" + layer.kind +
                                           " device=" + device));
    }
  }
}

TEST(StepOnDevice, ATableIsReadOnOneSide) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Job job = OnGpu(TestGraph({TestLayer("a", "embedding", {}, {.table = "deep"}),
                             TestLayer("b", "embedding", {}, {.table = "deep"}),
                             TestLayer("both", "concat", {"a", "b"}),
                             TestLayer("out", "dense", {"both"}, {.units = 1, .table = ""})}));
  job.model.layers[0].device = "cpu";
  const auto refused = NewModel(job, *executor);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(),
              testing::AllOf(testing::HasSubstr("\"a\""), testing::HasSubstr("\"b\""),
                             testing::HasSubstr("\"deep\"")));
}

}  // namespace
}  // namespace hdps
