// Tests how the settings of csv data split and read cells; commas between entries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Key KeyOf(const std::string& feature, const std::string& value) {
  return FeatureKey(HashString(feature), value);
}

Row RowOf(const DataSpec& data, const std::string& line, uint32_t num_classes = 2) {
  const auto parser = NewRowParser(data, {LabelSpec{"", num_classes}});
  Row row;
  const std::optional<RowError> error = parser->Parse(line, &row);
  EXPECT_FALSE(error) << line << ": " << DescribeRowError("f", 1, line, *error);
  return row;
}

std::string ErrorOf(const DataSpec& data, const std::string& line, uint32_t num_classes = 2) {
  const auto parser = NewRowParser(data, {LabelSpec{"", num_classes}});
  Row row;
  const std::optional<RowError> error = parser->Parse(line, &row);
  return error ? DescribeRowError("f", 1, line, *error) : "";
}

TEST(CellSettingsTest, QuotesMayBeLettersOrOthers) {
  DataSpec data = NumberedRows();
  data.quote = "";
  EXPECT_THAT(RowOf(data, "1,7,\"red").keys, ElementsAre(KeyOf("color", "\"red")));
  EXPECT_THAT(RowOf(data, "1,7,5\" \"blue\"").keys, ElementsAre(KeyOf("color", "5\" \"blue\"")));
  data.quote = "'";
  EXPECT_THAT(RowOf(data, "1,7,'red, ''dark'''").keys, ElementsAre(KeyOf("color", "red, 'dark'")));
  EXPECT_THAT(RowOf(data, "1,7,\"red").keys, ElementsAre(KeyOf("color", "\"red")));
}

TEST(CellSettingsTest, NumbersMayHaveADecimalComma) {
  DataSpec data = NumberedRows();
  data.delimiter = ";";
  data.decimal = ",";
  const Row row = RowOf(data, "1,0;-7,5;a,b");
  EXPECT_EQ(row.label, 1);
  EXPECT_THAT(row.numbers, ElementsAre(-7.5));
  EXPECT_THAT(row.keys, ElementsAre(KeyOf("color", "a,b")));
  EXPECT_THAT(RowOf(data, "0;1e3;red").numbers, ElementsAre(1000));
  EXPECT_THAT(ErrorOf(data, "1;7.5;red"), HasSubstr("f:1:3: '7.5': expected a number"));
}

TEST(CellSettingsTest, LabelsMayBeTextsOfClasses) {
  DataSpec data = NumberedRows();
  data.columns[0].classes = {"setosa", "virginica", "1"};
  EXPECT_EQ(RowOf(data, "setosa,7,red", 3).label, 0);
  EXPECT_EQ(RowOf(data, "virginica,7,red", 3).label, 1);
  EXPECT_EQ(RowOf(data, " 1 ,7,red", 3).label, 2);
  EXPECT_THAT(ErrorOf(data, "rosa,7,red", 3),
              HasSubstr("'rosa': expected a label: one of the 3 texts of `classes`"));
}

TEST(CellSettingsTest, RowsWithoutALabelArePositiveOnes) {
  DataSpec data = NumberedRows();
  data.columns.erase(data.columns.begin());
  EXPECT_EQ(RowOf(data, "7,red").label, 1);
  EXPECT_EQ(RowOf(data, "8,\"blue\"").label, 1);
}

TEST(CellSettingsTest, CommasMayStandBetweenEntries) {
  DataSpec data;
  data.format = DataFormat::kLibffm;
  data.num_fields = 2;
  const Row row = RowOf(data, "1 0:7:0.5 1:9:1");
  for (const char* line : {"1,0:7:0.5,1:9:1", "1, 0:7:0.5, 1:9:1", "1,0:7:0.5 ,1:9:1,\r"}) {
    EXPECT_EQ(RowOf(data, line).keys, row.keys) << line;
    EXPECT_EQ(RowOf(data, line).weights, row.weights) << line;
  }
  EXPECT_THAT(ErrorOf(data, "1,0:7:0.5 1:9:1"), HasSubstr("f:1:3: '0:7:0.5 1:9:1'"))
      << "either commas or blanks";
  // Several labels of svmlight are not one label with an entry.
  data.format = DataFormat::kLibsvm;
  EXPECT_THAT(ErrorOf(data, "1,3 5:0.2"), HasSubstr("'3 5:0.2': expected index:value"));
}

}  // namespace
}  // namespace hdps
