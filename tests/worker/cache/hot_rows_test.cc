// Tests which rows a worker caches, and how their gradients are summed over workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "common/base/frequent_keys.h"
#include "common/base/hash.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "embedding/table.h"
#include "kernels/host/row_slab.h"
#include "kernels/keys/unique_keys.h"
#include "tools/synthetic/zipf.h"
#include "worker/cache/hot_keys.h"
#include "worker/cache/hot_sum.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

using Counted = FrequentKeys::Counted;

TEST(HotKeys, FindsTheSlotOfEveryKeyAndOfNoOther) {
  std::vector<Key> keys;
  for (uint64_t i = 0; i < 777; ++i) keys.push_back(RandomAt(5, i));
  const HotKeys hot(keys);
  std::vector<Key> asked = keys;
  for (uint64_t i = 0; i < 500; ++i) asked.push_back(RandomAt(6, i));
  std::vector<uint32_t> slots(asked.size());
  hot.Find(asked, slots.data());
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(slots[i], i < keys.size() ? i : kNotInSlab) << i;
  }
  HotKeys().Find({asked.data(), 3}, slots.data());
  EXPECT_EQ(slots[0], kNotInSlab);
}

TEST(HotKeys, ChangesBringTheMostFrequentIntoFreeSlotsFirst) {
  const HotKeys now({10, 20, 30});
  const std::vector<Counted> counted = {{10, 1}, {20, 50}, {40, 9}, {50, 8}, {60, 2}};
  const auto five = ChooseChanges(now, counted, 5);  // 30 was not seen any more.
  ASSERT_EQ(five.size(), 3u);
  const HotKeys after = Changed(now, five);
  EXPECT_THAT(after.keys(), testing::ElementsAre(10, 20, 60, 40, 50));
  // No slot is free: the least frequent key leaves.
  const auto three = ChooseChanges(now, counted, 3);
  ASSERT_EQ(three.size(), 2u);
  EXPECT_THAT(Changed(now, three).keys(), testing::ElementsAre(50, 20, 40));
  // Without a gain nothing moves.
  EXPECT_TRUE(ChooseChanges(after, counted, 5).empty());
  EXPECT_TRUE(ChooseChanges(now, {{10, 4}, {20, 4}, {30, 4}, {40, 5}, {50, 5}}, 3).empty());
  EXPECT_TRUE(ChooseChanges(now, {}, 3).empty());
}

// Keys distributed as in a log: the counts of a few steps serve the next ones. An ideal choice of a
// tenth of the rows answers 90 % of the lookups.
TEST(HotKeys, ATenthOfTheRowsAnswersMostOfSkewedKeys) {
  constexpr uint64_t kVocabulary = 200000, kRows = kVocabulary / 10;
  constexpr int kLookupsAStep = 2048 * 26;
  Random random(7);
  const Zipf zipf(kVocabulary, 1.1);
  FrequentKeys counts(4 * kRows);
  HotKeys hot;
  UniqueKeys unique;
  uint64_t hits = 0, lookups = 0, rows = 0, hot_rows = 0;
  for (int step = 0; step < 96; ++step) {
    std::vector<Key> keys(kLookupsAStep);
    for (Key& key : keys) key = MixBits(zipf.Draw(random));
    std::vector<uint32_t> index(keys.size());
    unique.Reset(keys.size());
    unique.Add(keys, index.data());
    std::vector<uint32_t> slots(unique.unique().size());
    hot.Find(unique.unique(), slots.data());
    if (step >= 64) {
      lookups += keys.size();
      for (const uint32_t at : index) hits += slots[at] != kNotInSlab;
      rows += slots.size();
      for (const uint32_t slot : slots) hot_rows += slot != kNotInSlab;
    }
    counts.Add(unique.unique());
    if (step != 3 && step != 15 && step != 63) continue;
    hot = Changed(hot, ChooseChanges(hot, counts.All(), kRows));
    counts.Halve();
  }
  EXPECT_EQ(hot.size(), kRows);
  const double hit_rate = static_cast<double>(hits) / static_cast<double>(lookups);
  std::printf("figure: hit rate %.4f of the keys, %.4f of the distinct keys of a step\n", hit_rate,
              static_cast<double>(hot_rows) / static_cast<double>(rows));
  EXPECT_GE(hit_rate, 0.8);
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Compares the summed gradients of ranks for hot rows with a server's table that gets their pushes.
void ExpectSumsAsAtAServer(uint32_t ranks, uint32_t num_hot) {
  constexpr uint32_t kDim = 5;
  TableSpec spec;
  spec.name = "t";
  spec.dim = kDim;
  spec.optimizer.record = &RecordOf(OptimizerKind::kSgd);
  spec.optimizer.learning_rate = 1.0f;
  spec.init = {InitKind::kZeros, 0};
  std::vector<std::vector<uint32_t>> slots(ranks);
  std::vector<std::vector<float>> values(ranks);
  std::vector<std::vector<Key>> keys(ranks);
  std::vector<std::vector<float>> hot_values(ranks);
  std::vector<TableSlice::Gradients> parts;
  for (uint32_t r = 0; r < ranks; ++r) {
    for (uint32_t i = 0; i < num_hot + num_hot / 2; ++i) {
      if (RandomAt(r, i) % 3 != 0) continue;  // This rank does not use the row.
      const bool hot = i < num_hot;
      slots[r].push_back(hot ? i : kNotInSlab);
      for (uint32_t d = 0; d < kDim; ++d) {
        const uint64_t bits = RandomAt(100 + r, i * kDim + d);
        const float value = bits % 5 == 0 ? -0.0f : UnitFloat(bits) * (r % 2 == 0 ? 1.0f : 1e4f);
        values[r].push_back(value);
        if (hot) hot_values[r].push_back(value);
      }
      if (hot) keys[r].push_back(i);
    }
    parts.push_back({keys[r], hot_values[r], 0.7f + static_cast<float>(r)});
  }
  TableSlice server(spec, {0}, 1);
  server.Apply(parts, 1.0f, 1);

  const auto group = NewThreadCollectives(ranks);
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const std::unique_ptr<DenseOps> ops = NewCpuOps(*executor);
  std::vector<std::unique_ptr<HotSum>> sums;
  for (uint32_t r = 0; r < ranks; ++r) sums.push_back(std::make_unique<HotSum>(*ops));
  OnAllRanks(ranks, [&](uint32_t r) {
    HotGradients mine{slots[r], num_hot, {{kDim, values[r].data()}}};
    const Result<StepVote> all =
        sums[r]->Add(*group[r], {5000u + r, r == 1}, parts[r].scale, {&mine, 1});
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->examples, 5000u * ranks + ranks * (ranks - 1) / 2);
    EXPECT_EQ(all->pause, ranks > 1);
  });
  for (uint32_t r = 0; r < ranks; ++r) {
    std::vector<Key> touched(sums[r]->touched(0).begin(), sums[r]->touched(0).end());
    EXPECT_EQ(touched.size(), server.num_rows()) << "rank " << r;
    std::vector<float> rows(touched.size() * kDim);
    server.Read(touched, kDim, rows);
    // Weights were 0 and the rate is 1: w = 0 - sum.
    std::vector<float> expected;
    const std::span<const float> sum(sums[r]->sum(0, 0), rows.size());
    for (const float value : sum) expected.push_back(0.0f - value);
    EXPECT_TRUE(SameBits(expected, rows)) << "rank " << r << " of " << ranks;
  }
}

TEST(HotSum, AddsAsAServerDoes) {
  for (const uint32_t ranks : {1, 2, 3, 5, 9}) ExpectSumsAsAtAServer(ranks, 100);
  ExpectSumsAsAtAServer(3, 1);
  ExpectSumsAsAtAServer(2, 0);
}

TEST(HotSum, ManyRanksStillCountExactly) { ExpectSumsAsAtAServer(40, 30); }

}  // namespace
}  // namespace hdps
