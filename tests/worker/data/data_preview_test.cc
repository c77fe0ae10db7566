// Tests what a job learns of its data before it trains, and which mistakes end it there.
#include "worker/data/data_preview.h"
#include "common/job/spec/data_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/header_check.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<DataPreview> Preview(const DataSpec& data, const std::vector<std::string>& texts,
                            uint32_t num_classes = 2) {
  const auto files = NewMemoryFileSystem();
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    paths.push_back(std::string(1, static_cast<char>('a' + paths.size())) + ".csv");
    WriteText(*files, paths.back(), text);
  }
  return PreviewData(*files, data, paths, {{"", num_classes}});
}

DataPreview Good(const DataSpec& data, const std::vector<std::string>& texts,
                 uint32_t num_classes = 2) {
  auto preview = Preview(data, texts, num_classes);
  EXPECT_TRUE(preview.ok()) << preview.status().message();
  return preview.ok() ? *preview : DataPreview();
}

std::string ErrorOf(const DataSpec& data, const std::vector<std::string>& texts,
                    uint32_t num_classes = 2) {
  const auto preview = Preview(data, texts, num_classes);
  EXPECT_EQ(preview.status().code(), Code::kInvalidArgument);
  return preview.status().message();
}

DataSpec Incomes() {
  DataSpec data;
  data.columns.resize(4);
  data.columns[0].name = "age";
  data.columns[0].type = ColumnType::kNumeric;
  data.columns[1].name = "work";
  data.columns[2].name = "tags";
  data.columns[2].type = ColumnType::kMulti;
  data.columns[3].name = "income";
  data.columns[3].type = ColumnType::kLabel;
  data.columns[3].positive = {">50K", ">50K."};
  return data;
}

DataSpec OfFormat(DataFormat format, uint32_t num_fields = 0) {
  DataSpec data;
  data.format = format;
  data.num_fields = num_fields;
  return data;
}

std::string CriteoRow(const std::string& label, const std::string& number) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + number;
  for (int i = 0; i < 26; ++i) line += "\tc";
  return line + "\n";
}

std::string CriteoHeader() {
  std::string line = "label";
  for (int i = 1; i <= 13; ++i) line += "\tI" + std::to_string(i);
  for (int i = 1; i <= 26; ++i) line += "\tC" + std::to_string(i);
  return line + "\n";
}

// ---- What is understood.

TEST(DataPreviewTest, SaysFormatColumnsFirstRowLabelsAndKeys) {
  const DataPreview preview =
      Good(Incomes(), {"39, State, a|b, <=50K\n50, , , >50K\n", "1,x,y,<=50K\n2,not looked at"});
  EXPECT_THAT(
      preview.lines,
      ElementsAre("2 files of format csv: label 'income' (1 where it is '>50K' or '>50K.', "
                  "else 0), 1 numeric column, 2 sparse features",
                  "first row, a.csv:1: label 0 from age=39, work=State, tags=a|b, "
                  "income=<=50K",
                  "first 3 rows: label 0 in 2, label 1 in 1; 1 key a row in 1 sparse feature, "
                  "'tags' 1.0 keys a row (0 to 2)"));
  EXPECT_THAT(preview.warnings, ElementsAre());
  EXPECT_EQ(preview.rows, 3u);
  EXPECT_THAT(preview.labels, ElementsAre(2, 1));
}

TEST(DataPreviewTest, SaysWhichColumnsHaveTheSameKeys) {
  DataSpec data = Incomes();
  data.columns[1].vocabulary = "tags";
  EXPECT_THAT(Good(data, {"39,State,a|b,<=50K\n50,x,y,>50K\n"}).lines[0],
              HasSubstr("2 sparse features; 'work' and 'tags' have the same keys"));
}

TEST(DataPreviewTest, NamesTheFeaturesOfEntriesWithAnIndex) {
  EXPECT_THAT(
      Good(OfFormat(DataFormat::kLibfm, 2), {"-1 204:1 4798:1\n1 7:1 9:0.5\n"}).lines,
      ElementsAre("1 file of format libfm: a label, 0 numeric columns, 2 sparse features",
                  "first row, a.csv:1: label 0 from label=-1, field0=204:1, field1=4798:1",
                  "first 2 rows: label 0 in 1, label 1 in 1; 1 key a row in 2 sparse features"));
  EXPECT_THAT(Good(OfFormat(DataFormat::kLibffm, 3), {"1 2:9:1 0:7:0.5 2:4:1\n"}).lines[1],
              HasSubstr("label=1, field2=9:1, field0=7:0.5, field2=4:1"));
  EXPECT_THAT(Good(OfFormat(DataFormat::kLibsvm), {"1 3:1 5:1\n"}).lines[2],
              HasSubstr("'features' 2.0 keys a row (2 to 2)"));
  EXPECT_THAT(Good(OfFormat(DataFormat::kCriteo), {CriteoRow("1", "5")}).lines[1],
              HasSubstr("label 1 from label=1, I1=5, I2=5, "));
}

TEST(DataPreviewTest, LongRowsAreCutAndClassesCounted) {
  DataSpec data;
  data.columns.resize(101);
  for (size_t c = 0; c < 100; ++c) data.columns[c].name = "c" + std::to_string(c);
  data.columns[100].name = "digit";
  data.columns[100].type = ColumnType::kLabel;
  std::string row;
  for (int c = 0; c < 100; ++c) row += "v\x01,";
  const DataPreview preview = Good(data, {row + "9\n" + row + "3\n"}, 10);
  EXPECT_THAT(preview.lines[1], HasSubstr("label 9 from c0=v\\x01, c1=v\\x01, "));
  EXPECT_TRUE(preview.lines[1].ends_with(" more")) << preview.lines[1];
  EXPECT_LT(preview.lines[1].size(), 300u);
  EXPECT_THAT(preview.lines[2], HasSubstr("label 3 in 1, label 9 in 1; "));
}

TEST(DataPreviewTest, ManyPositiveTextsAreCut) {
  DataSpec data = Incomes();
  data.columns[3].positive = {"a", "b", "c", "d"};
  EXPECT_THAT(Good(data, {"1,w,t,a\n"}).lines[0],
              HasSubstr("label 'income' (1 where it is 'a' or 'b' or 'c' or another of "
                        "data.columns, else 0), 1 numeric column"));
}

TEST(DataPreviewTest, FilesWithoutRowsAndPipesArePassedOver) {
  const DataPreview none = Good(NumberedRows(), {"", "\n"});
  EXPECT_EQ(none.rows, 0u);
  EXPECT_EQ(none.lines.size(), 1u);
  EXPECT_EQ(Good(NumberedRows(), {"", "0,1,c\n1,2,c\n"}).rows, 2u);
}

TEST(DataPreviewTest, RowsToPredictMayLackTheLabelsCell) {
  DataSpec data = Incomes();
  data.header = true;
  const DataPreview preview = Good(data, {"age,work,tags\n39,State,a\n"}, kLabelsNotRead);
  EXPECT_THAT(preview.warnings, ElementsAre());
  EXPECT_EQ(preview.lines[1], "first row, a.csv:2: age=39, work=State, tags=a");
}

// ---- Mistakes.

TEST(DataPreviewTest, ABadRowEndsTheJobByPlaceUnlessItMayBePassedOver) {
  DataSpec data = NumberedRows();
  const std::vector<std::string> texts = {NumberedText(0, 3) + "0,x,c\n" + NumberedText(4, 9)};
  EXPECT_THAT(
      ErrorOf(data, texts),
      HasSubstr("a.csv:4:3: 'x': expected a number in column 'id' (data.max_bad_rows is 0"));
  EXPECT_THAT(ErrorOf(data, {NumberedText(0, 3), "0\n"}), HasSubstr("b.csv:1:2: ''"));
  data.max_bad_rows = 5;
  const DataPreview preview = Good(data, texts);
  EXPECT_THAT(preview.warnings,
              ElementsAre(HasSubstr("1 row of the first 9 cannot be read; the first: a.csv:4:3:")));
  EXPECT_EQ(preview.rows, 8u);
}

TEST(DataPreviewTest, AHeaderThatIsNotAnnouncedIsNamed) {
  const std::string row = "39,State,a,<=50K\n";
  EXPECT_THAT(ErrorOf(Incomes(), {"age,work,tags,income\n" + row}),
              HasSubstr("a.csv:1: this line is a header"));
  EXPECT_THAT(ErrorOf(Incomes(), {row, "Age,Work,Tags,Income\n" + row}),
              HasSubstr("b.csv:1: this line is a header"));
  EXPECT_THAT(ErrorOf(Incomes(), {"years,job,labels,pay\n" + row}),
              HasSubstr("a.csv:1:1: 'years': expected a number in column 'age'; the next row is "
                        "good, so if this line is a header, set data.header to true"));
  EXPECT_THAT(ErrorOf(Incomes(), {"years,job,labels,pay\nmany,x,y,z\n"}),
              ::testing::Not(HasSubstr("header")));
  EXPECT_THAT(ErrorOf(Incomes(), {"a title of the table\n" + row}),
              ::testing::Not(HasSubstr("header")));
  DataSpec lenient = Incomes();
  lenient.max_bad_rows = 1;
  const DataPreview passed = Good(lenient, {"years,job,labels,pay\n" + row + row});
  EXPECT_THAT(passed.warnings, ElementsAre(HasSubstr("set data.header to true")));
  EXPECT_EQ(passed.rows, 2u);
  // Only texts, which could train as a row.
  DataSpec texts = Incomes();
  texts.columns.erase(texts.columns.begin());
  EXPECT_THAT(ErrorOf(texts, {"work,tags,income\nState,a,<=50K\n"}), HasSubstr("is a header"));
  EXPECT_THAT(ErrorOf(OfFormat(DataFormat::kCriteo), {CriteoHeader() + CriteoRow("1", "5")}),
              HasSubstr("a.csv:1: this line is a header"));
  DataSpec criteo = OfFormat(DataFormat::kCriteo);
  criteo.header = true;
  const DataPreview preview = Good(criteo, {CriteoHeader() + CriteoRow("1", "5")});
  EXPECT_EQ(preview.rows, 1u);
  EXPECT_THAT(preview.warnings, ElementsAre());
}

TEST(DataPreviewTest, AHeaderThatIsNotAnnouncedIsKnownInAnyOrder) {
  EXPECT_THAT(ErrorOf(Incomes(), {"income,tags,age,work\n<=50K,a,39,State\n"}),
              HasSubstr("a.csv:1: this line is a header"));
}

TEST(DataPreviewTest, ColumnsAreFoundByTheirNames) {
  DataSpec data = Incomes();
  data.header = true;
  const std::string row = "39,State,a,<=50K\n";
  EXPECT_THAT(Good(data, {"\"Age\", work ,TAGS,income\n" + row}).warnings, ElementsAre());
  // Another order, again another in the second file, and unused columns.
  const DataPreview preview = Good(
      data, {"id,income,tags,age,work\n7,>50K,a|b,39,State\n", "work,age,income,tags\nx,1,y,z\n",
             "id,age,work,tags,income\n7,39,State,a,<=50K\n"});
  EXPECT_THAT(preview.warnings,
              ElementsAre("a.csv:1: columns of the header that the job does not name are passed "
                          "over: 'id'; so in 1 more file"));
  EXPECT_EQ(preview.lines[1],
            "first row, a.csv:2: label 1 from income=>50K, tags=a|b, age=39, work=State");
  EXPECT_EQ(preview.rows, 3u);
}

TEST(DataPreviewTest, HeadersWithoutAColumnAreRefused) {
  DataSpec data = Incomes();
  data.header = true;
  const std::string row = "39,State,a,<=50K\n";
  EXPECT_THAT(
      ErrorOf(data, {"age,work,tag,pay\n" + row}),
      HasSubstr("a.csv:1: the header has no column 'tags'; did you mean \"tag\"?; and 1 more "
                "of the job are not there: expected all names of data.columns, in any "
                "order; the header also has 'tag', 'pay'"));
  EXPECT_THAT(ErrorOf(data, {"age,work,tags,income,work\n" + row}),
              HasSubstr("column 'work' stands twice in the header, as columns 2 and 5"));
  EXPECT_THAT(ErrorOf(data, {row + row}), HasSubstr("a.csv:1: data.header is true, but this line "
                                                    "reads like a row: expected the names"));
  EXPECT_THAT(ErrorOf(data, {"\n" + row}), HasSubstr("a.csv:1: the first line is blank"));
  // Also in a file that is not previewed.
  std::vector<std::string> many(26, "age,work,tags,income\n" + row);
  many.back() = "age,work,tags\n";
  EXPECT_THAT(ErrorOf(data, many), HasSubstr("z.csv:1: the header has no column 'income'"));
  // A skipped column need not exist.
  data.columns[1].type = ColumnType::kSkip;
  EXPECT_THAT(Good(data, {"income,tags,age\n>50K,a,1\n"}).warnings, ElementsAre());
}

TEST(HeaderTest, NumberedColumnsMayBeginElsewhere) {
  std::vector<std::string> warnings;
  EXPECT_TRUE(CompareHeader("f:1", {{"I0", "I1"}, {"I1", "I2"}, {"I2", "I3"}}, &warnings).ok());
  EXPECT_THAT(warnings, ElementsAre("f:1: the header has other names than the job: 'I1' for 'I0', "
                                    "'I2' for 'I1', 'I3' for 'I2'"));
  EXPECT_FALSE(CompareHeader("f:1", {{"I1", "C1"}, {"C1", "I1"}}, &warnings).ok());
}

TEST(HeaderTest, HalfTheNamesAreNotEnough) {
  const std::vector<std::string> columns = {"a", "b", "c", "d"};
  const auto cells = [](const std::vector<std::string>& texts) {
    std::vector<NamedText> line;
    for (const std::string& text : texts) line.push_back({"", text});
    return line;
  };
  EXPECT_TRUE(NamesItsColumns(cells({"B", "A", "x"}), columns));
  EXPECT_FALSE(NamesItsColumns(cells({"a", "b", "x", "y"}), columns));
  EXPECT_FALSE(NamesItsColumns(cells({"a", "x"}), columns));
  EXPECT_FALSE(NamesItsColumns(cells({"a", "a", "a"}), columns)) << "a row of one value";
  EXPECT_TRUE(NamesItsColumns(cells({"a"}), {"a"}));
  EXPECT_FALSE(NamesItsColumns(cells({"", ""}), {"", ""}));
}

TEST(DataPreviewTest, LabelsThatNeverMatchAreSaid) {
  DataSpec data = Incomes();
  data.columns[3].positive = {">50k"};
  EXPECT_THAT(
      Good(data, {"1,a,b,<=50K\n2,a,b,>50K\n3,a,b,<=50K\n"}).warnings,
      ElementsAre("a.csv: no label in the first 3 rows is '>50k', so all count as 0; the labels "
                  "are '<=50K' (2), '>50K' (1)"));
  EXPECT_THAT(Good(data, {"1,a,b,<=50K\n"}).warnings, ElementsAre()) << "it may be sorted";
  EXPECT_THAT(Good(OfFormat(DataFormat::kLibsvm), {"-1 1:1\n0 1:1\n1 2:1\n"}).warnings,
              ElementsAre(HasSubstr("labels are both -1 and 0")));
  EXPECT_THAT(Good(OfFormat(DataFormat::kLibsvm), {"-1 1:1\n+1 2:1\n"}).warnings, ElementsAre());
}

TEST(DataPreviewTest, EveryFormatKnowsMinusOneAndNamesABadFirstLineOnce) {
  struct Case {
    DataSpec data;
    std::string good, bad, mistake;
  };
  DataSpec csv = NumberedRows();
  const Case cases[] = {
      {csv, "-1,1,c\n1,2,c\n", "-1,x,c\n", ":1:4: 'x': expected a number in column 'id'"},
      {OfFormat(DataFormat::kCriteo), CriteoRow("-1", "5") + CriteoRow("1", ""),
       CriteoRow("-1", "x"), ":1:4: 'x': expected a number in column 'I1'"},
      {OfFormat(DataFormat::kLibsvm), "-1 3:1\n+1 4:1\n", "-1 x:1\n",
       ":1:4: 'x:1': expected index:value"},
      {OfFormat(DataFormat::kLibffm, 2), "-1 0:3:1\n1 1:4:1\n", "-1 2:3:1\n",
       ":1:4: '2:3:1': expected a field from 0 to data.num_fields - 1 = 1"},
      {OfFormat(DataFormat::kLibfm, 2), "-1 3:1 5:1\n1 4:1 5:1\n", "-1 3:1\n",
       ":1:7: '': expected as many entries"}};
  for (const Case& c : cases) {
    const DataPreview preview = Good(c.data, {c.good});
    EXPECT_THAT(preview.labels, ElementsAre(1, 1)) << WordOf(c.data.format);
    EXPECT_THAT(preview.warnings, ElementsAre());
    EXPECT_THAT(ErrorOf(c.data, {c.bad + c.good}), HasSubstr("a.csv" + c.mistake));
    // Also in the evaluation files.
    const auto files = NewMemoryFileSystem();
    WriteText(*files, "train", c.good);
    WriteText(*files, "eval", c.bad + c.good);
    Job job;
    job.data = c.data;
    job.data.train = {"train"};
    job.data.eval = {"eval"};
    const Status status = PreviewJobData(*files, job).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("eval" + c.mistake));
  }
}

TEST(DataPreviewTest, AJobIsToldOfBothItsSplits) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "train.csv", NumberedText(0, 10));
  WriteText(*files, "eval.csv", "0,1,c\nlate,2,c\n");
  Job job;
  job.data = NumberedRows();
  job.data.train = {"train.csv"};
  EXPECT_TRUE(PreviewJobData(*files, job).ok());
  job.data.eval = {"eval.csv"};
  EXPECT_THAT(PreviewJobData(*files, job).status().message(), HasSubstr("eval.csv:2:1: 'late'"));
  job.data.eval = {"none.csv"};
  EXPECT_EQ(PreviewJobData(*files, job).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hdps
