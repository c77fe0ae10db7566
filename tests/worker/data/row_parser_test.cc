// Tests how the formats parse good and bad rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"

#include <cmath>

#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Key KeyOf(const std::string& feature, const std::string& value) {
  return FeatureKey(HashString(feature), value);
}

// Returns the only batch of a small text.
Result<std::optional<Batch>> Parse(const DataSpec& data, const std::string& text,
                                   uint32_t num_classes = 2) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  HDPS_ASSIGN_OR_RETURN(
      auto reader,
      NewBatchReader(*files, data, {"f"},
                     {.batch_size = 1000, .shuffle = false, .num_classes = num_classes}));
  HDPS_RETURN_IF_ERROR(reader->StartEpoch(0, 0));
  return reader->Next();
}

Batch ParseGood(const DataSpec& data, const std::string& text, uint32_t num_classes = 2) {
  auto batch = Parse(data, text, num_classes);
  EXPECT_TRUE(batch.ok()) << batch.status().message();
  return batch.ok() && batch->has_value() ? **batch : Batch();
}

std::string ErrorOf(const DataSpec& data, const std::string& text, uint32_t num_classes = 2) {
  const auto batch = Parse(data, text, num_classes);
  EXPECT_EQ(batch.status().code(), Code::kInvalidArgument) << text;
  return batch.status().message();
}

std::vector<Key> KeysOf(const SparseColumn& column, uint32_t example) {
  return {column.keys.begin() + column.offsets[example],
          column.keys.begin() + column.offsets[example + 1]};
}

DataSpec People() {
  DataSpec data;
  data.missing = "?";
  data.columns.resize(5);
  data.columns[0].name = "age";
  data.columns[0].type = ColumnType::kNumeric;
  data.columns[0].transform = Transform::kStandardize;
  data.columns[0].mean = 40;
  data.columns[0].scale = 10;
  data.columns[1].name = "work";
  data.columns[2].name = "note";
  data.columns[2].type = ColumnType::kSkip;
  data.columns[3].name = "tags";
  data.columns[3].type = ColumnType::kMulti;
  data.columns[4].name = "income";
  data.columns[4].type = ColumnType::kLabel;
  data.columns[4].positive = {">50K", ">50K."};
  return data;
}

TEST(CsvTest, ReadsCellsByTheirColumns) {
  const Batch batch = ParseGood(People(),
                                "50, Private, whatever, a| b ||a, >50K\n"
                                "?, ?, , ?, <=50K\n"
                                ",,,,>50K.\n"
                                " 30 ,\"Self, \"\"own\"\"\" , \"x\"\"y\",\"c|d\",\"<=50K\"\n");
  ASSERT_EQ(batch.num_examples, 4u);
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(batch.positive_texts, 0b11u);
  EXPECT_EQ(ParseGood(People(), ",,,,>50K.\n,,,,<=50K\n").positive_texts, 0b10u);
  EXPECT_EQ(ParseGood(People(), ",,,,<=50K\n").positive_texts, 0u);
  EXPECT_THAT(batch.numeric, ElementsAre(1, 0, 0, -1)) << "missing is 0 behind the transform";
  ASSERT_EQ(batch.sparse.size(), 2u);
  EXPECT_THAT(batch.sparse[0].keys, ElementsAre(KeyOf("work", "Private"), KeyOf("work", ""),
                                                KeyOf("work", ""), KeyOf("work", "Self, \"own\"")));
  EXPECT_THAT(batch.sparse[1].offsets, ElementsAre(0, 3, 3, 3, 5));
  EXPECT_THAT(KeysOf(batch.sparse[1], 0),
              ElementsAre(KeyOf("tags", "a"), KeyOf("tags", "b"), KeyOf("tags", "a")));
  EXPECT_TRUE(batch.sparse[1].weights.empty());
}

// Lines without quotes are split in one pass, those with quotes cell by cell.
TEST(CsvTest, APlainLineIsTheRowOfTheQuotedOne) {
  DataSpec data = NumberedRows();
  data.missing = "?";
  for (const std::string number : {"7", " -1.5 ", "?", "", "2e3\r"}) {
    std::string plain_text, quoted_text;
    for (size_t bytes = 0; bytes < 150; ++bytes) {
      const std::string color = bytes % 5 == 0 ? " ?" : std::string(bytes, 'x') + " ";
      plain_text += "1," + number + "," + color + "\n";
      quoted_text += "1,\"" + number + "\",\"" + color + "\"\n";
    }
    const Batch plain = ParseGood(data, plain_text), quoted = ParseGood(data, quoted_text);
    ASSERT_EQ(plain.num_examples, 150u);
    EXPECT_EQ(plain.labels, quoted.labels);
    EXPECT_EQ(plain.numeric, quoted.numeric) << number;
    EXPECT_EQ(plain.sparse[0].keys, quoted.sparse[0].keys) << number;
  }
  EXPECT_EQ(ParseGood(data, "1,7,a\"b\n").sparse[0].keys[0], KeyOf("color", "a\"b"));
  data.delimiter = "\t";
  EXPECT_EQ(ParseGood(data, "1\t7\tred\n").sparse[0].keys[0], KeyOf("color", "red"));
  EXPECT_EQ(ParseGood(data, "1\t7\t\n").sparse[0].keys[0], KeyOf("color", ""));
  EXPECT_THAT(ErrorOf(data, "1\t7\n"), HasSubstr("as many cells"));
  EXPECT_THAT(ErrorOf(data, "1\t7\tred\tblue\n"), HasSubstr("as many cells"));
  EXPECT_THAT(ErrorOf(data, "3\t7\tred\n"), HasSubstr("a label"));
}

TEST(CsvTest, NamesThePlaceOfABadCell) {
  const DataSpec data = People();
  const std::string good = "1,a,b,c,>50K\n";
  EXPECT_THAT(ErrorOf(data, good + "old,a,b,c,>50K\n"),
              HasSubstr("f:2:1: 'old': expected a number in column 'age'"));
  EXPECT_THAT(ErrorOf(data, good + " 1e400,a,b,c,>50K\n"), HasSubstr("f:2:2: '1e400'"));
  EXPECT_THAT(ErrorOf(data, "1,a,b,c,?\n"),
              HasSubstr("f:1:9: '?': expected a label in column 'income'"));
  EXPECT_THAT(ErrorOf(data, "1,a,b,c\n"), HasSubstr("f:1:8: '': expected as many cells as "
                                                    "data.columns has (5) in column 'income'"));
  EXPECT_THAT(ErrorOf(data, "1,a,b,c,>50K,more\n"), HasSubstr("f:1:14: 'more': expected as many"));
  EXPECT_THAT(ErrorOf(data, "1,\"a,b,c,>50K\n"), HasSubstr("f:1:3: '\"a,b,c,>50K': expected a "
                                                           "closing quote"));
  EXPECT_THAT(ErrorOf(data, "1,\"a\"x,b,c,>50K\n"), HasSubstr("f:1:6: 'x': expected a delimiter"));
  EXPECT_THAT(ErrorOf(data, "1,\xc3\xa9\xc3\xa9,b,c,>50K,\x01\n"), HasSubstr("f:1:15: '\\x01'"))
      << "columns count characters, not bytes";
  EXPECT_THAT(ErrorOf(data, "1e41,a,b,c,>50K\n"), HasSubstr("32-bit float in column 'age'"));
}

TEST(CsvTest, DerivesBucketsAndCrosses) {
  DataSpec data = People();
  data.features = {Crossed("cross3", {"work", "age_bucket", "tags"}),
                   Bucketized("age_bucket", "age", {18, 30}),
                   Crossed("cross2", {"work", "tags"}, 10), Crossed("other", {"work", "tags"}, 10)};
  const Batch batch = ParseGood(data,
                                "17.9,w,,a|b,>50K\n"
                                "18,w,,a,>50K\n"
                                "30,w,,,>50K\n"
                                "?,w,,a,>50K\n");
  ASSERT_EQ(batch.sparse.size(), 6u);
  EXPECT_THAT(batch.sparse[3].keys, ElementsAre(KeyOf("age_bucket", "0"), KeyOf("age_bucket", "1"),
                                                KeyOf("age_bucket", "2"), KeyOf("age_bucket", "")));
  EXPECT_THAT(batch.sparse[2].offsets, ElementsAre(0, 2, 3, 3, 4));
  const Key left = CombineKeys(KeyOf("work", "w"), KeyOf("age_bucket", "0"));
  EXPECT_THAT(
      KeysOf(batch.sparse[2], 0),
      ElementsAre(CombineKeys(HashString("cross3"), CombineKeys(left, KeyOf("tags", "a"))),
                  CombineKeys(HashString("cross3"), CombineKeys(left, KeyOf("tags", "b")))));
  const Key pair = CombineKeys(KeyOf("work", "w"), KeyOf("tags", "a"));
  EXPECT_EQ(batch.sparse[4].keys[0], CombineKeys(HashString("cross2"), pair % 10));
  EXPECT_EQ(batch.sparse[5].keys[0], CombineKeys(HashString("other"), pair % 10));
}

TEST(CsvTest, TooManyCrossesAreABadRow) {
  DataSpec data = NumberedRows();
  data.columns[1].name = "left";
  data.columns[1].type = ColumnType::kMulti;
  data.columns[2].type = ColumnType::kMulti;
  data.features = {Crossed("all", {"left", "color"})};
  std::string values = "v";
  for (int i = 0; i < 400; ++i) values += "|v" + std::to_string(i);
  EXPECT_THAT(ErrorOf(data, "0," + values + "," + values + "\n"),
              HasSubstr("expected fewer values to cross in column 'all'"));
}

DataSpec Criteo() {
  DataSpec data;
  data.format = DataFormat::kCriteo;
  return data;
}

std::string CriteoLine(const std::string& label, const std::string& number,
                       const std::string& category) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + number;
  for (int i = 0; i < 26; ++i) line += "\t" + category;
  return line + "\n";
}

TEST(CriteoTest, ReadsNumbersAndCategories) {
  const Batch batch = ParseGood(Criteo(), CriteoLine("1", "5000", "68fd1e64") +
                                              CriteoLine("0", "", "") + CriteoLine("0", "-2", "a"));
  ASSERT_EQ(batch.num_examples, 3u);
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 0));
  ASSERT_EQ(batch.num_numeric, 13u);
  EXPECT_EQ(batch.numeric[0], static_cast<float>(std::log1p(5000.0)));
  EXPECT_EQ(batch.numeric[13], 0.0f);
  EXPECT_EQ(batch.numeric[38], -static_cast<float>(std::log1p(2.0)));
  ASSERT_EQ(batch.sparse.size(), 26u);
  EXPECT_THAT(batch.sparse[25].keys,
              ElementsAre(KeyOf("C26", "68fd1e64"), KeyOf("C26", ""), KeyOf("C26", "a")));
  EXPECT_THAT(batch.sparse[25].offsets, ElementsAre(0, 1, 2, 3));
}

TEST(CriteoTest, EveryLengthOfLineIsCutAtTheSameTabs) {
  for (size_t bytes = 0; bytes < 150; ++bytes) {
    std::string line = CriteoLine("1", "3", "");
    line.insert(line.size() - 1, std::string(bytes, 'x'));
    const Batch batch = ParseGood(Criteo(), line);
    EXPECT_EQ(batch.sparse[25].keys[0], KeyOf("C26", std::string(bytes, 'x')));
    EXPECT_EQ(batch.sparse[24].keys[0], KeyOf("C25", ""));
    const std::string shifted =
        "1" + std::string(14, '\t') + std::string(bytes, 'x') + std::string(25, '\t') + "y\n";
    const Batch moved = ParseGood(Criteo(), shifted);
    EXPECT_EQ(moved.sparse[0].keys[0], KeyOf("C1", std::string(bytes, 'x')));
    EXPECT_EQ(moved.sparse[25].keys[0], KeyOf("C26", "y"));
  }
}

TEST(CriteoTest, NamesThePlaceOfABadCell) {
  EXPECT_THAT(ErrorOf(Criteo(), CriteoLine("2", "", "")),
              HasSubstr("f:1:1: '2': expected a label: 0, 1 or -1 in column 'label'"));
  EXPECT_THAT(ErrorOf(Criteo(), CriteoLine("1", "x", "")),
              HasSubstr("f:1:3: 'x': expected a number in column 'I1'"));
  EXPECT_THAT(ErrorOf(Criteo(), "1\t2\n"), HasSubstr("f:1:4: '': expected 40 cells between tabs"));
  EXPECT_THAT(ErrorOf(Criteo(), CriteoLine("1", "", "a\tb")), HasSubstr("expected 40 cells"));
}

TEST(CriteoTest, DerivesFeaturesFromItsColumns) {
  DataSpec data = Criteo();
  data.features = {Bucketized("b", "I2", {4}), Crossed("x", {"b", "C3"})};
  const Batch batch = ParseGood(data, CriteoLine("1", "5", "v"));
  ASSERT_EQ(batch.sparse.size(), 28u);
  EXPECT_THAT(batch.sparse[26].keys, ElementsAre(KeyOf("b", "1")));
  EXPECT_THAT(
      batch.sparse[27].keys,
      ElementsAre(CombineKeys(HashString("x"), CombineKeys(KeyOf("b", "1"), KeyOf("C3", "v")))));
}

TEST(LibsvmTest, ReadsIndexesAsKeysAndValuesAsWeights) {
  DataSpec data;
  data.format = DataFormat::kLibsvm;
  const std::string name = FeaturesOf(data).sparse.at(0);
  const Batch ones = ParseGood(data, "-1 3:1 11:1.0 # comment 5:2\n+1\n1 7\n");
  EXPECT_THAT(ones.labels, ElementsAre(0, 1, 1));
  EXPECT_THAT(ones.sparse[0].keys,
              ElementsAre(KeyOf(name, "3"), KeyOf(name, "11"), KeyOf(name, "7")));
  EXPECT_THAT(ones.sparse[0].offsets, ElementsAre(0, 2, 2, 3));
  EXPECT_TRUE(ones.sparse[0].weights.empty()) << "all ones need no weights";
  const Batch weighted = ParseGood(data, "0 3:1\n1 4:0.5 5:1\n0 6:1\n");
  EXPECT_THAT(weighted.sparse[0].weights, ElementsAre(1, 0.5, 1, 1));
  for (const char* bad :
       {"2 1:1", "x 1:1", "1 :1", "1 a:1", "1 1:", "1 1:x", "1 1:nan", "1 1:2:3"}) {
    EXPECT_THAT(ErrorOf(data, bad), HasSubstr("f:1:")) << bad;
  }
}

TEST(LibffmTest, ReadsFieldsAsFeatures) {
  DataSpec data;
  data.format = DataFormat::kLibffm;
  data.num_fields = 3;
  const std::vector<std::string> names = FeaturesOf(data).sparse;
  ASSERT_EQ(names.size(), 3u);
  const Batch batch = ParseGood(data, "1 0:7:0.5 2:9:1 2:4:0.25\n0 2:1:1 0:2:1\n");
  EXPECT_THAT(batch.sparse[0].keys, ElementsAre(KeyOf(names[0], "7"), KeyOf(names[0], "2")));
  EXPECT_THAT(batch.sparse[0].weights, ElementsAre(0.5, 1));
  EXPECT_THAT(batch.sparse[1].offsets, ElementsAre(0, 0, 0));
  EXPECT_THAT(batch.sparse[2].keys,
              ElementsAre(KeyOf(names[2], "9"), KeyOf(names[2], "4"), KeyOf(names[2], "1")));
  EXPECT_THAT(batch.sparse[2].weights, ElementsAre(1, 0.25, 1));
  EXPECT_THAT(ErrorOf(data, "1 3:7:1"), HasSubstr("f:1:3: '3:7:1': expected a field from 0 to"));
  EXPECT_THAT(ErrorOf(data, "1 0:7:1 1:x:1"), HasSubstr("f:1:9: '1:x:1': expected field:index:"));
}

TEST(LibfmTest, AnEntryIsOfTheFieldOfItsPlace) {
  DataSpec data;
  data.format = DataFormat::kLibfm;
  data.num_fields = 3;
  const std::vector<std::string> names = FeaturesOf(data).sparse;
  EXPECT_THAT(names, ElementsAre("field0", "field1", "field2"));
  const Batch batch = ParseGood(data, "-1 204:1 4798:1 0:1\n1 7:1 204:0.5 9:1 # comment 3:1\n");
  EXPECT_THAT(batch.labels, ElementsAre(0, 1));
  ASSERT_EQ(batch.sparse.size(), 3u);
  EXPECT_THAT(batch.sparse[0].keys, ElementsAre(KeyOf(names[0], "204"), KeyOf(names[0], "7")));
  EXPECT_THAT(batch.sparse[1].keys, ElementsAre(KeyOf(names[1], "4798"), KeyOf(names[1], "204")));
  EXPECT_THAT(batch.sparse[1].weights, ElementsAre(1, 0.5));
  EXPECT_THAT(batch.sparse[2].keys, ElementsAre(KeyOf(names[2], "0"), KeyOf(names[2], "9")));
  EXPECT_THAT(ErrorOf(data, "1 1:1 2:1 3:1\n1 7:1 9:1\n"),
              HasSubstr("f:2:10: '': expected as many entries index:value in a row as "
                        "data.num_fields says, 3, and this row has 2"));
  EXPECT_THAT(ErrorOf(data, "1 1:1 2:1 3:1 44:1 5:1"),
              HasSubstr("f:1:15: '44:1': expected as many entries index:value in a row as "
                        "data.num_fields says, 3, and this row has 5"));
  EXPECT_THAT(ErrorOf(data, "1 1:1 2:1 x:1"), HasSubstr("f:1:11: 'x:1': expected index:value"));
}

TEST(SoftmaxLabelTest, IsBoundedByTheNumberOfClasses) {
  const DataSpec data = NumberedRows();
  EXPECT_THAT(ParseGood(data, "9,1,a\n0,1,a\n", 10).labels, ElementsAre(9, 0));
  EXPECT_THAT(ErrorOf(data, "10,1,a\n", 10), HasSubstr("a whole number from 0 to 9"));
}

// Rows of one key are batched; rows between and after them keep their places.
TEST(BatchBuilderTest, RowsOfAllShapesStandInTheirOrder) {
  constexpr size_t kFeatures = 3;
  constexpr uint32_t kRows = 200;
  BatchBuilder builder({.num_numeric = 1, .num_sparse = kFeatures}, kRows);
  Batch expected;
  expected.sparse.resize(kFeatures);
  for (SparseColumn& column : expected.sparse) column.offsets = {0};
  Random random(5);
  bool weighted = false;
  for (uint32_t r = 0; r < kRows; ++r) {
    Row row;
    row.label = static_cast<float>(r % 2);
    // Long runs of rows with one key each, then some of other shapes, later also with weights.
    const bool odd = r % 40 > 33;
    weighted = weighted || r == 118;
    for (size_t f = 0; f < kFeatures; ++f) {
      const uint64_t keys = odd ? random.Below(3) : 1;
      for (uint64_t k = 0; k < keys; ++k) row.keys.push_back(random.Next());
      row.EndFeature();
    }
    if (odd && weighted) row.weights.assign(row.keys.size(), 0.5f);
    builder.Add(row, {static_cast<float>(r)});
    for (size_t f = 0; f < kFeatures; ++f) {
      SparseColumn& column = expected.sparse[f];
      for (uint32_t k = row.KeyBegin(f); k < row.key_ends[f]; ++k) {
        column.keys.push_back(row.keys[k]);
        column.weights.push_back(row.weights.empty() ? 1.0f : row.weights[k]);
      }
      column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    }
  }
  const Batch batch = builder.Finish(7);
  ASSERT_EQ(batch.num_examples, kRows);
  for (uint32_t r = 0; r < kRows; ++r) EXPECT_EQ(batch.numeric[r], static_cast<float>(r));
  for (size_t f = 0; f < kFeatures; ++f) {
    EXPECT_EQ(batch.sparse[f].offsets, expected.sparse[f].offsets);
    EXPECT_EQ(batch.sparse[f].keys, expected.sparse[f].keys);
    EXPECT_EQ(batch.sparse[f].weights, expected.sparse[f].weights);
  }
}

TEST(RowParserTest, ColumnsOfOneVocabularyHaveTheSameKeys) {
  DataSpec data;
  data.columns.resize(4);
  data.columns[0].name = "y";
  data.columns[0].type = ColumnType::kLabel;
  data.columns[1].name = "history";
  data.columns[1].type = ColumnType::kMulti;
  data.columns[1].vocabulary = "target";
  data.columns[2].name = "target";
  data.columns[3].name = "other";
  const std::unique_ptr<RowParser> parser = NewRowParser(data, {{"", 2}});
  Row row;
  ASSERT_FALSE(parser->Parse("1,i7|i9,i9,i9", &row).has_value());
  ASSERT_EQ(row.keys.size(), 4u);
  EXPECT_EQ(row.keys[1], row.keys[2]);
  EXPECT_EQ(row.keys[2], FeatureKey(HashString("target"), "i9"));
  EXPECT_NE(row.keys[2], row.keys[3]);
}

}  // namespace
}  // namespace hdps
