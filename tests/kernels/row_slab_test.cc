// Rows of a slab on every implementation of DenseOps, against the rules of rows at the servers.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "common/platform/random.h"
#include "embedding/memory/optimizer.h"
#include "tests/embedding/row_optimizers.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

constexpr uint32_t kRows = 300;

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = UnitFloat(RandomAt(seed, i)) - 0.5f;
  return values;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Every third row of n is outside; the others are distinct slots in no order.
std::vector<uint32_t> SomeSlots(size_t n, uint64_t seed) {
  std::vector<uint32_t> all(kRows);
  for (uint32_t s = 0; s < kRows; ++s) all[s] = s;
  Random random(seed);
  for (size_t s = kRows - 1; s > 0; --s) std::swap(all[s], all[random.Below(s + 1)]);
  std::vector<uint32_t> slots(n);
  for (size_t i = 0; i < n; ++i) slots[i] = i % 3 == 1 ? kNotInSlab : all[i];
  return slots;
}

class SlabOnDevice {
 public:
  SlabOnDevice(DenseOps& ops, uint32_t dim, uint32_t state_floats)
      : ops_(ops), array_(&ops), slab_{nullptr, dim, state_floats} {
    slab_.data = array_.Reserve(size_t{kRows} * slab_.row_floats());
    for (uint32_t s = 0; s < kRows; ++s) every_.push_back(s);
  }
  void Set(std::span<const float> rows) { ops_.WriteSlab(rows, every_, slab_); }
  std::vector<float> Get() {
    std::vector<float> rows(size_t{kRows} * slab_.row_floats());
    ops_.ReadSlab(slab_, every_, rows);
    return rows;
  }
  const RowSlab& slab() const { return slab_; }

 private:
  DenseOps& ops_;
  DeviceArray array_;
  RowSlab slab_;
  std::vector<uint32_t> every_;
};

TEST_P(DenseOpsTest, SlabRowsAreWrittenReadAndGatheredBySlot) {
  for (const uint32_t dim : {1u, 5u, 80u}) {
    SlabOnDevice on_device(*ops_, dim, 2 * dim + 1);
    const size_t floats = on_device.slab().row_floats();
    std::vector<float> rows = RandomFloats(kRows * floats, dim);
    on_device.Set(rows);
    EXPECT_TRUE(SameBits(on_device.Get(), rows));

    const std::vector<uint32_t> slots = SomeSlots(200, dim);
    const std::vector<float> outside = RandomFloats(slots.size() * dim, 7);
    std::vector<float> expected = outside;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] == kNotInSlab) continue;
      std::copy_n(rows.data() + slots[i] * floats, dim, expected.data() + i * dim);
    }
    DeviceArray gathered(ops_.get());
    ops_->GatherRows(on_device.slab(), slots, outside, gathered.Reserve(outside.size()));
    std::vector<float> got(outside.size());
    ops_->Download(gathered.data(), got);
    EXPECT_TRUE(SameBits(got, expected)) << "dim " << dim;
    if (ops_->on_host()) {  // Also in place.
      std::vector<float> in_place = outside;
      ops_->GatherRows(on_device.slab(), slots, in_place, in_place.data());
      EXPECT_TRUE(SameBits(in_place, expected));
    }

    std::vector<float> to(outside.size(), -3.0f);
    ops_->FetchOutside(slots, dim, gathered.data(), to);
    ops_->Fetch();
    for (size_t i = 0; i < slots.size(); ++i) {
      const std::span<const float> row(to.data() + i * dim, dim);
      if (slots[i] == kNotInSlab) {
        EXPECT_TRUE(SameBits(row, std::span(outside).subspan(i * dim, dim))) << i;
      } else {
        EXPECT_EQ(row[0], -3.0f) << i;
      }
    }

    const std::vector<uint32_t> few = {17, 3, 299};
    const std::vector<float> fresh = RandomFloats(few.size() * floats, 11);
    ops_->WriteSlab(fresh, few, on_device.slab());
    for (size_t i = 0; i < few.size(); ++i) {
      std::copy_n(fresh.data() + i * floats, floats, rows.data() + few[i] * floats);
    }
    EXPECT_TRUE(SameBits(on_device.Get(), rows));
  }
}

TEST_P(DenseOpsTest, SlabRowsChangeAsTheServersRowsDo) {
  for (const OptimizerKind kind : RowOptimizers()) {
    for (const uint32_t dim : {1u, 7u, 80u}) {
      SCOPED_TRACE(testing::Message() << OptimizerName(kind) << " dim " << dim);
      OptimizerSpec rule = DefaultsOf(kind);
      rule.learning_rate = 0.05f;
      rule.weight_decay = 0.01f;
      rule.l1 = 0.1f;
      rule.l2 = 0.02f;
      const uint32_t state_floats = StateFloats(rule, dim);
      SlabOnDevice on_device(*ops_, dim, state_floats);
      const size_t floats = on_device.slab().row_floats();
      std::vector<float> rows = RandomFloats(kRows * floats, 1);
      for (uint32_t s = 0; s < kRows; ++s) {
        InitState(rule, dim, std::span(rows).subspan(s * floats + dim, state_floats));
      }
      on_device.Set(rows);
      DeviceArray device_gradients(ops_.get());
      for (int64_t step = 1; step <= 5; ++step) {
        const std::vector<uint32_t> slots = SomeSlots(250, static_cast<uint64_t>(step));
        const std::vector<float> gradients =
            RandomFloats(slots.size() * dim, 100 + static_cast<uint64_t>(step));
        const RowUpdate update{rule, step, 1.0f / 3.0f, 1.0f / 7.0f};
        ops_->Upload(gradients, device_gradients.Reserve(gradients.size()));
        EXPECT_TRUE(ops_->UpdateRows(update, slots, device_gradients.data(), on_device.slab()));
        for (size_t i = 0; i < slots.size(); ++i) {
          if (slots[i] == kNotInSlab) continue;
          std::vector<float> gradient(dim);
          for (uint32_t d = 0; d < dim; ++d) {
            gradient[d] = (gradients[i * dim + d] * update.part_scale) * update.scale;
          }
          const std::span<float> row = std::span(rows).subspan(slots[i] * floats, floats);
          UpdateRow(rule, step, gradient, row.first(dim), row.subspan(dim));
        }
        ASSERT_TRUE(SameBits(on_device.Get(), rows)) << "step " << step;
      }
    }
  }
}

// All rows of a slab at once, as those of dense tensors are.
TEST_P(DenseOpsTest, FirstRowsChangeAsThoseOfTheirSlots) {
  constexpr uint32_t kDim = 80, kCount = 123;
  for (const OptimizerKind kind : RowOptimizers()) {
    OptimizerSpec rule = DefaultsOf(kind);
    rule.learning_rate = 0.05f;
    const uint32_t state_floats = StateFloats(rule, kDim);
    SlabOnDevice by_slots(*ops_, kDim, state_floats), first(*ops_, kDim, state_floats);
    std::vector<float> rows = RandomFloats(kRows * first.slab().row_floats(), 1);
    for (uint32_t s = 0; s < kRows; ++s) {
      InitState(rule, kDim,
                std::span(rows).subspan(s * first.slab().row_floats() + kDim, state_floats));
    }
    by_slots.Set(rows);
    first.Set(rows);
    std::vector<uint32_t> slots(kCount);
    std::iota(slots.begin(), slots.end(), 0u);
    DeviceArray gradients(ops_.get());
    for (int64_t step = 1; step <= 3; ++step) {
      ops_->Upload(RandomFloats(kCount * kDim, 100 + static_cast<uint64_t>(step)),
                   gradients.Reserve(kCount * kDim));
      const RowUpdate update{rule, step, 1, 1.0f / 7.0f};
      EXPECT_TRUE(ops_->UpdateRows(update, slots, gradients.data(), by_slots.slab()));
      ops_->UpdateFirstRows(update, kCount, gradients.data(), first.slab());
      const std::vector<float> now = first.Get();
      ASSERT_TRUE(SameBits(now, by_slots.Get())) << OptimizerName(kind) << " step " << step;
      ASSERT_FALSE(SameBits(now, rows)) << OptimizerName(kind);
    }
  }
}

// What was uploaded and asked for in turns arrives in the order of the calls, whatever travels
// together.
TEST_P(DenseOpsTest, CopiesKeepTheOrderOfTheCalls) {
  constexpr size_t kFloats = 5000;
  DeviceArray a(ops_.get()), b(ops_.get());
  a.Reserve(kFloats);
  b.Reserve(kFloats);
  const std::vector<float> first = RandomFloats(kFloats, 1), second = RandomFloats(kFloats, 2);
  const auto whole = [](DeviceArray& array) { return Matrix{array.data(), 1, kFloats, kFloats}; };
  std::vector<float> gone = first;
  ops_->Upload(gone, a.data());
  gone.assign(kFloats, 99.0f);  // It may be reused at once.
  ops_->Upload(second, a.data());
  ops_->Upload(first, b.data());
  ops_->Copy(Write::kAdd, whole(a), whole(b));
  std::vector<float> sum(kFloats), before(kFloats), odd(777);
  ops_->FetchLater(b.data(), sum);
  ops_->FetchLater(a.data(), before);
  ops_->FetchLater(a.data() + 3, odd);
  ops_->StartFetches();
  ops_->FillZero(a.data(), kFloats);  // Behind what was asked for.
  ops_->Upload(first, b.data());
  ops_->Copy(Write::kOver, whole(b), whole(a));
  ops_->EndFetches();
  for (size_t i = 0; i < kFloats; ++i) ASSERT_EQ(sum[i], first[i] + second[i]) << i;
  EXPECT_TRUE(SameBits(before, second));
  EXPECT_TRUE(SameBits(odd, std::span(second).subspan(3, odd.size())));
  std::vector<float> after(kFloats);
  ops_->Download(a.data(), after);
  EXPECT_TRUE(SameBits(after, first));
}

TEST_P(DenseOpsTest, AGradientThatIsNoNumberIsNoticed) {
  OptimizerSpec rule;
  SlabOnDevice on_device(*ops_, 3, StateFloats(rule, 3));
  on_device.Set(std::vector<float>(kRows * on_device.slab().row_floats(), 0.5f));
  const std::vector<uint32_t> slots = {5, kNotInSlab, 9};
  DeviceArray gradients(ops_.get());
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e38f}) {
    std::vector<float> values(9, 1.0f);
    values[4] = bad;  // Of the row outside: not looked at.
    ops_->Upload(values, gradients.Reserve(values.size()));
    const RowUpdate update{rule, 1, 1.0f, 100.0f};
    EXPECT_TRUE(ops_->UpdateRows(update, slots, gradients.data(), on_device.slab()));
    values[8] = bad;
    ops_->Upload(values, gradients.data());
    EXPECT_FALSE(ops_->UpdateRows(update, slots, gradients.data(), on_device.slab())) << bad;
  }
  EXPECT_TRUE(ops_->UpdateRows({rule, 1, 1, 1}, {}, nullptr, on_device.slab()));
}

}  // namespace
}  // namespace hdps
