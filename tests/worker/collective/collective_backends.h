// Makes groups of each collective backend, and values whose sums reveal the order of the ranks.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/platform/random.h"
#include "worker/collective/rank_transport.h"

namespace hdps {

using Ranks = std::vector<std::unique_ptr<Collective>>;

inline Ranks NewRanks(const char* backend, uint32_t size, bool by_library = false,
                      int64_t timeout_ms = 20000) {
  const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
  Ranks ranks(size);
  OnAllRanks(size, [&](uint32_t r) {
    CollectiveOptions options;
    options.rank = r;
    options.size = size;
    options.group = "test";
    options.gpu = static_cast<int>(r);
    options.timeout_ms = timeout_ms;
    options.by_library = by_library;
    Result<std::unique_ptr<Collective>> collective = NewCollective(backend, options, *store);
    ASSERT_TRUE(collective.ok()) << collective.status().message();
    ranks[r] = *std::move(collective);
  });
  return ranks;
}

// Returns values whose sum depends on the order of addition.
inline std::vector<float> RankFloats(uint32_t rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = RandomAt(rank + 1, i);
    values[i] = (UnitFloat(bits) - 0.5f) * std::ldexp(1.0f, static_cast<int>(bits % 21) - 10);
  }
  return values;
}

inline std::vector<uint64_t> NumbersOf(uint32_t rank, size_t count) {
  std::vector<uint64_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = RandomAt(100 + rank, i);
  return values;
}

inline std::vector<std::byte> BytesOf(uint32_t rank, size_t count) {
  std::vector<std::byte> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<std::byte>(RandomAt(200 + rank, i));
  return values;
}

inline std::vector<float> SumInRankOrder(const std::vector<uint32_t>& ranks, size_t count) {
  std::vector<float> sum = RankFloats(ranks[0], count);
  for (size_t r = 1; r < ranks.size(); ++r) {
    const std::vector<float> other = RankFloats(ranks[r], count);
    for (size_t i = 0; i < count; ++i) sum[i] += other[i];
  }
  return sum;
}

inline std::vector<uint32_t> FirstRanks(uint32_t size) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < size; ++r) ranks.push_back(r);
  return ranks;
}

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

struct Backend {
  const char* name;
  bool by_library = false;

  // Each rank of nccl needs a GPU of its own. Returns false, and why, if there are too few.
  bool CanHave(uint32_t size, std::string* why_not) const {
    return std::string_view(name) != "nccl" || !NcclGpuName(int(size) - 1, why_not).empty();
  }
  bool local() const { return std::string_view(name) == "local"; }
  Ranks Make(uint32_t size, int64_t timeout_ms = 20000) const {
    return local() ? NewThreadCollectives(size) : NewRanks(name, size, by_library, timeout_ms);
  }
  std::string TestName() const { return std::string(name) + (by_library ? "_library" : ""); }
};
inline constexpr Backend kLocal = {"local"}, kGloo = {"gloo"}, kNccl = {"nccl"};
inline constexpr Backend kGloosOwn = {"gloo", true}, kNcclsOwn = {"nccl", true};

}  // namespace hdps
