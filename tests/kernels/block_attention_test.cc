// Tests attention in blocks of examples: an example has the same bits in any place of a batch, and
// its gradients of the weights come into the sum from each band. layers_test compares the layers
// above with differences, reference_test with PyTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "common/job/activation.h"
#include "common/platform/random.h"
#include "kernels/products/field_attention.h"
#include "kernels/products/target_attention.h"

namespace hdps {
namespace {

constexpr size_t kGap = 5;  // Behind the rows of every matrix.

std::vector<float> Randoms(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(2.0 * random.Unit() - 1.0);
  return values;
}

// A matrix with gaps behind its rows or, if they are wanted, without.
struct Rows {
  Rows(size_t rows, size_t cols, uint64_t seed, size_t gap = kGap)
      : view{nullptr, rows, cols, cols + gap}, values(Randoms(rows * view.stride + 1, seed)) {
    view.data = values.data();
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  // Returns rows [first, first + count) without what is between them.
  std::vector<float> Of(size_t first, size_t count) const {
    std::vector<float> of;
    for (size_t r = first; r < first + count; ++r) {
      of.insert(of.end(), view.Row(r), view.Row(r) + view.cols);
    }
    return of;
  }
  Matrix view;
  std::vector<float> values;
};

// Returns a + b, element by element.
std::vector<float> Added(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// The examples of a batch that share neither a block nor a band, with the first and the last.
std::vector<size_t> SomeOf(size_t n) { return {0, n / 3, n - 1}; }
constexpr size_t kBatches[] = {1, 3, 40, 701};

// ---- self-attention.

struct FieldCase {
  AttentionShape shape;
  size_t gap;
};
const FieldCase kFieldCases[] = {{{5, 3, 2, 3}, kGap}, {{26, 16, 2, 16}, 0}, {{17, 32, 1, 24}, 0}};

// Runs the layer over a part of a batch, with the gradient of all examples but some set to 0.
struct FieldRun {
  FieldRun(const FieldCase& of, size_t n)
      : shape(of.shape),
        x(n, shape.fields * shape.dim, 1, of.gap),
        y(n, shape.fields * shape.units(), 2),
        dy(n, shape.fields * shape.units(), 3),
        dx(n, shape.fields * shape.dim, 4),
        weights(Randoms(kAttentionProjections * shape.dim * shape.units(), 5)),
        gradients(weights.size()) {}

  template <typename Float>
  AttentionTensors<Float> Tensors(Float* first) const {
    AttentionTensors<Float> tensors;
    for (size_t i = 0; i < kAttentionProjections; ++i) {
      tensors[i] = first + i * shape.dim * shape.units();
    }
    return tensors;
  }
  void Run(Executor& executor, size_t first, size_t count, Write write) {
    FieldAttention layer(executor);
    const auto tensors = Tensors<const float>(weights.data());
    layer.Forward(shape, tensors, x.view.Rows(first, count), y.view.Rows(first, count));
    layer.Backward(
        shape, tensors,
        {x.view.Rows(first, count), y.view.Rows(first, count), dy.view.Rows(first, count),
         Tensors(gradients.data()), dx.view.Rows(first, count), write});
  }

  AttentionShape shape;
  Rows x, y, dy, dx;
  std::vector<float> weights, gradients;
};

TEST(FieldAttentionTest, AnExampleIsTheSameAloneAndInABatchOnSomeThreads) {
  const std::unique_ptr<Executor> one = NewInlineExecutor(), three = NewTbbExecutor(3);
  for (const FieldCase& of : kFieldCases) {
    for (const size_t n : kBatches) {
      for (const Write write : {Write::kOver, Write::kAdd}) {
        FieldRun batch(of, n);
        batch.Run(*three, 0, n, write);
        for (const size_t i : SomeOf(n)) {
          FieldRun alone(of, n);
          alone.Run(*one, i, 1, write);
          ASSERT_EQ(alone.y.Of(i, 1), batch.y.Of(i, 1)) << i << " of " << n;
          ASSERT_EQ(alone.dx.Of(i, 1), batch.dx.Of(i, 1)) << i << " of " << n;
        }
        EXPECT_EQ(batch.dx.values[batch.dx.view.stride - 1],
                  Rows(1, 1, 4, batch.dx.view.stride).values[batch.dx.view.stride - 1])
            << "the gaps between the rows stay";
      }
    }
  }
}

TEST(FieldAttentionTest, GradientsOfWeightsAreAddedOverAllBands) {
  const std::unique_ptr<Executor> one = NewInlineExecutor(), three = NewTbbExecutor(3);
  for (const FieldCase& of : kFieldCases) {
    constexpr size_t kExamples = 701;
    const auto with_gradients_of = [&](const std::vector<size_t>& examples) {
      FieldRun batch(of, kExamples);
      const Rows dy(kExamples, batch.dy.view.cols, 3);
      std::fill(batch.dy.values.begin(), batch.dy.values.end(), 0.0f);
      for (const size_t i : examples) {
        std::copy_n(dy.view.Row(i), dy.view.cols, batch.dy.view.Row(i));
      }
      batch.Run(*three, 0, kExamples, Write::kOver);
      return batch.gradients;
    };
    std::vector<float> sum(FieldRun(of, 1).gradients.size());
    for (const size_t i : SomeOf(kExamples)) {
      FieldRun alone(of, kExamples);
      alone.Run(*one, i, 1, Write::kOver);
      ASSERT_EQ(with_gradients_of({i}), alone.gradients) << i;
      sum = Added(sum, alone.gradients);
    }
    EXPECT_EQ(with_gradients_of(SomeOf(kExamples)), sum);
  }
}

// ---- attention to a target.

struct TargetCase {
  TargetAttentionShape shape;
  size_t length;
};
const TargetCase kTargetCases[] = {{{4, 5, Activation::kSigmoid, false}, 3},
                                   {{16, 36, Activation::kSigmoid, true}, 30},
                                   {{8, 16, Activation::kTanh, false}, 7}};

struct TargetRun {
  TargetRun(const TargetCase& of, size_t n)
      : shape(of.shape),
        keys(n, of.length * shape.dim, 1),
        target(n, shape.dim, 2),
        y(n, shape.dim, 3),
        dy(n, shape.dim, 4),
        dkeys(n, of.length * shape.dim, 5),
        dtarget(n, shape.dim, 6),
        tensors(Randoms((4 * shape.dim + 2) * shape.units + 1, 7)),
        gradients(tensors.size()) {
    for (size_t i = 0; i < n; ++i) counts.push_back(static_cast<float>(i * 7 % (of.length + 1)));
  }

  template <typename Float>
  TargetAttentionTensors<Float> Tensors(Float* first) const {
    Float* const bias = first + 4 * shape.dim * shape.units;
    Float* const score = bias + shape.units;
    return {first, bias, score, shape.softmax ? nullptr : score + shape.units};
  }
  void Run(Executor& executor, size_t first, size_t count, Write write) {
    TargetAttention layer(executor);
    const auto of = Tensors<const float>(tensors.data());
    const TargetAttentionInput input{counts.data() + first, keys.view.Rows(first, count),
                                     target.view.Rows(first, count)};
    layer.Forward(shape, of, input, y.view.Rows(first, count));
    layer.Backward(shape, of, input,
                   {dy.view.Rows(first, count), Tensors(gradients.data()),
                    dkeys.view.Rows(first, count), write, dtarget.view.Rows(first, count), write});
  }

  TargetAttentionShape shape;
  std::vector<float> counts;
  Rows keys, target, y, dy, dkeys, dtarget;
  std::vector<float> tensors, gradients;
};

TEST(TargetAttentionTest, AnExampleIsTheSameAloneAndInABatchOnSomeThreads) {
  const std::unique_ptr<Executor> one = NewInlineExecutor(), three = NewTbbExecutor(3);
  for (const TargetCase& of : kTargetCases) {
    for (const size_t n : kBatches) {
      for (const Write write : {Write::kOver, Write::kAdd}) {
        TargetRun batch(of, n);
        batch.Run(*three, 0, n, write);
        for (const size_t i : SomeOf(n)) {
          TargetRun alone(of, n);
          alone.Run(*one, i, 1, write);
          ASSERT_EQ(alone.y.Of(i, 1), batch.y.Of(i, 1)) << i << " of " << n;
          ASSERT_EQ(alone.dkeys.Of(i, 1), batch.dkeys.Of(i, 1)) << i << " of " << n;
          ASSERT_EQ(alone.dtarget.Of(i, 1), batch.dtarget.Of(i, 1)) << i << " of " << n;
        }
      }
    }
  }
}

TEST(TargetAttentionTest, BehindTheLastVectorGradientsAreZeroOrStay) {
  const std::unique_ptr<Executor> one = NewInlineExecutor();
  const TargetCase& of = kTargetCases[0];
  for (const Write write : {Write::kOver, Write::kAdd}) {
    TargetRun run(of, 40);
    const std::vector<float> before = run.dkeys.values;
    run.Run(*one, 0, 40, write);
    for (size_t i = 0; i < 40; ++i) {
      const size_t row = i * run.dkeys.view.stride;
      for (auto c = static_cast<size_t>(run.counts[i]) * of.shape.dim; c < run.dkeys.view.cols;
           ++c) {
        ASSERT_EQ(run.dkeys.values[row + c], write == Write::kOver ? 0.0f : before[row + c]);
      }
    }
  }
}

TEST(TargetAttentionTest, GradientsOfWeightsAreAddedOverAllBands) {
  const std::unique_ptr<Executor> one = NewInlineExecutor(), three = NewTbbExecutor(3);
  for (const TargetCase& of : kTargetCases) {
    constexpr size_t kExamples = 701;
    const auto with_gradients_of = [&](size_t example) {
      TargetRun batch(of, kExamples);
      std::vector<float> kept = batch.dy.Of(example, 1);
      std::fill(batch.dy.values.begin(), batch.dy.values.end(), 0.0f);
      std::copy(kept.begin(), kept.end(), batch.dy.view.Row(example));
      batch.Run(*three, 0, kExamples, Write::kOver);
      return batch.gradients;
    };
    for (const size_t i : {size_t{1}, kExamples / 3, kExamples - 1}) {
      TargetRun alone(of, kExamples);
      alone.Run(*one, i, 1, Write::kOver);
      ASSERT_EQ(with_gradients_of(i), alone.gradients) << i;
    }
  }
}

}  // namespace
}  // namespace hdps
