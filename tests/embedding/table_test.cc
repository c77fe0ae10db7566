// Tests slices against a plain map; rows depend on the key alone; sums are in the order of their
// parts.
#include "embedding/table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "common/base/hash.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_init.h"
#include "gtest/gtest.h"
#include "tests/embedding/row_optimizers.h"

namespace hdps {
namespace {

TableSpec SpecOf(OptimizerKind kind, uint32_t dim) {
  TableSpec spec;
  spec.name = "deep";
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(kind);
  spec.optimizer.learning_rate = 0.05f;
  return spec;
}

std::vector<Key> RandomKeys(Random& random, size_t n, uint64_t vocabulary) {
  std::vector<Key> keys;
  while (keys.size() < n) keys.push_back(MixBits(random.Below(vocabulary)));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  // An order other than the keys' own.
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
  return keys;
}

std::vector<float> RandomFloats(Random& random, size_t n) {
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Implements the contract of TableSlice with a plain map.
class MapTable {
 public:
  MapTable(const TableSpec& spec, TableId id, uint64_t seed) : spec_(spec), id_(id), seed_(seed) {}

  // Returns the row, or the initial values of a key without one.
  std::vector<float> Read(Key key) const {
    const auto found = rows_.find(key);
    if (found != rows_.end()) return found->second;
    std::vector<float> row(spec_.dim + StateFloats(spec_.optimizer, spec_.dim));
    InitRow(spec_.init, seed_, id_, key, std::span(row).first(spec_.dim));
    InitState(spec_.optimizer, spec_.dim, std::span(row).subspan(spec_.dim));
    return row;
  }
  std::vector<float>& Row(Key key) { return rows_.try_emplace(key, Read(key)).first->second; }
  int64_t& Version(Key key) { return versions_[key]; }
  void Apply(const std::vector<TableSlice::Gradients>& parts, float scale, int64_t step) {
    std::map<Key, std::vector<float>> sums;
    for (const auto& part : parts) {
      for (size_t k = 0; k < part.keys.size(); ++k) {
        std::vector<float>& sum = sums[part.keys[k]];
        const bool first = sum.empty();
        sum.resize(spec_.dim);
        for (uint32_t i = 0; i < spec_.dim; ++i) {
          const float g = part.values[k * spec_.dim + i] * part.scale;
          sum[i] = first ? g : sum[i] + g;
        }
      }
    }
    for (auto& [key, sum] : sums) {
      for (float& g : sum) g *= scale;
      std::span<float> row(Row(key));
      UpdateRow(spec_.optimizer, step, sum, row.first(spec_.dim), row.subspan(spec_.dim));
      Version(key) = step;
    }
  }
  const std::map<Key, std::vector<float>>& rows() const { return rows_; }

 private:
  const TableSpec spec_;
  const TableId id_;
  const uint64_t seed_;
  std::map<Key, std::vector<float>> rows_;
  std::map<Key, int64_t> versions_;
};

class AgainstMap : public testing::TestWithParam<OptimizerKind> {};

TEST_P(AgainstMap, ReadsStoresAndUpdatesAlike) {
  Random random(static_cast<uint64_t>(GetParam()) + 1);
  const uint32_t dim = 5;
  const TableSpec spec = SpecOf(GetParam(), dim);
  TableSlice table(spec, {2}, 11);
  MapTable map(spec, {2}, 11);
  const uint32_t row_floats = dim + table.state_floats();
  for (int64_t step = 1; step <= 120; ++step) {
    const std::vector<Key> asked = RandomKeys(random, random.Below(200), 3000);
    const uint32_t floats = random.Below(2) == 0 ? dim : row_floats;
    std::vector<float> rows(asked.size() * floats);
    table.Read(asked, floats, rows);
    for (size_t k = 0; k < asked.size(); ++k) {
      ASSERT_TRUE(SameBits(std::span(rows).subspan(k * floats, floats),
                           std::span<const float>(map.Read(asked[k])).first(floats)));
    }
    std::vector<std::vector<Key>> keys;
    std::vector<std::vector<float>> values;
    for (uint64_t p = random.Below(4); p-- > 0;) {
      keys.push_back(RandomKeys(random, random.Below(100), 3000));
      values.push_back(RandomFloats(random, keys.back().size() * dim));
    }
    std::vector<TableSlice::Gradients> parts;
    for (size_t p = 0; p < keys.size(); ++p) parts.push_back({keys[p], values[p], 0.5f});
    table.Apply(parts, 0.3f, step);
    map.Apply(parts, 0.3f, step);

    const std::vector<Key> stored = RandomKeys(random, 3, 3000);
    const std::vector<float> whole = RandomFloats(random, stored.size() * row_floats);
    table.Store(stored, row_floats, whole);
    for (size_t k = 0; k < stored.size(); ++k) {
      std::copy_n(&whole[k * row_floats], row_floats, map.Row(stored[k]).begin());
      map.Version(stored[k]) = 0;
    }
    const int64_t since = static_cast<int64_t>(random.Below(static_cast<uint64_t>(step) + 1));
    std::vector<uint32_t> positions, expected;
    std::vector<float> weights;
    table.ReadChanged(asked, since, &positions, &weights);
    for (uint32_t k = 0; k < asked.size(); ++k) {
      if (map.Version(asked[k]) > since) expected.push_back(k);
    }
    ASSERT_EQ(positions, expected);
    for (size_t p = 0; p < positions.size(); ++p) {
      ASSERT_TRUE(SameBits(std::span(weights).subspan(p * dim, dim),
                           std::span<const float>(map.Read(asked[positions[p]])).first(dim)));
    }
  }
  ASSERT_EQ(table.num_rows(), map.rows().size());
  auto at = map.rows().begin();
  const Status status =
      table.VisitRows(7, [&](std::span<const Key> keys, std::span<const float> rows) {
        EXPECT_EQ(keys.size(),
                  std::min<size_t>(7, static_cast<size_t>(std::distance(at, map.rows().end()))));
        for (size_t k = 0; k < keys.size(); ++k, ++at) {
          EXPECT_EQ(keys[k], at->first);
          EXPECT_TRUE(SameBits(rows.subspan(k * row_floats, row_floats), at->second)) << keys[k];
        }
        return Status();
      });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(at, map.rows().end());
}

INSTANTIATE_TEST_SUITE_P(Rules, AgainstMap, testing::ValuesIn(RowOptimizers()));

TEST(Table, ReadingMakesNothingAndUpdatesDo) {
  TableSlice table(SpecOf(OptimizerKind::kAdagrad, 4), {0}, 5);
  const std::vector<Key> keys = {0, ~Key{0}, 42};
  std::vector<float> weights(12), with_state(24), after(24);
  table.Read(keys, 4, weights);
  table.Read(keys, 8, with_state);
  EXPECT_EQ(table.num_rows(), 0u);
  EXPECT_EQ(with_state[4], table.spec().optimizer.initial_accumulator);
  const std::vector<float> zeros(12);
  table.Apply(std::vector<TableSlice::Gradients>{{keys, zeros, 1}}, 1, 1);
  EXPECT_EQ(table.num_rows(), 3u);
  table.Read(keys, 8, after);
  EXPECT_TRUE(SameBits(with_state, after));
}

TEST(Table, StepsPastTheLargestVersionCountAsChanged) {
  TableSlice table(SpecOf(OptimizerKind::kSgd, 1), {0}, 5);
  const std::vector<Key> keys = {1, 2};
  const std::vector<float> gradient = {1};
  const auto apply = [&](size_t key, int64_t step) {
    const std::span<const Key> one = std::span(keys).subspan(key, 1);
    table.Apply(std::vector<TableSlice::Gradients>{{one, gradient, 1}}, 1, step);
  };
  apply(0, int64_t{1} << 31);
  apply(1, int64_t{1} << 40);
  std::vector<uint32_t> positions;
  std::vector<float> weights;
  table.ReadChanged(keys, int64_t{1} << 41, &positions, &weights);
  EXPECT_EQ(positions, std::vector<uint32_t>{1});
}

TEST(Table, VisitingEndsWithTheFirstFailure) {
  TableSlice table(SpecOf(OptimizerKind::kSgd, 1), {0}, 5);
  const std::vector<Key> keys = {1, 2, 3};
  table.Store(keys, 1, std::vector<float>{1, 2, 3});
  int visits = 0;
  const Status status = table.VisitRows(1, [&](std::span<const Key>, std::span<const float>) {
    return ++visits == 2 ? Status(Code::kIoError, "full") : Status();
  });
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_EQ(visits, 2);
}

TEST(Table, StoringWeightsAloneStartsTheStateAnew) {
  TableSlice table(SpecOf(OptimizerKind::kAdagrad, 2), {0}, 5);
  const std::vector<Key> keys = {9};
  table.Apply(std::vector<TableSlice::Gradients>{{keys, std::vector<float>{1, 2}, 1}}, 1, 1);
  table.Store(keys, 2, std::vector<float>{3, 4});
  std::vector<float> row(4);
  table.Read(keys, 4, row);
  EXPECT_EQ(row, (std::vector<float>{3, 4, 0.1f, 0.1f}));
}

TEST(Table, OrderOfPartsDecidesAndNothingElse) {
  // 1e8 + 1 - 1e8 in float depends on the order, so the test notices a wrong one.
  const TableSpec spec = SpecOf(OptimizerKind::kSgd, 1);
  const std::vector<Key> key = {7}, more = {3, 7, 5}, reversed = {5, 7, 3};
  const std::vector<float> big = {1e8f}, one = {2, 1, 3}, one_reversed = {3, 1, 2}, small = {-1e8f};
  auto row_after = [&](std::vector<TableSlice::Gradients> parts) {
    TableSlice table(spec, {0}, 1);
    table.Apply(parts, 1, 1);
    std::vector<float> row(1);
    table.Read(key, 1, row);
    return row[0];
  };
  const float in_order = row_after({{key, big, 1}, {more, one, 1}, {key, small, 1}});
  EXPECT_EQ(in_order, row_after({{key, big, 1}, {reversed, one_reversed, 1}, {key, small, 1}}));
  EXPECT_NE(in_order, row_after({{key, big, 1}, {key, small, 1}, {more, one, 1}}));
}

TEST(Table, OnePartEqualsOnePartAmongEmptyOnes) {
  Random random(4);
  const std::vector<Key> keys = RandomKeys(random, 500, 100000);
  const std::vector<float> values = RandomFloats(random, keys.size() * 3);
  TableSlice a(SpecOf(OptimizerKind::kLazyAdam, 3), {0}, 1), b(a.spec(), {0}, 1);
  const TableSlice::Gradients part{keys, values, 0.125f}, empty{{}, {}, 3};
  a.Apply(std::vector<TableSlice::Gradients>{part}, 0.7f, 4);
  b.Apply(std::vector<TableSlice::Gradients>{empty, part, empty}, 0.7f, 4);
  EXPECT_EQ(a.Digest()->sum[0], b.Digest()->sum[0]);
}

TEST(Table, DigestsOfDisjointSlicesAddUpInAnyOrder) {
  Random random(5);
  const TableSpec spec = SpecOf(OptimizerKind::kAdagrad, 6);
  const std::vector<Key> keys = RandomKeys(random, 1000, 1u << 30);
  TableSlice whole(spec, {1}, 3);
  const std::vector<float> values = RandomFloats(random, keys.size() * 6);
  whole.Apply(std::vector<TableSlice::Gradients>{{keys, values, 1}}, 1, 1);
  RowsDigest sum;
  for (size_t part = 0; part < 3; ++part) {
    TableSlice slice(spec, {1}, 3);
    for (size_t k = keys.size(); k-- > 0;) {
      if (keys[k] % 3 != part) continue;
      slice.Apply(std::vector<TableSlice::Gradients>{{std::span(keys).subspan(k, 1),
                                                      std::span(values).subspan(k * 6, 6), 1}},
                  1, 1);
    }
    sum.Add(*slice.Digest());
  }
  EXPECT_EQ(sum.rows, whole.num_rows());
  EXPECT_EQ(sum.sum[0], whole.Digest()->sum[0]);
  EXPECT_EQ(sum.sum[1], whole.Digest()->sum[1]);
  // A single changed bit of state changes the digest.
  std::vector<float> row(12);
  whole.Read(std::span(keys).first(1), 12, row);
  row[11] = std::nextafter(row[11], 1.0f);
  whole.Store(std::span(keys).first(1), 12, row);
  EXPECT_NE(sum.sum[0], whole.Digest()->sum[0]);
  EXPECT_NE(sum.sum[1], whole.Digest()->sum[1]);
}

// Whole vectors, their ends, and rows of one weight, through every version of the loops.
TEST(Table, EveryVectorWidthGivesTheSameBits) {
  for (const OptimizerKind rule : RowOptimizers()) {
    for (const uint32_t dim : {1u, 5u, 16u, 80u}) {
      TableSpec spec = SpecOf(rule, dim);
      spec.optimizer.weight_decay = 0.01f;
      spec.optimizer.l1 = 0.001f;
      std::vector<uint64_t> sums;
      for (const VectorWidth width :
           {VectorWidth::kPlain, VectorWidth::kAvx2, VectorWidth::kAvx512}) {
        if (width > WidestVectors()) continue;
        Random random(17);
        TableSlice table(spec, {0}, 3, width);
        uint64_t read = 0;
        for (int64_t step = 1; step <= 8; ++step) {
          const std::vector<Key> keys = RandomKeys(random, 700, 1500);
          const std::vector<float> values = RandomFloats(random, keys.size() * dim);
          table.Apply(std::vector<TableSlice::Gradients>{{keys, values, 0.3f}}, 0.7f, step);
          std::vector<float> rows(keys.size() * dim);
          table.Read(keys, dim, rows);
          read = HashBytes(std::as_bytes(std::span(rows)), read);
        }
        sums.push_back(table.Digest()->sum[0] ^ read);
      }
      for (const uint64_t sum : sums) EXPECT_EQ(sum, sums[0]) << OptimizerName(rule) << dim;
    }
  }
}

// A slice that has no more row numbers returns an error with the remedy instead of stopping.
TEST(Table, RowsBeyondTheLimitOfASliceAreAFailure) {
  const std::vector<Key> keys = {1, 2, 3, 4, 5, 6}, more = {7, 8};
  const std::vector<float> values(24, 1.0f);
  RowPlacement limited;
  limited.rows_max = 7;
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kLamb}) {
    for (const bool by_store : {false, true}) {
      TableSlice table(SpecOf(kind, 4), {0}, 2, limited);
      table.Apply(std::vector<TableSlice::Gradients>{{keys, values, 1}}, 1, 1);
      EXPECT_TRUE(table.failure().ok()) << table.failure().message();
      if (by_store) {
        table.Store(more, 4, std::span(values).first(8));
      } else {
        table.Apply(std::vector<TableSlice::Gradients>{{more, std::span(values).first(8), 1}}, 1,
                    2);
      }
      EXPECT_EQ(table.failure().code(), Code::kResourceExhausted);
      EXPECT_NE(table.failure().message().find("more cluster.shards"), std::string::npos);
      EXPECT_EQ(table.num_rows(), 6u);
    }
  }
}

TEST(Table, MoreGradientsThanCanBeAddedUpAreAFailure) {
  TableSlice table(SpecOf(OptimizerKind::kSgd, 4), {0}, 2);
  const Key key = 7;
  // Not read: their number alone is too large.
  const std::span<const Key> half(&key, GradientSums::kKeysMax / 2 + 1);
  table.Apply(std::vector<TableSlice::Gradients>{{half, {}, 1}, {half, {}, 1}}, 1, 1);
  EXPECT_EQ(table.failure().code(), Code::kResourceExhausted);
  EXPECT_NE(table.failure().message().find("train.batch_size"), std::string::npos);
}

TEST(Table, LambUpdatesEachTensorAsAWhole) {
  TableSpec spec = SpecOf(OptimizerKind::kLamb, 4);
  spec.init.kind = InitKind::kUniform;
  TableSlice table(spec, {0}, 2);
  // Chunks of tensors 1 and 2, out of order and mixed.
  const std::vector<Key> keys = {(2ull << 32) | 0, (1ull << 32) | 1, (1ull << 32) | 0};
  Random random(8);
  const std::vector<float> values = RandomFloats(random, 12);
  std::vector<float> before(3 * 13), after(3 * 13);
  table.Read(keys, 13, before);
  table.Apply(std::vector<TableSlice::Gradients>{{keys, values, 1}}, 1, 1);
  table.Read(keys, 13, after);
  auto chunk = [&](size_t k) {
    return ChunkUpdate{std::span(values).subspan(k * 4, 4), std::span(before).subspan(k * 13, 4),
                       std::span(before).subspan(k * 13 + 4, 9)};
  };
  UpdateTensor(spec.optimizer, std::vector<ChunkUpdate>{chunk(2), chunk(1)});
  UpdateTensor(spec.optimizer, std::vector<ChunkUpdate>{chunk(0)});
  EXPECT_TRUE(SameBits(before, after));
}

}  // namespace
}  // namespace hdps
