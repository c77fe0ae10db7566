// Tests the counts of a vocabulary against counting every value, and the rows that are read with
// it.
#include "tools/prepare/vocabulary_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"

namespace hdps {
namespace {

// A history and an item share a vocabulary, and a city has its own.
constexpr const char* kJob = R"({
  "data": {
    "train": ["f"], "validation_share": 0.25, "max_bad_rows": 9,
    "columns": [{"name": "y", "type": "label"}, {"name": "n", "type": "numeric"},
                {"name": "seen", "type": "multi", "vocabulary": "item"}, {"name": "item"},
                {"name": "city"}],
    "features": [{"name": "pair", "from": ["item", "city"]}]
  },
  "model": {"type": "logistic"}
})";

using Value = std::pair<std::string, std::string>;  // Of a vocabulary: its name, the text.

// Draws rows; adds the values of each to `values`, and bad ones between them.
std::vector<std::vector<Value>> WriteRows(FileSystem& files) {
  Random draws(5);
  const auto drawn = [&draws](const char* of) {
    const uint64_t all = 1 + draws.Below(60);  // Small numbers come more often.
    const uint64_t one = draws.Below(all);
    return one == 7 ? std::string() : of + std::to_string(one);
  };
  std::vector<std::vector<Value>> rows;
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    const std::string a = drawn("i"), b = drawn("i"), item = drawn("i"), city = drawn("c");
    text += std::to_string(i % 2) + "," + std::to_string(i) + "," + a + "|" + b + "," + item + "," +
            city + "\n";
    std::vector<Value> row;
    for (const std::string& seen : {a, b}) {
      if (!seen.empty()) row.emplace_back("item", seen);
    }
    row.emplace_back("item", item);
    row.emplace_back("city", city);
    rows.push_back(row);
    if (i % 400 == 0) text += "no row,i1\n";
  }
  WriteText(files, "f", text);
  return rows;
}

Key KeyOf(const Value& value) { return FeatureKey(HashString(value.first), value.second); }

class VocabularyCountTest : public ::testing::Test {
 protected:
  VocabularyCountTest() : files_(NewMemoryFileSystem()), rows_(WriteRows(*files_)) {
    Result<Job> job = ParseJob(kJob, "job.json", {});
    EXPECT_TRUE(job.ok()) << job.status().message();
    job_ = *std::move(job);
  }

  std::vector<Batch> Read(RowSide side) {
    auto reader = NewBatchReader(*files_, job_.data, {"f"},
                                 {.seed = job_.seed, .batch_size = 64, .side = side});
    EXPECT_TRUE(reader.ok()) << reader.status().message();
    return ReadEpoch(**reader);
  }

  const std::unique_ptr<FileSystem> files_;
  const std::vector<std::vector<Value>> rows_;
  Job job_;
};

TEST_F(VocabularyCountTest, CountsAreThoseOfTheRowsThatAreTrainedOn) {
  std::map<Value, uint64_t> counts;
  size_t trained = 0;
  for (const int id : IdsOf(Read(RowSide::kTrained))) {
    ++trained;
    for (const Value& value : rows_[static_cast<size_t>(id)]) ++counts[value];
  }
  ASSERT_GT(trained, 1000u);
  ASSERT_LT(trained, rows_.size()) << "some are held out";
  for (const uint64_t min_count : {1u, 2u, 20u, 100u, 100000u}) {
    std::set<Key> frequent;
    std::map<std::string, std::pair<uint64_t, uint64_t>> of_space;
    for (const auto& [value, count] : counts) {
      ++of_space[value.first].first;
      if (count < min_count) continue;
      ++of_space[value.first].second;
      frequent.insert(KeyOf(value));
    }
    std::string bytes;
    // With few counters there are many passes, and the same result.
    for (const size_t counters : {size_t{1} << 22, size_t{1000}, size_t{7}, size_t{1}}) {
      const Result<CountedVocabulary> counted = CountVocabulary(*files_, job_, min_count, counters);
      ASSERT_TRUE(counted.ok()) << counted.status().message();
      EXPECT_EQ(counted->vocabulary.size(), frequent.size());
      for (const Key key : frequent) EXPECT_TRUE(counted->vocabulary.Has(key));
      ASSERT_EQ(counted->spaces.size(), 2u);
      for (const ValuesOfSpace& of : counted->spaces) {
        EXPECT_EQ(std::pair(of.values, of.frequent), of_space.at(of.space)) << of.space;
      }
      if (bytes.empty()) bytes = counted->vocabulary.Print();
      EXPECT_EQ(counted->vocabulary.Print(), bytes);
    }
  }
}

TEST_F(VocabularyCountTest, RowsAreReadWithOneKeyForTheOtherValuesOfAVocabulary) {
  Result<CountedVocabulary> counted = CountVocabulary(*files_, job_, 40);
  ASSERT_TRUE(counted.ok());
  job_.data.vocabulary.file = "v.keys";
  job_.data.vocabulary.values = std::make_shared<const Vocabulary>(counted->vocabulary);
  const auto wanted = [&](const Value& value) {
    const Key key = KeyOf(value);
    return counted->vocabulary.Has(key) ? key : OtherValuesKey(HashString(value.first));
  };
  size_t others = 0, kept = 0;
  // Held-out rows are read by the same vocabulary.
  for (const RowSide side : {RowSide::kTrained, RowSide::kHeldOut}) {
    for (const Batch& batch : Read(side)) {
      const std::vector<int> ids = IdsOf(batch);
      for (size_t i = 0; i < ids.size(); ++i) {
        const std::vector<Value>& row = rows_[static_cast<size_t>(ids[i])];
        std::vector<Key> keys;
        for (const Value& value : row) {
          keys.push_back(wanted(value));
          ++(keys.back() == KeyOf(value) ? kept : others);
        }
        std::vector<Key> found;
        for (size_t f = 0; f < 3; ++f) {
          const SparseColumn& column = batch.sparse[f];
          for (uint32_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
            found.push_back(column.keys[k]);
          }
        }
        EXPECT_EQ(found, keys);
        const Key cross = CombineKeys(HashString("pair"),
                                      CombineKeys(keys[keys.size() - 2], keys[keys.size() - 1]));
        EXPECT_EQ(batch.sparse[3].keys[batch.sparse[3].offsets[i]], cross)
            << "crosses are made of the keys of the vocabulary";
      }
    }
  }
  EXPECT_GT(others, 100u);
  EXPECT_GT(kept, 100u);
}

}  // namespace
}  // namespace hdps
