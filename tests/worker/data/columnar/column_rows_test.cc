// Tests that a value gives the same key and number however it is stored, in a table or in a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "tests/worker/data/columnar/arrow_maker.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/batch_reader.h"
#include "worker/data/columnar/table_rows.h"
#include "worker/data/data_preview.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kPath = "memory:train";

ColumnSpec Column(const std::string& name, ColumnType type = ColumnType::kCategorical) {
  ColumnSpec column;
  column.name = name;
  column.type = type;
  return column;
}

DataSpec SpecOf(std::vector<ColumnSpec> columns) {
  DataSpec data;
  data.train = {kPath};
  data.columns = std::move(columns);
  return data;
}

// Reads all rows in order, and expects no bad one.
Batch Rows(DataSpec data, std::vector<MadeColumn> columns, const LabelSpec& label = {}) {
  data.tables[kPath] = MadeTable({std::move(columns)});
  const auto files = NewMemoryFileSystem();
  auto reader = NewBatchReader(*files, data, data.train,
                               {.batch_size = 1000, .shuffle = false, .labels = {label}});
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok()) return {};
  const std::vector<Batch> batches = ReadEpoch(**reader);
  return batches.empty() ? Batch() : batches[0];
}

// Returns the keys of the texts in a categorical column "c".
std::vector<Key> KeysOf(const std::vector<std::string>& texts) {
  std::vector<Key> keys;
  for (const std::string& text : texts) keys.push_back(FeatureKey(HashString("c"), text));
  return keys;
}

std::string WhyRefused(const DataSpec& data, std::vector<MadeColumn> columns,
                       uint32_t num_classes = 2) {
  DataSpec of_table = data;
  of_table.tables[kPath] = MadeTable({std::move(columns)});
  const auto files = NewMemoryFileSystem();
  const auto reader = NewBatchReader(*files, of_table, of_table.train,
                                     {.shuffle = false, .num_classes = num_classes});
  if (!reader.ok()) return reader.status().message();
  const Status started = (*reader)->StartEpoch(0, 0);
  return started.ok() ? (*reader)->Next().status().message() : started.message();
}

TEST(ColumnRowsTest, AKeyDoesNotDependOnHowItsValueIsStored) {
  const DataSpec data = SpecOf({Column("c")});
  const std::vector<Key> numbers = KeysOf({"7", "-3", "", "7"});
  EXPECT_EQ(Rows(data, {Numbers<int8_t>("c", {7, -3, std::nullopt, 7})}).sparse[0].keys, numbers);
  EXPECT_EQ(Rows(data, {Numbers<int64_t>("c", {7, -3, std::nullopt, 7})}).sparse[0].keys, numbers);
  EXPECT_EQ(Rows(data, {Texts("c", {"7", "-3", "", " 7\t"}, "U")}).sparse[0].keys, numbers);
  EXPECT_EQ(Rows(data, {Texts("c", {"7", "-3", "  ", "7"}, "vu")}).sparse[0].keys, numbers);
  EXPECT_EQ(
      Rows(data, {Dictionary<uint8_t>("c", {1, 0, std::nullopt, 1}, Numbers<int16_t>("", {-3, 7}))})
          .sparse[0]
          .keys,
      numbers);
  EXPECT_EQ(
      Rows(data, {Dictionary<int32_t>("c", {1, 0, 2, 1}, Texts("", {"-3", "7", std::nullopt}))})
          .sparse[0]
          .keys,
      numbers);
  EXPECT_EQ(Rows(data, {Bools("c", {true, false, std::nullopt})}).sparse[0].keys,
            KeysOf({"1", "0", ""}));
  EXPECT_EQ(Rows(data, {Nulls("c", 2)}).sparse[0].keys, KeysOf({"", ""}));
  constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Rows(data, {Numbers<uint64_t>("c", {kLargest})}).sparse[0].keys,
            KeysOf({"18446744073709551615"}));
}

TEST(ColumnRowsTest, NumbersOfAllTypesAreTheirValues) {
  const DataSpec data = SpecOf({Column("x", ColumnType::kNumeric)});
  const auto numbers = [&](MadeColumn column) { return Rows(data, {std::move(column)}).numeric; };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(numbers(Numbers<uint8_t>("x", {200, std::nullopt})), ElementsAre(200, 0));
  EXPECT_THAT(numbers(Numbers<int32_t>("x", {-5, 5})), ElementsAre(-5, 5));
  EXPECT_THAT(numbers(Numbers<double>("x", {0.1, kNan, std::nullopt})), ElementsAre(0.1f, 0, 0));
  EXPECT_THAT(numbers(Numbers<float>("x", {0.1f, -2.5f})), ElementsAre(0.1f, -2.5f));
  EXPECT_THAT(numbers(Bools("x", {true, false})), ElementsAre(1, 0));
  EXPECT_THAT(numbers(Texts("x", {" 2.5", "", "-1e1"})), ElementsAre(2.5f, 0, -10));
  EXPECT_THAT(numbers(Dictionary<int8_t>("x", {1, 0}, Numbers<double>("", {0.5, 1.5}))),
              ElementsAre(1.5f, 0.5f));
  EXPECT_THAT(numbers(Nulls("x", 1)), ElementsAre(0));
  // -0 is 0, as in a file.
  EXPECT_FALSE(std::signbit(numbers(Numbers<double>("x", {-0.0}))[0]));
}

TEST(ColumnRowsTest, TheTextForMissingCellsCounts) {
  DataSpec data = SpecOf({Column("c"), Column("x", ColumnType::kNumeric)});
  data.missing = "-1";
  const Batch batch = Rows(data, {Numbers<int64_t>("c", {-1, 1}), Numbers<int8_t>("x", {-1, -2})});
  EXPECT_EQ(batch.sparse[0].keys, KeysOf({"", "1"}));
  EXPECT_THAT(batch.numeric, ElementsAre(0, -2));
  // The text of the number -1.0 is another one.
  EXPECT_THAT(Rows(data, {Texts("c", {"a"}), Numbers<double>("x", {-1})}).numeric, ElementsAre(-1));
  data.missing = "-1.0";
  EXPECT_THAT(Rows(data, {Texts("c", {"a"}), Numbers<double>("x", {-1})}).numeric, ElementsAre(0));
}

TEST(ColumnRowsTest, AMultiValuedCellIsAListOrAText) {
  DataSpec data = SpecOf({Column("c", ColumnType::kMulti)});
  data.columns[0].separator = ";";
  const auto expect_tags = [&](MadeColumn column) {
    const Batch batch = Rows(data, {std::move(column)});
    EXPECT_EQ(batch.sparse[0].keys, KeysOf({"7", "8", "9"}));
    EXPECT_THAT(batch.sparse[0].offsets, ElementsAre(0, 2, 2, 2, 3));
  };
  expect_tags(Texts("c", {"7; 8", "", std::nullopt, "9;"}));
  expect_tags(Lists("c", {2, 0, std::nullopt, 2}, Texts("item", {"7", " 8", "9", ""})));
  expect_tags(
      Lists("c", {2, 0, std::nullopt, 2}, Numbers<int64_t>("item", {7, 8, 9, std::nullopt}), "+L"));
  expect_tags(Lists("c", {3, 0, std::nullopt, 1},
                    Dictionary<int8_t>("", {0, 1, std::nullopt, 2}, Texts("", {"7", "8", "9"}))));
}

TEST(ColumnRowsTest, IdsComeFromIntegersAndTexts) {
  DataSpec data = SpecOf({Column("c")});
  data.columns[0].vocab_size = 10;
  const Key three = IdKey(HashString("c"), 3);
  for (const MadeColumn& column :
       {Numbers<int64_t>("c", {3, 12, std::nullopt}), Texts("c", {"3", "12", ""})}) {
    const Batch batch = Rows(data, {column});
    EXPECT_THAT(batch.sparse[0].keys, ElementsAre(three));
    EXPECT_THAT(batch.sparse[0].offsets, ElementsAre(0, 1, 1, 1));
    EXPECT_THAT(batch.unknown_ids, ElementsAre(0, 1, 0));
  }
  EXPECT_THAT(WhyRefused(data, {Numbers<int64_t>("c", {3, -4})}),
              HasSubstr("memory:train row 1: '-4': expected an id: a whole number from 0 on in "
                        "column 'c'"));
}

TEST(ColumnRowsTest, LabelsAreReadByTheirTexts) {
  ColumnSpec label = Column("y", ColumnType::kLabel);
  const auto labels = [](const ColumnSpec& spec, MadeColumn column, uint32_t classes = 2) {
    return Rows(SpecOf({spec}), {std::move(column)}, {"", classes}).labels;
  };
  EXPECT_THAT(labels(label, Numbers<int32_t>("y", {1, 0, -1})), ElementsAre(1, 0, 0));
  EXPECT_THAT(labels(label, Bools("y", {true, false})), ElementsAre(1, 0));
  EXPECT_THAT(labels(label, Numbers<double>("y", {1.0, 0.0})), ElementsAre(1, 0));
  EXPECT_THAT(labels(label, Numbers<double>("y", {0.1, -7.5}), kLabelsAnyNumber),
              ElementsAre(0.1f, -7.5f));
  EXPECT_THAT(WhyRefused(SpecOf({label}), {Numbers<int32_t>("y", {1, 2})}),
              HasSubstr("memory:train row 1: '2': expected a label: 0, 1 or -1 in column 'y'"));
  EXPECT_THAT(WhyRefused(SpecOf({label}), {Numbers<int32_t>("y", {std::nullopt})}),
              HasSubstr("row 0: '': expected a label"));
  label.positive = {"yes", "4"};
  EXPECT_THAT(labels(label, Texts("y", {"yes", "no", " yes"})), ElementsAre(1, 0, 1));
  EXPECT_THAT(labels(label, Numbers<int32_t>("y", {4, 5})), ElementsAre(1, 0));
  label.positive = {};
  label.classes = {"cat", "dog", "cow"};
  EXPECT_THAT(labels(label, Dictionary<int8_t>("y", {1, 0}, Texts("", {"dog", "cow"})), 3),
              ElementsAre(2, 1));
}

TEST(ColumnRowsTest, OneCellMayBeAFeatureAGroupAndAWeight) {
  DataSpec data = SpecOf({Column("u"), Column("c"), Column("g", ColumnType::kGroup),
                          Column("w", ColumnType::kWeight), Column("s", ColumnType::kSkip)});
  data.columns[1].from = data.columns[2].from = "u";
  const Batch batch = Rows(data, {Numbers<float>("w", {0.5f, 2}), Texts("u", {"a", "b"})});
  EXPECT_EQ(batch.sparse[1].keys, KeysOf({"a", "b"}));
  EXPECT_THAT(batch.groups,
              ElementsAre(FeatureKey(HashString("g"), "a"), FeatureKey(HashString("g"), "b")));
  EXPECT_THAT(batch.weights, ElementsAre(0.5f, 2));
  EXPECT_THAT(WhyRefused(data, {Numbers<float>("w", {-1}), Texts("u", {"a"})}),
              HasSubstr("row 0: '-1.0': expected a weight"));
}

TEST(ColumnRowsTest, RefusesColumnsThatDoNotFit) {
  const DataSpec data = SpecOf({Column("c"), Column("x", ColumnType::kNumeric)});
  const MadeColumn x = Numbers<int64_t>("x", {1}), c = Texts("c", {"a"});
  const auto other = [](const std::string& format) {
    return MadeColumn{.format = format, .name = "c", .length = 1};
  };
  EXPECT_THAT(WhyRefused(data, {x}), HasSubstr("memory:train: the table has no column 'c'"));
  EXPECT_THAT(WhyRefused(data, {x, c, c}), HasSubstr("column 'c' stands twice in the table"));
  EXPECT_THAT(WhyRefused(data, {x, Numbers<double>("c", {1})}),
              HasSubstr("column 'c' has the type float64: expected integers or texts"));
  EXPECT_THAT(WhyRefused(data, {x, Dictionary<int8_t>("c", {0}, Numbers<float>("", {1}))}),
              HasSubstr("the type dictionary of float32: expected integers or texts"));
  EXPECT_THAT(WhyRefused(data, {x, Lists("c", {1}, c)}),
              HasSubstr("the type list of text: expected one value a row"));
  EXPECT_THAT(WhyRefused(data, {c, Lists("x", {1}, x)}), HasSubstr("one value a row"));
  const std::pair<const char*, const char*> formats[] = {{"d:9,2,32", "decimal"},
                                                         {"tdD", "date"},
                                                         {"ttu", "time"},
                                                         {"tsu:UTC", "timestamp"},
                                                         {"tDs", "duration"},
                                                         {"tiM", "interval"},
                                                         {"w:16", "fixed-size binary"},
                                                         {"+w:3", "fixed-size list"},
                                                         {"+s", "struct"},
                                                         {"+m", "map"},
                                                         {"+us:0,1", "union"},
                                                         {"+r", "run-end encoded"},
                                                         {"+vl", "list view"},
                                                         {"?", "?"},
                                                         {"", ""}};
  for (const auto& [format, name] : formats) {
    EXPECT_THAT(WhyRefused(data, {x, other(format)}),
                HasSubstr(std::string("column 'c' has the type ") + name + ": expected integers"));
  }
  EXPECT_THAT(WhyRefused(SpecOf({Column("c", ColumnType::kMulti)}), {other("tdD")}),
              HasSubstr("or texts, or lists of them; cast it"));
  // A column of the table that the job does not read may have any type.
  EXPECT_EQ(WhyRefused(data, {x, c, MadeColumn{.format = "tdD", .name = "d", .length = 1}}), "");
  EXPECT_THAT(
      WhyRefused(data, {c, Numbers<double>("x", {-std::numeric_limits<double>::infinity()})}),
      HasSubstr("memory:train row 0: '-inf': expected a number in column 'x'"));
  EXPECT_THAT(WhyRefused(data, {c, Texts("x", {"nan"})}),
              HasSubstr("memory:train row 0: 'nan': expected a number"));
}

TEST(ColumnRowsTest, ATableStandsAloneInACsvJob) {
  DataSpec data = SpecOf({Column("c")});
  data.tables[kPath] = MadeTable({{Texts("c", {"a"})}});
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", "a\n");
  const auto refused = [&](const std::vector<std::string>& paths) {
    return NewBatchReader(*files, data, paths, {}).status().message();
  };
  EXPECT_THAT(refused({"f", kPath}), HasSubstr("'memory:train' is a table, and stands beside 1"));
  EXPECT_THAT(refused({"memory:eval"}), HasSubstr("'memory:eval' does not exist: it names a table "
                                                  "in the memory of a program"));
  EXPECT_EQ(refused({"f"}), "");
  data.format = DataFormat::kCriteo;
  EXPECT_THAT(refused({kPath}), HasSubstr("is a table, and data.format is criteo: expected csv"));
}

TEST(ColumnRowsTest, ThePreviewTellsHowATableIsRead) {
  DataSpec data =
      SpecOf({Column("y", ColumnType::kLabel), Column("c"), Column("t", ColumnType::kMulti)});
  data.header = true;  // Counts for files alone.
  data.tables[kPath] =
      MadeTable({{Texts("c", {"y", "b"}), Lists("t", {2, 0}, Texts("item", {"p", "q"})),
                  Numbers<int64_t>("y", {1, 0}), Texts("other", {"", ""})}});
  const auto files = NewMemoryFileSystem();
  const auto preview = PreviewData(*files, data, data.train, {LabelSpec()});
  ASSERT_TRUE(preview.ok()) << preview.status().message();
  EXPECT_EQ(preview->rows, 2u);
  EXPECT_THAT(preview->lines,
              ElementsAre(HasSubstr("a table of 2 rows: label 'y'"),
                          HasSubstr("first row, memory:train row 0: label 1 from y=1, c=y, t=p|q"),
                          HasSubstr("first 2 rows: label 0 in 1, label 1 in 1")));
  data.tables[kPath] = MadeTable({{Texts("c", {"a"}), Texts("t", {""}), Texts("y", {"4"})}});
  EXPECT_THAT(PreviewData(*files, data, data.train, {LabelSpec()}).status().message(),
              HasSubstr("memory:train row 0: '4': expected a label"));
}

TEST(ColumnRowsTest, AnyRowsAreABatchWithoutLabels) {
  DataSpec data = SpecOf({Column("y", ColumnType::kLabel), Column("x", ColumnType::kNumeric),
                          Column("c"), Column("g", ColumnType::kGroup)});
  const std::shared_ptr<const ColumnTable> table =
      MadeTable({{Numbers<int64_t>("x", {0, 1}), Texts("c", {"a", "b"})},
                 {Numbers<int64_t>("x", {2, 3}), Texts("c", {"d", std::nullopt})}});
  const auto rows = TableRows::Make(data, table, "the data");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ((*rows)->num_rows(), 4u);
  const Result<Batch> batch = (*rows)->Read(1, 4);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->num_examples, 3u);
  EXPECT_THAT(batch->numeric, ElementsAre(1, 2, 3));
  EXPECT_EQ(batch->sparse[0].keys, KeysOf({"b", "d", ""}));
  EXPECT_EQ((*rows)->Read(2, 2)->num_examples, 0u);

  const auto bad = TableRows::Make(
      data, MadeTable({{Texts("x", {"1", "?", "3"}), Texts("c", {"a", "b", "d"})}}), "the data");
  EXPECT_TRUE((*bad)->Read(2, 3).ok());
  EXPECT_THAT((*bad)->Read(0, 3).status().message(),
              HasSubstr("the data row 1: '?': expected a number in column 'x'"));
  EXPECT_THAT(
      TableRows::Make(data, MadeTable({{Texts("c", {"a"})}}), "the data").status().message(),
      HasSubstr("the data: the table has no column 'x'"));
  data.format = DataFormat::kLibsvm;
  EXPECT_THAT(TableRows::Make(data, table, "the data").status().message(),
              HasSubstr("data.format is libsvm: expected csv"));
}

}  // namespace
}  // namespace hdps
