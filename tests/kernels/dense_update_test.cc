// Dense updates of DenseOps against the rules of the rows.
#include <gtest/gtest.h>

#include "embedding/memory/optimizer.h"
#include "kernels/update_rules.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

// One row as wide as the tensor: the same rule, weight by weight. Ten steps within E2.
TEST_P(DenseOpsTest, UpdatesAgreeWithTheRulesOfRows) {
  constexpr uint32_t kSize = 1037;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
        OptimizerKind::kAdam, OptimizerKind::kLazyAdam, OptimizerKind::kAdamW,
        OptimizerKind::kFtrl}) {
    SCOPED_TRACE(testing::Message() << "rule " << static_cast<int>(kind));
    OptimizerSpec spec;
    spec.kind = kind;
    spec.learning_rate = 0.05f;
    spec.weight_decay = 0.01f;
    spec.l1 = 0.1f;
    spec.l2 = 0.02f;
    const uint32_t state_floats = StateFloats(spec, kSize);
    ASSERT_EQ(UpdateStateFloats(spec, kSize), state_floats);
    TestMatrix weights(*ops_, 1, kSize, 1, 0), state(*ops_, 1, state_floats, 2, 0);
    InitState(spec, kSize, std::span(state.values()).first(state_floats));
    ops_->Upload(state.values(), state.device().data);
    for (int64_t step = 1; step <= 10; ++step) {
      TestMatrix gradient(*ops_, 1, kSize, 10 + static_cast<uint64_t>(step), 0);
      ops_->Update(spec, step, kSize, gradient.device().data, weights.device().data,
                   state.device().data);
      UpdateRow(spec, step, std::span(gradient.values()).first(kSize),
                std::span(weights.values()).first(kSize),
                std::span(state.values()).first(state_floats));
    }
    const std::vector<float> new_weights = weights.Fetch(), new_state = state.Fetch();
    for (size_t i = 0; i < kSize; ++i) {
      ASSERT_NEAR(new_weights[i], weights.values()[i], 1e-5f) << i;
    }
    for (size_t i = 0; i < state_floats; ++i) {
      ASSERT_NEAR(new_state[i], state.values()[i], 1e-5f * std::max(1.0f, new_state[i])) << i;
    }
  }
}

}  // namespace
}  // namespace hdps
