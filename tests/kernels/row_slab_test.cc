// Tests the rows of a slab on every implementation of DenseOps against the servers' update rules.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/square_sum.h"
#include "common/platform/random.h"
#include "embedding/memory/optimizer.h"
#include "kernels/host/slab_update.h"
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

// Returns distinct slots in no order; every third of n rows is outside the slab.
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
      : ops_(ops), array_(&ops), bad_(&ops), slab_{nullptr, dim, state_floats} {
    slab_.data = array_.Reserve(size_t{kRows} * slab_.row_floats());
    for (uint32_t s = 0; s < kRows; ++s) every_.push_back(s);
  }
  void Set(std::span<const float> rows) { Set(rows, every_); }
  void Set(std::span<const float> rows, std::span<const uint32_t> slots) {
    const SlabRows<const float> of = {slab_, rows};
    ops_.WriteSlabs(*Load(slots), {&of, 1});
  }
  std::vector<float> Get() {
    std::vector<float> rows(size_t{kRows} * slab_.row_floats());
    const SlabRows<float> of = {slab_, rows};
    ops_.ReadSlabs(*Load(every_), {&of, 1});
    ops_.Fetch();
    return rows;
  }
  // Returns whether all gradients were finite.
  bool Update(const RowUpdate& update, std::span<const uint32_t> slots, const float* gradients) {
    ops_.FillZero(bad_.Reserve(1), 1);
    ops_.UpdateRows(update, *Load(slots), gradients, slab_, bad_.data());
    return AllFinite();
  }
  std::vector<double> Squares(const RowUpdate& update, std::span<const uint32_t> slots,
                              const float* gradients, bool* finite) {
    std::vector<double> squares(slots.size(), -1.0);
    ops_.FillZero(bad_.Reserve(1), 1);
    ops_.FetchRowSquares(update, *Load(slots), gradients, slab_, squares, bad_.data());
    *finite = AllFinite();
    return squares;
  }
  SlabSlots* Load(std::span<const uint32_t> slots) {
    ops_.LoadSlots(slots, &slots_);
    return slots_.get();
  }
  const RowSlab& slab() const { return slab_; }

 private:
  bool AllFinite() {
    float bad = 0;
    ops_.Download(bad_.data(), {&bad, 1});
    EXPECT_TRUE(bad == 0 || bad == 1);
    return bad == 0;
  }

  DenseOps& ops_;
  std::unique_ptr<SlabSlots> slots_;
  DeviceArray array_, bad_;
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
    // One slot list serves several tables; nothing is copied for the second.
    SlabSlots* const loaded = on_device.Load(slots);
    DeviceArray gathered(ops_.get()), hot_only(ops_.get());
    ops_->BringOutside(*loaded, dim, outside, gathered.Reserve(outside.size()));
    ops_->Upload(std::vector<float>(outside.size(), 9.0f), hot_only.Reserve(outside.size()));
    ops_->GatherRows(*loaded, on_device.slab(), gathered.data());
    ops_->GatherRows(*loaded, on_device.slab(), hot_only.data());
    std::vector<float> got(outside.size()), got_hot(outside.size());
    ops_->Download(gathered.data(), got);
    ops_->Download(hot_only.data(), got_hot);
    EXPECT_TRUE(SameBits(got, expected)) << "dim " << dim;
    for (size_t i = 0; i < got.size(); ++i) {
      const bool hot = slots[i / dim] != kNotInSlab;
      ASSERT_EQ(got_hot[i], hot ? expected[i] : 9.0f) << i;
    }

    std::vector<float> to(outside.size(), -3.0f);
    ops_->FetchOutside(*loaded, dim, gathered.data(), to);
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
    on_device.Set(fresh, few);
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
        RowUpdate update{rule, step, 1.0f / 3.0f, 1.0f / 7.0f, {}};
        // Penalties and clipping in every other step.
        if (step % 2 == 0) update.finish = {0.003f, 0.2f, 0.7f, 0.01f};
        ops_->Upload(gradients, device_gradients.Reserve(gradients.size()));
        EXPECT_TRUE(on_device.Update(update, slots, device_gradients.data()));
        for (size_t i = 0; i < slots.size(); ++i) {
          if (slots[i] == kNotInSlab) continue;
          std::vector<float> gradient(dim);
          const std::span<float> row = std::span(rows).subspan(slots[i] * floats, floats);
          for (uint32_t d = 0; d < dim; ++d) {
            gradient[d] =
                update.finish((gradients[i * dim + d] * update.part_scale) * update.scale, row[d]);
          }
          UpdateRow(rule, step, gradient, row.first(dim), row.subspan(dim));
        }
        ASSERT_TRUE(SameBits(on_device.Get(), rows)) << "step " << step;
      }
    }
  }
}

// Updates all rows of a slab at once, as for dense tensors.
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
      const RowUpdate update{rule, step, 1, 1.0f / 7.0f, {0.01f, 0.02f, 1, 0.03f}};
      EXPECT_TRUE(by_slots.Update(update, slots, gradients.data()));
      ops_->UpdateFirstRows(update, kCount, gradients.data(), first.slab());
      const std::vector<float> now = first.Get();
      ASSERT_TRUE(SameBits(now, by_slots.Get())) << OptimizerName(kind) << " step " << step;
      ASSERT_FALSE(SameBits(now, rows)) << OptimizerName(kind);
    }
  }
}

// Alternating uploads and downloads keep the order of the calls, whatever is copied together.
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
  ops_->FillZero(a.data(), kFloats);  // After the download was requested.
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
    values[4] = bad;  // The row outside the slab is not checked.
    ops_->Upload(values, gradients.Reserve(values.size()));
    // Also if it would be clipped.
    const RowUpdate update{rule, 1, 1.0f, 100.0f, {0, 0, 1, 0.5f}};
    bool finite = false;
    on_device.Squares(update, slots, gradients.data(), &finite);
    EXPECT_TRUE(finite);
    EXPECT_TRUE(on_device.Update(update, slots, gradients.data()));
    values[8] = bad;
    ops_->Upload(values, gradients.data());
    on_device.Squares(update, slots, gradients.data(), &finite);
    EXPECT_FALSE(finite);
    EXPECT_FALSE(on_device.Update(update, slots, gradients.data())) << bad;
  }
  EXPECT_TRUE(on_device.Update({rule, 1, 1, 1, {}}, {}, nullptr));
}

TEST_P(DenseOpsTest, SquaresOfSlabRowsAreThoseOfServers) {
  for (const uint32_t dim : {1u, 7u, 80u}) {
    SlabOnDevice on_device(*ops_, dim, dim);
    const std::vector<float> rows = RandomFloats(kRows * on_device.slab().row_floats(), 1);
    on_device.Set(rows);
    const std::vector<uint32_t> slots = SomeSlots(250, dim);
    const std::vector<float> gradients = RandomFloats(slots.size() * dim, 2);
    DeviceArray device_gradients(ops_.get());
    ops_->Upload(gradients, device_gradients.Reserve(gradients.size()));
    const RowUpdate update{OptimizerSpec(), 1, 1.0f / 3.0f, 0.7f, {0.01f, 0.2f, 1, 0}};
    bool finite = false;
    const std::vector<double> squares =
        on_device.Squares(update, slots, device_gradients.data(), &finite);
    EXPECT_TRUE(finite);
    for (size_t i = 0; i < slots.size(); ++i) {
      std::vector<float> finished(dim);
      for (uint32_t d = 0; d < dim && slots[i] != kNotInSlab; ++d) {
        finished[d] = update.finish((gradients[i * dim + d] * update.part_scale) * update.scale,
                                    rows[slots[i] * on_device.slab().row_floats() + d]);
      }
      ASSERT_EQ(squares[i], SquaresOf(finished)) << i << " dim " << dim;
    }
  }
}

TEST_P(DenseOpsTest, RowsAreScatteredToTheirSlots) {
  constexpr uint32_t kDim = 7;
  SlabOnDevice on_device(*ops_, kDim, 2);
  const size_t floats = on_device.slab().row_floats();
  std::vector<float> expected = RandomFloats(kRows * floats, 1);
  on_device.Set(expected);
  const std::vector<uint32_t> slots = SomeSlots(250, 3);
  const std::vector<float> values = RandomFloats(slots.size() * kDim, 2);
  DeviceArray rows(ops_.get());
  ops_->Upload(values, rows.Reserve(values.size()));
  for (const auto& [write, scale] : {std::pair(Write::kOver, 0.3f), std::pair(Write::kAdd, 1.0f)}) {
    ops_->ScatterRows(write, *on_device.Load(slots), rows.data(), scale, on_device.slab());
    for (size_t i = 0; i < slots.size(); ++i) {
      for (uint32_t d = 0; d < kDim && slots[i] != kNotInSlab; ++d) {
        float& to = expected[slots[i] * floats + d];
        to =
            write == Write::kAdd ? to + values[i * kDim + d] * scale : values[i * kDim + d] * scale;
      }
    }
    EXPECT_TRUE(SameBits(on_device.Get(), expected));
  }
}

}  // namespace
}  // namespace hdps
