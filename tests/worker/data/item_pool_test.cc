// Tests weights, groups and labels of tasks as columns, and negative examples made by the reader.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/item_pool.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job PoolJob(const std::string& negatives) {
  const auto job = ParseJob(R"({
    "data": {"train": ["f"], "shuffle_rows": 50,
             "columns": [{"name": "label", "type": "label"}, {"name": "user"}, {"name": "item"},
                         {"name": "tags", "type": "multi", "separator": ";"},
                         {"name": "w", "type": "weight"}, {"name": "u", "type": "group"}],
             "features": [{"name": "cross", "kind": "crossed", "from": ["user", "item"]}],
             "item_features": ["item", "tags"], "negatives": )" +
                                negatives + R"(},
    "model": {"type": "logistic"}, "train": {"metrics": ["group_auc"]}})",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

// Item 0 is in nine rows of ten. Item i has the tags t<i> and all. One row of `every` is positive.
std::string PoolText(int rows, int every = 3) {
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const std::string item = std::to_string(i % 10 == 0 ? i / 10 % 7 + 1 : 0);
    text += std::to_string(i % every == 0 ? 1 : 0) + ",u" + std::to_string(i % 11) + ",i" + item +
            ",t" + item + ";all,0.5,u" + std::to_string(i % 11) + "\n";
  }
  return text;
}

std::vector<Batch> ReadPool(FileSystem& files, const Job& job, uint32_t part, uint32_t parts,
                            uint32_t epoch = 0) {
  auto reader = NewBatchReader(files, job.data, {"f"},
                               {.seed = job.seed,
                                .batch_size = 64,
                                .part = part,
                                .num_parts = parts,
                                .items = std::make_shared<ItemPool>(files, job)});
  EXPECT_TRUE(reader.ok());
  return ReadEpoch(**reader, epoch);
}

Key KeyAt(const Batch& batch, size_t feature, size_t example) {
  const SparseColumn& column = batch.sparse[feature];
  return column.keys[column.offsets[example]];
}

TEST(ItemPoolTest, NegativesAreTheirRowWithAnotherItem) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", PoolText(600));
  const Job job = PoolJob(R"({"per_positive": 4})");
  size_t made = 0, positives = 0, rows = 0;
  for (const Batch& batch : ReadPool(*files, job, 0, 1)) {
    ASSERT_EQ(batch.weights.size(), batch.num_examples);
    ASSERT_EQ(batch.groups.size(), batch.num_examples);
    ASSERT_EQ(batch.rows.size(), batch.num_examples);
    rows += batch.rows.back() + 1;
    for (size_t i = 0; i < batch.num_examples; ++i) {
      const bool of_row_before = i > 0 && batch.rows[i] == batch.rows[i - 1];
      positives += batch.labels[i] == 1 ? 1 : 0;
      const Key item = KeyAt(batch, 1, i);
      // A cross uses the negative item.
      EXPECT_EQ(KeyAt(batch, 3, i),
                CombineKeys(HashString("cross"), CombineKeys(KeyAt(batch, 0, i), item)));
      if (!of_row_before) continue;
      ++made;
      size_t positive = i;
      while (positive > 0 && batch.rows[positive - 1] == batch.rows[i]) --positive;
      EXPECT_EQ(batch.labels[i], 0);
      EXPECT_EQ(batch.labels[positive], 1);
      EXPECT_NE(item, KeyAt(batch, 1, positive));
      EXPECT_EQ(KeyAt(batch, 0, i), KeyAt(batch, 0, positive));
      EXPECT_EQ(batch.groups[i], batch.groups[positive]);
      EXPECT_EQ(batch.weights[i], 0.5f);
      // The tags are those of the item.
      for (int other = 0; other < 8; ++other) {
        const std::string number = std::to_string(other);
        if (item != FeatureKey(HashString("item"), "i" + number)) continue;
        EXPECT_EQ(KeyAt(batch, 2, i), FeatureKey(HashString("tags"), "t" + number));
      }
    }
  }
  EXPECT_EQ(rows, 600u);
  EXPECT_EQ(positives, 200u);
  // A positive of item 0 draws that item 16 times in a row with probability .9^16 = .185, and then
  // makes no negative.
  EXPECT_GT(made, 4 * positives / 2);
  EXPECT_LE(made, 4 * positives);
}

// Counts how often the rare items are drawn for positives of the frequent one.
TEST(ItemPoolTest, DrawsAreUniformOrByFrequency) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", PoolText(3000));
  for (const bool uniform : {false, true}) {
    const Job job =
        PoolJob(uniform ? R"({"per_positive": 8, "by": "uniform"})" : R"({"per_positive": 8})");
    ItemPool pool(*files, job);
    ASSERT_TRUE(pool.Collect().ok());
    EXPECT_EQ(pool.size(), uniform ? 8u : 3000u);
    std::map<Key, double> drawn;
    double all = 0;
    const Key first = FeatureKey(HashString("item"), "i1");
    for (const Batch& batch : ReadPool(*files, job, 0, 1)) {
      for (size_t i = 1; i < batch.num_examples; ++i) {
        const bool made = batch.rows[i] == batch.rows[i - 1];
        size_t positive = i;
        while (positive > 0 && batch.rows[positive - 1] == batch.rows[i]) --positive;
        // The negatives of positives with item 1.
        if (!made || KeyAt(batch, 1, positive) != first) continue;
        ++drawn[KeyAt(batch, 1, i)];
        ++all;
      }
    }
    ASSERT_GT(all, 80);
    const double share = drawn[FeatureKey(HashString("item"), "i0")] / all;
    // 2700 of the 2957 rows with another item, or one of seven items. Four deviations.
    const double wanted = uniform ? 1.0 / 7 : 2700.0 / 2957;
    EXPECT_NEAR(share, wanted, 4 * std::sqrt(wanted * (1 - wanted) / all)) << uniform;
  }
}

// Every reader makes the same examples of a row: N workers, or one whose batch is cut into N parts.
TEST(ItemPoolTest, PartsMakeTheSameExamples) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", PoolText(500));
  const Job job = PoolJob(R"({"per_positive": 3})");
  for (const uint32_t parts : {2u, 3u, 64u}) {  // The last epoch uses the index.
    const std::vector<Batch> whole = ReadPool(*files, job, 0, 1, 2);
    for (uint32_t p = 0; p < parts; ++p) {
      const std::vector<Batch> part = ReadPool(*files, job, p, parts, 2);
      ASSERT_EQ(part.size(), whole.size());
      for (size_t b = 0; b < whole.size(); ++b) {
        const Batch cut = CutBatch(whole[b], p, parts);
        EXPECT_EQ(cut.labels, part[b].labels) << parts << " parts, " << p;
        EXPECT_EQ(cut.groups, part[b].groups);
        EXPECT_EQ(cut.weights, part[b].weights);
        EXPECT_EQ(cut.rows, part[b].rows);
        for (size_t f = 0; f < cut.sparse.size(); ++f) {
          EXPECT_EQ(cut.sparse[f].keys, part[b].sparse[f].keys);
        }
      }
    }
  }
  EXPECT_NE(ReadPool(*files, job, 0, 1, 0)[0].sparse[1].keys,
            ReadPool(*files, job, 0, 1, 1)[0].sparse[1].keys);
}

// Held-out rows give no items, because their items would reveal them.
TEST(ItemPoolTest, ItemsOfHeldOutRowsAreNotDrawn) {
  const auto files = NewMemoryFileSystem();
  std::string text;  // Each row has its own item.
  for (int i = 0; i < 400; ++i) {
    const std::string n = std::to_string(i);
    text += "1,u" + n + ",i" + n + ",t" + n + ",1,u" + n + "\n";
  }
  WriteText(*files, "f", text);
  Job job = PoolJob(R"({"per_positive": 8})");
  job.data.validation_share = 0.25;
  ItemPool pool(*files, job);
  ASSERT_TRUE(pool.Collect().ok());
  const auto items_of = [&](RowSide side, bool negatives) {
    std::set<Key> items;
    auto reader =
        NewBatchReader(*files, job.data, {"f"},
                       {.seed = job.seed,
                        .batch_size = 64,
                        .side = side,
                        .items = negatives ? std::make_shared<ItemPool>(*files, job) : nullptr});
    for (const Batch& batch : ReadEpoch(**reader)) {
      for (size_t i = 0; i < batch.num_examples; ++i) items.insert(KeyAt(batch, 1, i));
    }
    return items;
  };
  const std::set<Key> trained = items_of(RowSide::kTrained, false);
  EXPECT_EQ(pool.size(), trained.size());
  EXPECT_EQ(trained.size() + items_of(RowSide::kHeldOut, false).size(), 400u);
  EXPECT_LT(trained.size(), 350u) << "some are held out";
  EXPECT_EQ(items_of(RowSide::kTrained, true), trained);
}

// More items than are kept: the sample depends only on the seed.
TEST(ItemPoolTest, KeepsASampleOfMany) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", PoolText(2000));
  Job job = PoolJob(R"({"per_positive": 1})");
  ItemPool one(*files, job, 100);
  ASSERT_TRUE(one.Collect().ok());
  EXPECT_EQ(one.size(), 100u);
}

// ---- Columns.

Result<std::optional<Batch>> ReadColumns(const std::string& text,
                                         const std::vector<LabelSpec>& labels) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  DataSpec data = PoolJob("{}").data;
  data.columns.assign(5, ColumnSpec());
  const std::pair<const char*, ColumnType> columns[] = {{"buy", ColumnType::kLabel},
                                                        {"click", ColumnType::kLabel},
                                                        {"w", ColumnType::kWeight},
                                                        {"user", ColumnType::kGroup},
                                                        {"item", ColumnType::kCategorical}};
  for (size_t c = 0; c < data.columns.size(); ++c) {
    data.columns[c].name = columns[c].first;
    data.columns[c].type = columns[c].second;
  }
  data.features.clear();
  HDPS_ASSIGN_OR_RETURN(
      auto reader,
      NewBatchReader(*files, data, {"f"}, {.batch_size = 9, .shuffle = false, .labels = labels}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  return reader->Next();
}

TEST(SpecialColumnsTest, LabelsStandInTheOrderOfTheTasks) {
  const std::vector<LabelSpec> labels = {{"click", 2}, {"buy", kLabelsAnyNumber}};
  const auto batch = ReadColumns("2.5,1,0.25,ann,x\n-3,0,2,bob,y\n0,1,0,ann,z\n", labels);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  const Batch& read = **batch;
  EXPECT_EQ(read.num_labels, 2u);
  EXPECT_THAT(read.labels, ElementsAre(1, 2.5f, 0, -3, 1, 0));
  EXPECT_THAT(read.weights, ElementsAre(0.25f, 2, 0));
  EXPECT_EQ(read.groups[0], read.groups[2]);
  EXPECT_NE(read.groups[0], read.groups[1]);
  EXPECT_TRUE(read.rows.empty());
}

TEST(SpecialColumnsTest, WhatIsWrongIsNamed) {
  const std::vector<LabelSpec> labels = {{"click", 2}, {"buy", kLabelsAnyNumber}};
  const auto error = [&](const std::string& text) {
    return ReadColumns(text, labels).status().message();
  };
  EXPECT_THAT(error("1,1,-1,a,x\n"),
              HasSubstr("f:1:5: '-1': expected a weight: a number from 0 on in column 'w'"));
  EXPECT_THAT(error("1,1,,a,x\n"), HasSubstr("expected a weight"));
  EXPECT_THAT(error("1,1,1e99,a,x\n"), HasSubstr("expected a weight"));
  EXPECT_THAT(error("1,2,1,a,x\n"),
              HasSubstr("'2': expected a label: 0, 1 or -1 in column 'click'"));
  EXPECT_THAT(error("x,1,1,a,x\n"), HasSubstr("'x': expected a label: a number in column 'buy'"));
  EXPECT_THAT(error("1e99,1,1,a,x\n"), HasSubstr("expected a label: a number"));
  // Rows to predict may lack labels, weights and groups. If they have two of these four cells, it
  // is ambiguous which.
  const std::vector<LabelSpec> not_read = {{"click", kLabelsNotRead}, {"buy", kLabelsNotRead}};
  for (const char* const text : {"x\n", ",,heavy,,x\n"}) {
    const auto batch = ReadColumns(text, not_read);
    ASSERT_TRUE(batch.ok()) << batch.status().message();
    EXPECT_THAT((*batch)->labels, ElementsAre(0, 0));
  }
  EXPECT_THAT(ReadColumns("1,ann,x\n", not_read).status().message(),
              HasSubstr("f:1: 3 cells, and it cannot be told which"));
}

// Returns the items of each row with label 1 and of its negatives, by the row's position.
std::map<uint64_t, std::vector<Key>> ItemsByPosition(FileSystem& files, const Job& job) {
  std::map<uint64_t, std::vector<Key>> items;
  auto reader = NewBatchReader(files, job.data, {"f"},
                               {.seed = job.seed,
                                .batch_size = 64,
                                .side = RowSide::kTrained,
                                .items = std::make_shared<ItemPool>(files, job)});
  for (const Batch& batch : ReadEpoch(**reader)) {
    std::map<uint64_t, std::vector<Key>> of_batch;
    for (size_t i = 0; i < batch.num_examples; ++i) {
      of_batch[batch.first_row + batch.rows[i]].push_back(KeyAt(batch, 1, i));
    }
    for (auto& [position, keys] : of_batch) {
      if (keys.size() > 1) items[position] = std::move(keys);
    }
  }
  return items;
}

// Labels decide for which rows examples are made, not from which items.
TEST(ItemPoolTest, OtherLabelsLeaveItemsAndRowsWhereTheyAre) {
  const auto files = NewMemoryFileSystem();
  Job job = PoolJob(R"({"per_positive": 2})");
  job.data.validation_share = 0.2;
  WriteText(*files, "f", PoolText(600));
  const auto some = ItemsByPosition(*files, job);
  WriteText(*files, "f", PoolText(600, /*every=*/1));
  const auto all = ItemsByPosition(*files, job);
  EXPECT_GT(some.size(), 100u);
  EXPECT_GT(all.size(), 2 * some.size());
  for (const auto& [position, keys] : some) EXPECT_EQ(all.at(position), keys) << position;
}

}  // namespace
}  // namespace hdps
