// Tests a worker's dense table against one slice that is updated as a whole, like at a server.
#include "worker/dense/dense_state.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/memory/gradient_scale.h"

namespace hdps {
namespace {

std::vector<DenseTensor> Tensors(const std::vector<size_t>& chunks) {
  std::vector<DenseTensor> tensors;
  size_t first = 0;
  for (const size_t count : chunks) {
    DenseTensor tensor;
    tensor.first_chunk = first;
    tensor.num_chunks = count;
    tensors.push_back(tensor);
    first += count;
  }
  return tensors;
}

TableSpec DenseTable(OptimizerKind kind) {
  TableSpec spec;
  spec.name = "dense";
  spec.dim = 8;
  spec.optimizer.record = &RecordOf(kind);
  spec.dense = true;
  spec.shard_by = kind == OptimizerKind::kLamb ? ShardBy::kGroup : ShardBy::kKey;
  return spec;
}

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = UnitFloat(RandomAt(seed, i)) - 0.5f;
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(DenseKeys, NumberChunksWithinTheirTensor) {
  EXPECT_EQ(DenseKeys(Tensors({2, 1})), (std::vector<Key>{0, 1, Key{1} << 32}));
  EXPECT_TRUE(DenseKeys({}).empty());
}

class DenseStateTest : public testing::TestWithParam<OptimizerKind> {};

TEST_P(DenseStateTest, ChangesAsAServersTableDoes) {
  const TableSpec spec = DenseTable(GetParam());
  const TableId id{3};
  const std::vector<Key> keys = DenseKeys(Tensors({1, 40, 2, 1, 7}));
  TableSlice whole(spec, id, 7);
  HostDenseState state(spec, id, 7, keys);
  const std::unique_ptr<Executor> executor = NewTbbExecutor(3);
  const std::vector<float> first = RandomFloats(keys.size() * spec.dim, 1);
  whole.Store(keys, spec.dim, first);
  std::vector<float> rows(keys.size() * state.row_floats());
  whole.Read(keys, state.row_floats(), rows);
  state.Store(rows);

  for (int64_t step = 1; step <= 5; ++step) {
    // Two workers at the server; here their sum in rank order.
    const std::vector<float> a = RandomFloats(first.size(), 100 + step);
    const std::vector<float> b = RandomFloats(first.size(), 200 + step);
    std::vector<float> sum = a;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
    const float scale = SumScale(ParallelSpec(), 2, 48 + step);
    const TableSlice::Gradients parts[] = {{keys, a, 1.0f}, {keys, b, 1.0f}};
    whole.Apply(parts, scale, step);
    state.Apply(*executor, sum, {scale, step});
    whole.Read(keys, state.row_floats(), rows);
    EXPECT_TRUE(SameBits(state.Rows(), rows)) << "step " << step;
    std::vector<float> flat(first.size()), expected(first.size());
    state.ReadWeights(*executor, flat);
    whole.Read(keys, spec.dim, expected);
    EXPECT_TRUE(SameBits(flat, expected)) << "step " << step;
    EXPECT_FALSE(SameBits(flat, first));
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, DenseStateTest,
                         testing::Values(OptimizerKind::kSgd, OptimizerKind::kMomentum,
                                         OptimizerKind::kAdagrad, OptimizerKind::kAdam,
                                         OptimizerKind::kAdamW, OptimizerKind::kFtrl,
                                         OptimizerKind::kLamb));

// Running averages are updated by their momentum, other tensors by the rule.
TEST_P(DenseStateTest, RunningAveragesHaveARuleOfTheirOwn) {
  TableSpec spec = DenseTable(GetParam());
  spec.averaged = {{1, 0.75f}, {2, 0.5f}};
  const std::vector<Key> keys = DenseKeys(Tensors({2, 1, 2, 1}));
  const std::unique_ptr<Executor> executor = NewTbbExecutor(3);
  const std::vector<float> first = RandomFloats(keys.size() * spec.dim, 1);
  std::vector<float> gradients = RandomFloats(first.size(), 2);
  const auto after_steps = [&](const TableSpec& of) {
    HostDenseState state(of, {3}, 7, keys);
    TableSlice rows(of, {3}, 7);
    rows.Store(keys, of.dim, first);
    std::vector<float> whole(keys.size() * state.row_floats());
    rows.Read(keys, state.row_floats(), whole);
    state.Store(whole);
    state.Apply(*executor, gradients, {0.5f, 1});
    // The same in two parts at a server.
    const std::vector<float> nothing(gradients.size());
    const TableSlice::Gradients parts[] = {{keys, gradients, 1.0f}, {keys, nothing, 1.0f}};
    rows.Apply(parts, 0.5f, 1);
    rows.Read(keys, state.row_floats(), whole);
    EXPECT_TRUE(SameBits(state.Rows(), whole));
    std::vector<float> flat(first.size());
    state.ReadWeights(*executor, flat);
    return flat;
  };
  const std::vector<float> found = after_steps(spec);
  spec.averaged.clear();
  const std::vector<float> plain = after_steps(spec);
  for (size_t i = 0; i < found.size(); ++i) {
    const uint64_t tensor = keys[i / spec.dim] >> 32;
    const float rate = tensor == 1 ? 0.25f : 0.5f;
    const bool averaged = tensor == 1 || tensor == 2;
    ASSERT_EQ(found[i], averaged ? first[i] - rate * (gradients[i] * 0.5f) : plain[i]) << i;
  }
}

TEST(DenseState, MayBeEmpty) {
  HostDenseState state(DenseTable(OptimizerKind::kSgd), {0}, 1, {});
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  state.Store({});
  state.Apply(*executor, {}, {1, 1});
  EXPECT_TRUE(state.Rows().empty());
}

}  // namespace
}  // namespace hdps
