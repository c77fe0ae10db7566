// Finds rows by passes over all of them: one for old rows, five for the lowest ranks.
#include "embedding/row_eviction.h"

#include "embedding/memory/weight_format.h"

namespace hdps {

namespace {

// Returns the keys of rows for whose policy floats is_one(floats) holds.
template <typename IsOne>
std::vector<Key> KeysWhere(const PolicyRows& slice, const IsOne& is_one) {
  std::vector<Key> keys;
  slice.rows.VisitAll([&](Key key, std::span<const std::byte> bytes) {
    if (is_one(slice.OfPolicy(bytes.data()))) keys.push_back(key);
  });
  return keys;
}

}  // namespace

std::vector<Key> FindOldRows(const PolicyRows& slice, int64_t step) {
  return KeysWhere(slice,
                   [&](std::span<const float> own) { return slice.policy.IsOld(step, own); });
}

std::vector<Key> FindRowsUntil(const PolicyRows& slice, int64_t last) {
  return KeysWhere(slice,
                   [&](std::span<const float> own) { return RowPolicy::LastStep(own) <= last; });
}

// Finds the rank that `count` rows do not exceed, sixteen bits at a time, in memory that does not
// depend on the number of rows; then collects those rows.
std::vector<Key> FindLowestRows(const PolicyRows& slice, uint64_t count) {
  std::vector<float> weights(slice.dim);
  const auto rank_of = [&](Key key, std::span<const std::byte> bytes) {
    ReadWeights(slice.weights, bytes.data(), weights);
    return slice.policy.Rank(key, weights, slice.OfPolicy(bytes.data()));
  };
  uint64_t highest = 0;  // The upper bits of that rank, as far as they are known.
  for (int shift = 48; shift >= 0; shift -= 16) {
    std::vector<uint64_t> counts(size_t{1} << 16);
    slice.rows.VisitAll([&](Key key, std::span<const std::byte> bytes) {
      const uint64_t rank = rank_of(key, bytes) >> shift;
      if (rank >> 16 == highest) ++counts[rank & 0xffff];
    });
    uint64_t bucket = 0;
    for (; bucket < counts.size() - 1 && counts[bucket] < count; ++bucket) count -= counts[bucket];
    highest = highest << 16 | bucket;
  }
  std::vector<Key> lowest;
  slice.rows.VisitAll([&](Key key, std::span<const std::byte> bytes) {
    if (rank_of(key, bytes) <= highest) lowest.push_back(key);
  });
  return lowest;
}

}  // namespace hdps
