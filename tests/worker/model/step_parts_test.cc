// Tests one worker with N parts against N workers with one part each, bit by bit.
#include "worker/model/step_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tests/kernels/cut_rows.h"

namespace hdps {
namespace {

constexpr uint32_t kDim = 3;
constexpr TableId kDeep{0};
constexpr TableId kWide{1};
constexpr TableId kDense{2};

// Two tables over the same two features, and a dense one.
Job TwoTables() {
  const auto job = ParseJob(R"({
    "data": {"format": "csv", "train": ["train.csv"],
             "columns": [{"name": "y", "type": "label"}, {"name": "n", "type": "numeric"},
                         {"name": "a"}, {"name": "b", "type": "multi"}]},
    "model": {"type": "wide_deep", "embedding_dim": 3, "hidden": [4]}
  })",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

Batch RandomBatch(uint32_t num_examples, uint64_t seed) {
  Random random(seed);
  Batch batch;
  batch.num_examples = num_examples;
  batch.num_numeric = 1;
  batch.sparse.resize(2);
  for (SparseColumn& column : batch.sparse) column.offsets.push_back(0);
  for (uint32_t i = 0; i < num_examples; ++i) {
    batch.labels.push_back(static_cast<float>(random.Below(2)));
    batch.numeric.push_back(static_cast<float>(random.Unit()));
    for (SparseColumn& column : batch.sparse) {
      const uint64_t count = &column == &batch.sparse[0] ? 1 : random.Below(4);
      for (uint64_t k = 0; k < count; ++k) column.keys.push_back(random.Below(20));
      column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    }
  }
  return batch;
}

// Returns gradients whose bits reveal the order of their sum.
float GradientOf(uint64_t part, Key key, uint32_t d) {
  return UnitFloat(RandomAt(part * 1000003 + key, d)) *
         (1 + 1000.0f * static_cast<float>(part % 2));
}

std::vector<float> GradientsOf(uint64_t part, std::span<const Key> keys) {
  std::vector<float> gradients;
  for (const Key key : keys) {
    for (uint32_t d = 0; d < kDim; ++d) gradients.push_back(GradientOf(part, key, d));
  }
  return gradients;
}

// With field_slice the shard of a key is that of its feature, in one part and in several.
TEST(StepParts, KnowTheShardsOfFields) {
  Job job = TwoTables();
  job.tables[0].slice_mode = SliceMode::kField;
  job.tables[0].shard_by = ShardBy::kGiven;
  KeyFinder finder(job);
  // Tables that are cut differently do not share keys; with the same key for both features, the
  // columns would share a vocabulary.
  EXPECT_NE(finder.table_keys()[0], finder.table_keys()[1]);
  Batch batch = RandomBatch(40, 5);
  for (Key& key : batch.sparse[1].keys) key += 1000;
  for (const uint32_t num_parts : {1u, 3u}) {
    StepParts parts;
    parts.Assign(batch, num_parts, finder);
    const std::span<const Key> keys = parts.KeysOf({0});
    const std::span<const uint32_t> shards = parts.FieldShardsOf({0});
    ASSERT_EQ(shards.size(), keys.size());
    ASSERT_GT(keys.size(), 20u);
    for (size_t k = 0; k < keys.size(); ++k) EXPECT_EQ(shards[k], keys[k] < 1000 ? 0u : 16u);
    EXPECT_TRUE(parts.FieldShardsOf({1}).empty());
    EXPECT_TRUE(parts.FieldShardsOf(kDense).empty());
  }
}

TEST(CutBatch, GivesEveryRowToOnePartByItsPositionInTheEpoch) {
  Batch whole = RandomBatch(23, 1);
  whole.positive_texts = 5;
  for (uint32_t i = 0; i < whole.num_examples; ++i) whole.unknown_ids.push_back(i);
  for (uint32_t num_parts = 1; num_parts <= 5; ++num_parts) {
    whole.first_row = num_parts * 11 + 3;
    uint32_t rows = 0;
    for (uint32_t p = 0; p < num_parts; ++p) {
      const Batch part = CutBatch(whole, p, num_parts);
      rows += part.num_examples;
      EXPECT_EQ(part.positive_texts, 5u);
      ASSERT_EQ(part.labels.size(), part.num_examples);
      for (uint32_t i = 0; i < part.num_examples; ++i) {
        uint32_t row = i * num_parts;  // The i-th row at a position congruent to p.
        while ((whole.first_row + row) % num_parts != p) ++row;
        EXPECT_EQ(part.labels[i], whole.labels[row]);
        EXPECT_EQ(part.numeric[i], whole.numeric[row]);
        EXPECT_EQ(part.unknown_ids[i], whole.unknown_ids[row]);
        for (size_t f = 0; f < whole.sparse.size(); ++f) {
          const SparseColumn& from = whole.sparse[f];
          const SparseColumn& to = part.sparse[f];
          EXPECT_TRUE(std::equal(
              to.keys.begin() + to.offsets[i], to.keys.begin() + to.offsets[i + 1],
              from.keys.begin() + from.offsets[row], from.keys.begin() + from.offsets[row + 1]));
        }
      }
    }
    EXPECT_EQ(rows, whole.num_examples);
  }
}

TEST(StepParts, KeysAreThoseOfAllPartsOnce) {
  const Job job = TwoTables();
  KeyFinder finder(job);
  StepParts parts;
  for (const uint32_t num_parts : {1, 2, 3, 7}) {
    const Batch whole = RandomBatch(40, num_parts);
    std::set<Key> expected;
    for (const SparseColumn& column : whole.sparse) {
      expected.insert(column.keys.begin(), column.keys.end());
    }
    parts.Assign(whole, num_parts, finder);
    EXPECT_EQ(parts.parts().size(), num_parts);
    EXPECT_EQ(parts.num_examples(), 40u);
    const std::span<const Key> keys = parts.KeysOf(kDeep);
    EXPECT_EQ(std::set<Key>(keys.begin(), keys.end()), expected);
    EXPECT_EQ(keys.size(), expected.size());
    EXPECT_TRUE(parts.KeysOf(kDense).empty());
    EXPECT_EQ(parts.SetOf(0, kDense), nullptr);
  }
}

TEST(StepParts, KeysOfASinglePartSayWhereTheirShardsBegin) {
  const Job job = TwoTables();
  KeyFinder finder(job);
  StepParts parts;
  parts.Assign(RandomBatch(40, 1), 1, finder);
  const std::span<const Key> keys = parts.KeysOf(kDeep);
  const auto begin = parts.ShardBeginOf(kDeep, ShardBy::kKey);
  ASSERT_EQ(begin.size(), job.cluster.shards + 1);
  EXPECT_EQ(begin.front(), 0u);
  EXPECT_EQ(begin.back(), keys.size());
  for (uint32_t s = 0; s < job.cluster.shards; ++s) {
    for (uint32_t i = begin[s]; i < begin[s + 1]; ++i) {
      EXPECT_EQ(ShardOf(keys[i], ShardBy::kKey, job.cluster.shards).value, s);
    }
  }
  EXPECT_TRUE(parts.ShardBeginOf(kDeep, ShardBy::kGroup).empty());
  EXPECT_TRUE(parts.ShardBeginOf(kDense, ShardBy::kKey).empty());
  parts.Assign(RandomBatch(40, 1), 2, finder);
  EXPECT_TRUE(parts.ShardBeginOf(kDeep, ShardBy::kKey).empty());
}

TEST(StepParts, APartSeesTheRowsOfItsKeys) {
  const Job job = TwoTables();
  KeyFinder finder(job);
  StepParts parts;
  parts.Assign(RandomBatch(30, 5), 3, finder);
  const std::vector<float> rows = GradientsOf(9, parts.KeysOf(kWide));
  for (size_t p = 0; p < parts.parts().size(); ++p) {
    const std::vector<float> expected = GradientsOf(9, parts.SetOf(p, kWide)->unique);
    for (const std::vector<size_t>& borders : std::vector<std::vector<size_t>>{{}, {7}, {1, 4}}) {
      CutRows cut(rows, kDim, borders);
      std::vector<float> scratch;
      const auto of_part = parts.RowsOfPart(p, kWide, kDim, cut.pieces(), &scratch);
      ASSERT_EQ(of_part.count(), 1u);
      EXPECT_TRUE(std::ranges::equal(of_part.piece(0), expected));
    }
  }
}

// Sums like servers with the pushes of N workers: the first part with a key is copied, the others
// are added.
TEST(StepParts, GradientsAddUpAsThoseOfWorkersDo) {
  const Job job = TwoTables();
  KeyFinder finder(job);
  for (const uint32_t num_parts : {1, 2, 3, 4}) {
    const Batch whole = RandomBatch(50, num_parts + 10);
    std::map<Key, std::vector<float>> expected;
    for (uint32_t worker = 0; worker < num_parts; ++worker) {
      StepParts of_worker;
      of_worker.Assign(CutBatch(whole, worker, num_parts), 1, finder);
      for (const Key key : of_worker.KeysOf(kDeep)) {
        std::vector<float> gradient = GradientsOf(worker, std::vector{key});
        const auto [at, first] = expected.try_emplace(key, gradient);
        for (uint32_t d = 0; d < kDim && !first; ++d) at->second[d] += gradient[d];
      }
    }
    StepParts parts;
    parts.Assign(whole, num_parts, finder);
    const std::span<const Key> keys = parts.KeysOf(kDeep);
    std::vector<float> sum(keys.size() * kDim, 1e30f);  // Old values must not matter.
    for (size_t p = 0; p < parts.parts().size(); ++p) {
      const std::vector<float> gradients = GradientsOf(p, parts.SetOf(p, kDeep)->unique);
      parts.AddRowGradients(p, kDeep, kDim, gradients, nullptr, sum);
    }
    ASSERT_EQ(keys.size(), expected.size());
    for (size_t k = 0; k < keys.size(); ++k) {
      EXPECT_EQ(std::memcmp(&sum[k * kDim], expected[keys[k]].data(), kDim * sizeof(float)), 0)
          << "key " << keys[k] << " of " << num_parts << " parts";
    }
  }
}

TEST(StepParts, AStepMayHaveFewerRowsThanParts) {
  const Job job = TwoTables();
  KeyFinder finder(job);
  StepParts parts;
  Batch two = RandomBatch(2, 3);
  two.first_row = 7;  // Positions 7 and 8: parts 3 and 0; the latter comes first.
  parts.Assign(two, 4, finder);
  ASSERT_EQ(parts.parts().size(), 2u);
  EXPECT_EQ(parts.parts()[0].batch.numeric[0], two.numeric[1]);
  EXPECT_EQ(parts.parts()[1].batch.numeric[0], two.numeric[0]);
  parts.Assign(RandomBatch(1, 3), 4, finder);
  EXPECT_EQ(parts.parts().size(), 1u);
  parts.Assign(RandomBatch(0, 3), 4, finder);
  EXPECT_TRUE(parts.parts().empty());
  EXPECT_TRUE(parts.KeysOf(kDeep).empty());
  EXPECT_EQ(parts.num_examples(), 0u);
}

// A key belongs to the list of the one piece that uses it, or to the first.
TEST(StepParts, TheKeysOfTheListsAreThoseOfTheirPieces) {
  const Job job = TwoTables();
  KeyFinder finder(job);
  StepParts parts;
  for (const uint32_t rows : {0u, 1u, 2u, 40u}) {
    for (const uint32_t pieces : {2u, 3u}) {
      const uint32_t slices = 2 * pieces;  // Pieces of several slices each.
      parts.Assign(RandomBatch(rows, 7), {.slices = slices, .pieces = pieces}, finder);
      std::map<Key, std::set<uint32_t>> pieces_of;
      for (size_t p = 0; p < parts.parts().size(); ++p) {
        for (const Key key : parts.SetOf(p, kDeep)->unique) {
          pieces_of[key].insert(parts.parts()[p].piece);
        }
      }
      const std::span<const Key> keys = parts.KeysOf(kDeep);
      std::set<uint32_t> listed;
      for (uint32_t list = 0; list <= pieces; ++list) {
        const std::span<const uint32_t> positions = parts.PositionsOfList(list, kDeep);
        EXPECT_TRUE(std::ranges::is_sorted(positions));
        EXPECT_TRUE(std::ranges::equal(positions, parts.PositionsOfList(list, kWide)));
        EXPECT_TRUE(parts.PositionsOfList(list, kDense).empty());
        for (const uint32_t at : positions) {
          EXPECT_TRUE(listed.insert(at).second);
          const std::set<uint32_t>& of_key = pieces_of[keys[at]];
          EXPECT_EQ(list, of_key.size() > 1 ? 0 : 1 + *of_key.begin());
        }
      }
      EXPECT_EQ(listed.size(), keys.size());
    }
  }
}

}  // namespace
}  // namespace hdps
