// Tests columns of ids: which keys they give, which ids have no row, and which texts are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>

#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/executor.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/formats/row_lanes.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Key IdOf(const std::string& vocabulary, uint64_t id) { return IdKey(HashString(vocabulary), id); }
Key TextOf(const std::string& feature, const std::string& value) {
  return FeatureKey(HashString(feature), value);
}

// Columns y (label), user (10 ids), tags (many of 5 ids), city (texts), and user crossed with city.
DataSpec Ids() {
  DataSpec data;
  data.missing = "?";
  data.columns.resize(4);
  data.columns[0].name = "y";
  data.columns[0].type = ColumnType::kLabel;
  data.columns[1].name = "user";
  data.columns[1].vocab_size = 10;
  data.columns[2].name = "tags";
  data.columns[2].type = ColumnType::kMulti;
  data.columns[2].vocab_size = 5;
  data.columns[3].name = "city";
  data.features = {Crossed("user_city", {"user", "city"})};
  return data;
}

Result<std::optional<Batch>> Parse(const DataSpec& data, const std::string& text) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  HDPS_ASSIGN_OR_RETURN(
      auto reader, NewBatchReader(*files, data, {"f"}, {.batch_size = 1000, .shuffle = false}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  return reader->Next();
}

TEST(IdColumnsTest, AnIdIsARowAndOthersHaveNone) {
  const auto read = Parse(Ids(),
                          "1,7,0|4,bonn\n"
                          "0,007,,bonn\n"       // The same id as 7.
                          "1,10,5|1|99,bonn\n"  // 10, 5 and 99 are beyond.
                          "0,?,2,rome\n"        // A missing id has no row, and is not counted.
                          "1,99999999999999999999999,3,rome\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  const Batch& batch = **read;
  EXPECT_THAT(batch.unknown_ids, ElementsAre(0, 0, 3, 0, 1));
  EXPECT_THAT(batch.sparse[0].keys, ElementsAre(IdOf("user", 7), IdOf("user", 7)));
  EXPECT_THAT(batch.sparse[0].offsets, ElementsAre(0, 1, 2, 2, 2, 2));
  EXPECT_THAT(batch.sparse[1].keys, ElementsAre(IdOf("tags", 0), IdOf("tags", 4), IdOf("tags", 1),
                                                IdOf("tags", 2), IdOf("tags", 3)));
  EXPECT_THAT(batch.sparse[2].keys,
              ElementsAre(TextOf("city", "bonn"), TextOf("city", "bonn"), TextOf("city", "bonn"),
                          TextOf("city", "rome"), TextOf("city", "rome")));
  EXPECT_THAT(batch.sparse[3].offsets, ElementsAre(0, 1, 2, 2, 2, 2)) << "nothing to cross";
}

TEST(IdColumnsTest, OtherTextsAreBadRows) {
  const std::string expected = ": expected an id: a whole number from 0 on in column ";
  const struct {
    const char *row, *error;
  } rows[] = {{"1,-4,0,x", "f:2:3: '-4'"},  {"1,+4,0,x", "f:2:3: '+4'"}, {"1,1.0,0,x", "'1.0'"},
              {"1,1e3,0,x", "'1e3'"},       {"1,a4,0,x", "'a4'"},        {"1,0x4,0,x", "'0x4'"},
              {"1,4,0|-1,x", "f:2:7: '-1'"}};
  for (const auto& [row, error] : rows) {
    const std::string told = Parse(Ids(), std::string("1,1,1,x\n") + row + "\n").status().message();
    EXPECT_THAT(told, HasSubstr(error));
    EXPECT_THAT(told, HasSubstr(expected)) << row;
  }
}

TEST(IdColumnsTest, NoTwoIdsShareAKey) {
  std::set<Key> keys;
  for (uint64_t id = 0; id < 100000; ++id) keys.insert(IdOf("user", id));
  for (uint64_t id = 0; id < 100000; ++id) keys.insert(IdOf("item", id));
  EXPECT_EQ(keys.size(), 200000u);
}

TEST(IdColumnsTest, ColumnsOfOneVocabularyHaveTheSameRows) {
  DataSpec data = Ids();
  data.columns[2].vocabulary = "user";
  data.columns[2].vocab_size = 10;
  const auto read = Parse(data, "1,7,7|3,x\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT((**read).sparse[1].keys, ElementsAre(IdOf("user", 7), IdOf("user", 3)));
}

// Has enough threads, by its word, for the rows of a batch to be parsed in parts.
class Parts : public Executor {
 public:
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    parts = std::max(parts, count);
    for (size_t i = 0; i < count; ++i) body(i);
  }
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return kLaneThreadsMin; }
  size_t parts = 0;
};

TEST(IdColumnsTest, ThreadsCountWhatOneCounts) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "1," + std::to_string(i % 13) + "," + std::to_string(i % 7) + ",x\n";
  }
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  Parts executor;
  std::vector<Batch> batches;
  for (Executor* const each :
       {static_cast<Executor*>(nullptr), static_cast<Executor*>(&executor)}) {
    ReaderOptions options{.batch_size = 3000, .shuffle = false};
    options.executor = each;
    auto reader = NewBatchReader(*files, Ids(), {"f"}, options);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    batches.push_back(ReadEpoch(**reader).at(0));
  }
  EXPECT_GE(executor.parts, size_t{kLaneThreadsMin});
  EXPECT_EQ(batches[0].unknown_ids, batches[1].unknown_ids);
  const auto& counts = batches[0].unknown_ids;
  // Of each 13 users 3 are beyond, and of each 7 tags 2. The 3000 rows are 230 times 13 and 10
  // more, or 428 times 7 and 4 more, of which none is beyond.
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0u), 230u * 3 + 428u * 2);
}

}  // namespace
}  // namespace hdps
