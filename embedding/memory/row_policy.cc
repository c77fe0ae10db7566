// Admits by counts and chance; evicts by age, use and norm.
#include "embedding/memory/row_policy.h"

#include <algorithm>
#include <bit>

#include "common/platform/memory_full.h"
#include "common/platform/random.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/weight_format.h"

namespace hdps {
namespace {

// The largest integer kept in the bits of a float: below those of infinity, so that every check for
// broken numbers lets it pass.
constexpr uint32_t kNumberMax = 0x7f7fffff;

float AsFloat(uint64_t number) {
  return std::bit_cast<float>(static_cast<uint32_t>(std::min<uint64_t>(number, kNumberMax)));
}
uint32_t AsNumber(float bits) { return std::bit_cast<uint32_t>(bits); }

bool KeepsStep(const PolicySpec& spec) {
  return spec.ages() || (spec.capped() && spec.evict_by == EvictBy::kAge);
}
bool KeepsUses(const PolicySpec& spec) { return spec.capped() && spec.evict_by == EvictBy::kUse; }

uint64_t RowsOfSlice(const TableSpec& spec, uint32_t num_shards) {
  const PolicySpec& policy = spec.policy;
  uint64_t rows = std::numeric_limits<uint64_t>::max();
  if (policy.max_rows > 0) rows = policy.max_rows;
  if (policy.max_bytes > 0) {
    const uint64_t row_bytes = sizeof(Key) + RowBytes(spec);
    rows = std::min(rows, policy.max_bytes / row_bytes);
  }
  return policy.capped() ? std::max<uint64_t>(1, rows / num_shards) : rows;
}

}  // namespace

uint32_t PolicyFloats(const PolicySpec& spec) {
  return (KeepsStep(spec) ? 1 : 0) + (KeepsUses(spec) ? 1 : 0);
}

std::optional<uint32_t> UsesFloat(const PolicySpec& spec) {
  return KeepsUses(spec) ? std::optional<uint32_t>(KeepsStep(spec) ? 1 : 0) : std::nullopt;
}

uint32_t RowStateFloats(const TableSpec& spec) {
  return StateFloats(spec.optimizer, spec.slice_dim()) + PolicyFloats(spec.policy);
}

size_t RowBytes(const TableSpec& spec) {
  return WeightBytes(spec.weights, spec.slice_dim()) + RowStateFloats(spec) * sizeof(float);
}

RowPolicy::RowPolicy(const TableSpec& spec, TableId table, uint64_t seed, ShardId shard,
                     uint32_t num_shards)
    : spec_(spec.policy),
      chance_seed_(RandomAt(RandomAt(seed, table.value), 0x61646d6974)),
      shard_(shard.value),
      admits_all_(spec.policy.admit_after <= 1 && spec.policy.admit_probability >= 1),
      keeps_step_(KeepsStep(spec.policy)),
      keeps_uses_(KeepsUses(spec.policy)),
      floats_(PolicyFloats(spec.policy)),
      max_rows_(RowsOfSlice(spec, num_shards)) {
  const MemoryFor sketch("a sketch of keys without a row (policy.admit_sketch_bytes)");
  if (spec_.admit_after > 1) {
    sketch_.emplace(spec_.admit_sketch_bytes / num_shards, chance_seed_, spec_.admit_after);
  }
}

bool RowPolicy::Admits(Key key, int64_t step, bool first_epoch) {
  if (sketch_.has_value()) {
    const uint32_t seen = first_epoch ? sketch_->Count(key) : sketch_->Seen(key);
    if (seen < spec_.admit_after) return false;
  }
  if (spec_.admit_probability >= 1) return true;
  const uint64_t chance = RandomAt(CombineKeys(chance_seed_, key), static_cast<uint64_t>(step));
  return UnitDouble(chance) < spec_.admit_probability;
}

void RowPolicy::OnUpdate(int64_t step, std::span<float> own) const {
  size_t at = 0;
  if (keeps_step_) own[at++] = AsFloat(static_cast<uint64_t>(std::max<int64_t>(step, 0)));
  if (keeps_uses_) own[at] = AsFloat(uint64_t{AsNumber(own[at])} + 1);
}

bool RowPolicy::LooksForOldAfter(int64_t step) const {
  if (spec_.evict_after_steps == 0) return false;
  const uint64_t every = std::max<uint64_t>(1, spec_.evict_after_steps / 8);
  return (static_cast<uint64_t>(step) + shard_) % every == 0;
}

bool RowPolicy::IsOld(int64_t step, std::span<const float> own) const {
  return step - LastStep(own) > static_cast<int64_t>(spec_.evict_after_steps);
}

int64_t RowPolicy::LastStep(std::span<const float> own) { return AsNumber(own[0]); }

uint64_t RowPolicy::Rank(Key key, std::span<const float> weights,
                         std::span<const float> own) const {
  uint32_t score = 0;
  if (spec_.evict_by == EvictBy::kNorm) {
    float square = 0;
    for (const float weight : weights) square += weight * weight;
    // The order of non-negative floats is that of their bits.
    score = std::bit_cast<uint32_t>(square);
  } else {
    score = AsNumber(own.back());
  }
  return uint64_t{score} << 32 | MixBits(key) >> 32;
}

}  // namespace hdps
