// Tests that gradients finished on a device have the bits of those that servers finish.
#include "embedding/memory/update_terms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "kernels/dense_ops.h"

namespace hdps {
namespace {

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> floats(count);
  for (float& value : floats) value = static_cast<float>(random.Normal());
  floats[1] = 0;  // A weight without a sign.
  return floats;
}

TEST(UpdateTerms, FinishAlikeOnAnyDevice) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const std::unique_ptr<DenseOps> ops = NewCpuOps(*executor);
  constexpr size_t kRows = 37, kDim = 24;
  const std::vector<Key> keys(kRows);
  for (const float l1 : {0.0f, 0.01f}) {
    for (const float l2 : {0.0f, 0.02f}) {
      for (const float shrink : {1.0f, 0.37f}) {
        for (const float clip : {0.0f, 0.05f}) {
          TableSpec table;
          table.dim = kDim;
          table.loss_l1 = l1;
          table.loss_l2 = l2;
          const GradientTerms terms(table, {.shrink = shrink, .clip_value = clip});
          std::vector<float> weights = RandomFloats(kRows * kDim, 1);
          std::vector<float> expected = RandomFloats(kRows * kDim, 2), found = expected;
          constexpr float kScale = 1.0f / 7.0f;
          FinishGradients(table, terms, kScale, keys, weights, expected);
          const GradientFinish finish = terms.finish();
          EXPECT_EQ(finish.none(), terms.none());
          for (size_t i = 0; i < found.size(); ++i)
            found[i] = finish(found[i] * kScale, weights[i]);
          EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
              << "l1 " << l1 << " l2 " << l2 << " shrink " << shrink << " clip " << clip;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hdps
