// Tests columns that read the cell of another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/header_check.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Key KeyOf(const std::string& feature, const std::string& value) {
  return FeatureKey(HashString(feature), value);
}

// Returns the only batch of a small text.
Result<std::optional<Batch>> Parse(const DataSpec& data, const std::string& text) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  HDPS_ASSIGN_OR_RETURN(
      auto reader, NewBatchReader(*files, data, {"f"}, {.batch_size = 1000, .shuffle = false}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  return reader->Next();
}

Batch ParseGood(const DataSpec& data, const std::string& text) {
  auto batch = Parse(data, text);
  EXPECT_TRUE(batch.ok()) << batch.status().message();
  return batch.ok() && batch->has_value() ? **batch : Batch();
}

std::string ErrorOf(const DataSpec& data, const std::string& text) {
  return Parse(data, text).status().message();
}

// A user is a feature, the group and the weight of the row at once, and is crossed with another.
DataSpec SharedCells() {
  DataSpec data;
  data.columns.resize(6);
  data.columns[0].name = "group";  // It may precede the column whose cell it reads.
  data.columns[0].type = ColumnType::kGroup;
  data.columns[0].from = "user";
  data.columns[1].name = "y";
  data.columns[1].type = ColumnType::kLabel;
  data.columns[2].name = "user";
  data.columns[3].name = "n";
  data.columns[3].type = ColumnType::kNumeric;
  data.columns[4].name = "importance";
  data.columns[4].type = ColumnType::kWeight;
  data.columns[4].from = "n";
  data.columns[5].name = "n_text";
  data.columns[5].from = "n";
  data.features = {Crossed("user_x_n", {"user", "n_text"})};
  return data;
}

void ExpectSharedCells(const Batch& batch) {
  ASSERT_EQ(batch.num_examples, 2u);
  EXPECT_THAT(batch.labels, ElementsAre(1, 0));
  EXPECT_THAT(batch.numeric, ElementsAre(2.5f, 4));
  EXPECT_THAT(batch.weights, ElementsAre(2.5f, 4));
  EXPECT_THAT(batch.sparse[0].keys, ElementsAre(KeyOf("user", "ann"), KeyOf("user", "bob")));
  EXPECT_THAT(batch.sparse[1].keys, ElementsAre(KeyOf("n_text", "2.5"), KeyOf("n_text", "4")));
  EXPECT_EQ(batch.sparse[2].keys.size(), 2u);
  EXPECT_THAT(batch.groups, ElementsAre(KeyOf("group", "ann"), KeyOf("group", "bob")));
}

TEST(SharedCellsTest, ACellMayBeSeveralThingsAtOnce) {
  DataSpec data = SharedCells();
  ExpectSharedCells(ParseGood(data, "1,ann,2.5\n0,\"bob\",4\n"));
  EXPECT_THAT(ErrorOf(data, "1,ann,2.5,7\n"), HasSubstr("as many cells as data.columns has (3)"));
  EXPECT_THAT(ErrorOf(data, "1,ann\n"), HasSubstr("as many cells as data.columns has (3)"));
  EXPECT_THAT(ErrorOf(data, "1,ann,-1\n"),
              HasSubstr("f:1:7: '-1': expected a weight: a number from 0 on in column "
                        "'importance'"));
  data.header = true;
  ExpectSharedCells(ParseGood(data, "n,Y,other,user\n2.5,1,,ann\n4,0,,bob\n"));
  ExpectSharedCells(ParseGood(data, "y,user,n\n1,ann,2.5\n0,bob,4\n"));
  EXPECT_THAT(ErrorOf(data, "y,n\n1,2\n"), HasSubstr("the header has no column 'user'"));
}

TEST(SharedCellsTest, ColumnsThatLackTakeTheirReadersWithThem) {
  const DataSpec data = SharedCells();
  constexpr uint32_t kAbsent = CellOrder::kAbsent;
  EXPECT_EQ(OrderOf(data.columns).num_cells, 3u);
  EXPECT_THAT(OrderOf(data.columns).cell_of_column, ElementsAre(1, 0, 1, 2, 2, 2));
  const CellOrder unlabelled = OrderOf(data.columns, {ColumnType::kLabel});
  EXPECT_EQ(unlabelled.num_cells, 2u);
  EXPECT_THAT(unlabelled.cell_of_column, ElementsAre(0, kAbsent, 0, 1, 1, 1));
}

}  // namespace
}  // namespace hdps
