// Tests that rows keep the bits of earlier versions, so that checkpoints and digests stay valid.
#include <gtest/gtest.h>

#include <vector>

#include "common/base/hash.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/table.h"

namespace hdps {
namespace {

// Hashes the rows after a few steps with `spec`.
uint64_t BitsAfterUpdates(const TableSpec& spec) {
  TableSlice slice(spec, TableId{3}, 5);
  Random random(spec.dim);
  for (int64_t step = 1; step <= 6; ++step) {
    std::vector<Key> keys;
    for (Key key = 0; key < 40; ++key) {
      if (random.Below(3) > 0) keys.push_back(MixBits(key % 8) << 32 | key);
    }
    std::vector<float> gradients(keys.size() * spec.dim);
    for (float& g : gradients) g = static_cast<float>(random.Unit()) - 0.5f;
    const TableSlice::Gradients part{keys, gradients, 0.3f};
    slice.Apply({&part, 1}, 0.7f, step);
  }
  return slice.Digest()->sum[0];
}

TableSpec SpecOf(OptimizerKind rule, WeightFormat format, uint32_t dim) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = dim;
  spec.init = {InitKind::kUniform, 0.25f};
  spec.weights = format;
  spec.optimizer.record = &RecordOf(rule);
  spec.optimizer.learning_rate = 0.05f;
  spec.optimizer.weight_decay = 0.01f;
  spec.optimizer.l1 = 0.02f;
  spec.optimizer.l2 = 0.3f;
  return spec;
}

// Dims with and without special loops, whole vectors and ends of vectors.
uint64_t BitsOf(OptimizerKind rule, WeightFormat format) {
  uint64_t bits = 0;
  for (const uint32_t dim : {1u, 7u, 16u, 64u, 300u}) {
    bits = MixBits(bits ^ BitsAfterUpdates(SpecOf(rule, format, dim)));
  }
  return bits;
}

struct KnownBits {
  OptimizerKind optimizer;
  uint64_t fp32, fp16, bf16;
};
constexpr KnownBits kKnown[] = {
    {OptimizerKind::kSgd, 0x7b7ebf50df5efd04, 0x3713eca9bf648616, 0xaa6ac236bc6ccd25},
    {OptimizerKind::kMomentum, 0xfd82da0c11c162a8, 0xd887105d380ffadd, 0x27928addd7d61d16},
    {OptimizerKind::kAdagrad, 0xa278b9a12cdd65cb, 0x0cbe84ef8fd32695, 0x84f92c7348fff789},
    {OptimizerKind::kRowwiseAdagrad, 0xba73d42489657fc0, 0x41ef25446392f631, 0x0f53d4f091c17e7f},
    {OptimizerKind::kAdam, 0xa0f2e558e39b6468, 0xf116e100ff2fa663, 0xbc35978b333405ef},
    {OptimizerKind::kLazyAdam, 0xe5c7e2cb6439b70f, 0xea6ccbfa67717141, 0x6fc6013ca945c1dc},
    {OptimizerKind::kAdamW, 0x7f20d4126fbe7f16, 0x54f3651c0eb67ff5, 0x8f0001ce87392f1c},
    {OptimizerKind::kFtrl, 0x01203b952f92edba, 0xccfc809ad935148c, 0x07b34f7971f2822e},
};

TEST(OptimizerBits, OfRowsStayAsTheyWere) {
  for (const KnownBits& known : kKnown) {
    SCOPED_TRACE(OptimizerName(known.optimizer));
    EXPECT_EQ(BitsOf(known.optimizer, WeightFormat::kFp32), known.fp32);
    EXPECT_EQ(BitsOf(known.optimizer, WeightFormat::kFp16), known.fp16);
    EXPECT_EQ(BitsOf(known.optimizer, WeightFormat::kBf16), known.bf16);
  }
}

TEST(OptimizerBits, OfWholeTensorsStayAsTheyWere) {
  EXPECT_EQ(BitsOf(OptimizerKind::kLamb, WeightFormat::kFp32), 0x3dd6d983c40dbab3u);
}

}  // namespace
}  // namespace hdps
