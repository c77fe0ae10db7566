// Tests what hdps prepare finds in files, and the job that it makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/prepare/prepare_report.h"
#include "worker/data/data_preview.h"

namespace hdps {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- Sketches, against counting everything.

TEST(SketchTest, DistinctValuesAreExactUpToTheBoundAndNearBeyond) {
  constexpr size_t kKept = 4096;
  DistinctValues exact(kKept), estimate(kKept);
  for (uint64_t i = 0; i < 2 * kKept; ++i) exact.Add(MixBits(i % kKept));
  EXPECT_TRUE(exact.exact());
  EXPECT_EQ(exact.distinct(), kKept);
  EXPECT_EQ(exact.AtLeast(2), kKept);
  EXPECT_EQ(exact.AtLeast(3), 0);
  EXPECT_THAT(exact.ByTimes(3), ElementsAre(0, kKept, 0));
  // 200,000 values, of which every fourth occurs twice.
  constexpr uint64_t kValues = 200000;
  for (uint64_t i = 0; i < kValues; ++i) {
    estimate.Add(MixBits(i));
    if (i % 4 == 0) estimate.Add(MixBits(i));
  }
  EXPECT_FALSE(estimate.exact());
  // Four standard errors: 1.2 / sqrt(kept) of all, and as much of the sample of repeated ones.
  const double error = 4 * 1.2 / std::sqrt(kKept);
  EXPECT_THAT(estimate.distinct(), DoubleNear(kValues, error * kValues));
  EXPECT_THAT(estimate.AtLeast(2), DoubleNear(kValues / 4.0, 2 * error * kValues / 4.0));
}

TEST(SketchTest, FrequentValuesAreThereAndNeverTooHigh) {
  FrequentValues frequent;
  std::map<std::string, uint64_t> counts;
  uint64_t cells = 0;
  for (uint64_t i = 0; i < 60000; ++i) {
    // Three values in a sixth of the cells each, and many rare ones.
    const std::string text =
        i % 2 == 0 ? "often" + std::to_string(i / 2 % 3) : "rare" + std::to_string(MixBits(i));
    ++counts[text];
    ++cells;
    frequent.Add(HashString(text), text);
  }
  EXPECT_LE(frequent.error(), cells / 512) << "each thinning takes it off half of 1,024 counters";
  const auto top = frequent.Top(3);
  ASSERT_EQ(top.size(), 3u);
  for (const auto& value : top) {
    EXPECT_TRUE(value.text.starts_with("often")) << value.text;
    EXPECT_LE(value.count, counts[value.text]);
    EXPECT_GE(value.count + frequent.error(), counts[value.text]);
  }
  FrequentValues few;
  for (const char* text : {"b", "a", "b", "c"}) few.Add(HashString(text), text);
  EXPECT_EQ(few.error(), 0u);
  EXPECT_EQ(few.Top(2)[0].text, "b");
  EXPECT_EQ(few.Top(2)[1].text, "a");
}

TEST(SketchTest, MomentsAreThoseOfTheFormulas) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> draw(0.1);
  Moments moments;
  std::vector<double> numbers;
  for (int i = 0; i < 5000; ++i) numbers.push_back(draw(random) + 1000);
  double mean = 0, square = 0, cube = 0;
  for (const double x : numbers) moments.Add(x);
  for (const double x : numbers) mean += x / 5000;
  for (const double x : numbers) square += (x - mean) * (x - mean);
  for (const double x : numbers) cube += (x - mean) * (x - mean) * (x - mean);
  EXPECT_NEAR(moments.mean(), mean, 1e-9 * mean);
  EXPECT_NEAR(moments.deviation(), std::sqrt(square / 4999), 1e-9 * mean);
  EXPECT_NEAR(moments.skewness(), std::sqrt(5000) * cube / std::pow(square, 1.5), 1e-6);
  Moments alike;
  for (int i = 0; i < 3; ++i) alike.Add(7);
  EXPECT_EQ(alike.deviation(), 0);
  EXPECT_EQ(alike.skewness(), 0);
}

TEST(BoundariesTest, QuantilesKeepTheUsualValueApart) {
  std::vector<double> even;
  for (int i = 0; i < 1000; ++i) even.push_back(i);
  const std::vector<double> bounds = QuantileBoundaries(even);
  ASSERT_EQ(bounds.size(), 19u);
  for (size_t b = 0; b < bounds.size(); ++b)
    EXPECT_EQ(bounds[b], 50 * (static_cast<double>(b) + 1));
  // Nine of ten are 0: the rest has its own buckets, from its least value on.
  std::vector<double> gains(900, 0.0);
  for (int i = 1; i <= 100; ++i) gains.push_back(100 * i);
  const std::vector<double> of_gains = QuantileBoundaries(gains);
  EXPECT_EQ(of_gains.front(), 100);
  EXPECT_EQ(of_gains.size(), 20u);
  EXPECT_THAT(QuantileBoundaries({5, 5, 5}), ElementsAre());
  EXPECT_THAT(QuantileBoundaries({}), ElementsAre());
  EXPECT_THAT(LogBoundaries(9), ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(LogBoundaries(1e30).size(), 24u);
}

// ---- Formats.

DataLayout LayoutOf(const std::string& text) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  auto layout = TellLayout(*files, "f");
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  return layout.ok() ? *layout : DataLayout();
}

std::string CriteoRow(const std::string& label) {
  std::string line = label;
  for (int i = 0; i < 13; ++i) line += "\t" + std::string(i % 2 == 0 ? "3" : "");
  for (int i = 0; i < 26; ++i) line += "\t68fd1e64";
  return line + "\n";
}

TEST(LayoutTest, FormatsAreToldFromTheContent) {
  EXPECT_EQ(LayoutOf(CriteoRow("0") + CriteoRow("1")).format, DataFormat::kCriteo);
  EXPECT_EQ(LayoutOf("-1 3:1 11:1\n+1 5:1\n").format, DataFormat::kLibsvm);
  EXPECT_EQ(LayoutOf("1 1:0.5 2:0.25 3:1\n-1 1:0.1 2:0.3 3:2\n").format, DataFormat::kLibsvm)
      << "a dense vector: the same index in each place";
  EXPECT_EQ(LayoutOf("1 0:7:1 2:9:1\n0 1:3:0.5\n").format, DataFormat::kLibffm);
  const DataLayout fm = LayoutOf("-1 204:1 4798:1\n1 7:1 4799:1\n");
  EXPECT_EQ(fm.format, DataFormat::kLibfm);
  EXPECT_EQ(fm.num_fields, 2u);
}

TEST(LayoutTest, DelimiterHeaderAndCommentsOfTables) {
  const DataLayout plain = LayoutOf("1,a,2.5\n0,b,3.5\n1,\"x, y\",4\n");
  EXPECT_EQ(plain.format, DataFormat::kCsv);
  EXPECT_FALSE(plain.header);
  EXPECT_THAT(plain.names, ElementsAre("column1", "column2", "column3"));
  const DataLayout tabs = LayoutOf("label\tword\tn\n1\ta,b\t2.5\n0\tb,c\t3.5\n");
  EXPECT_EQ(tabs.delimiter, "\t");
  EXPECT_TRUE(tabs.header);
  EXPECT_THAT(tabs.names, ElementsAre("label", "word", "n"));
  EXPECT_EQ(LayoutOf("a;b\n1;2\n3;4\n").delimiter, ";");
  const DataLayout remarks = LayoutOf("age,work\n|a remark\n1,x\n2,y\n");
  EXPECT_EQ(remarks.comment, "|");
  EXPECT_TRUE(remarks.header);
  // Only texts: the names of a header do not occur again.
  std::string texts = "color,shape\n";
  for (int i = 0; i < 20; ++i) texts += i % 2 == 0 ? "red,square\n" : "blue,circle\n";
  EXPECT_TRUE(LayoutOf(texts).header);
  EXPECT_FALSE(LayoutOf("red,square\n" + texts.substr(12)).header);
}

TEST(LayoutTest, WhatIsNoDataIsRefused) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "empty", "\n \n");
  WriteText(*files, "prose", "It was a dark night.\nNobody was there\nat all\n");
  EXPECT_EQ(TellLayout(*files, "empty").status().code(), Code::kInvalidArgument);
  EXPECT_THAT(TellLayout(*files, "prose").status().message(),
              HasSubstr("prose:1: 'It was a dark night.': expected rows of csv"));
}

// ---- Plans.

struct Prepared {
  DataProfile profile;
  DataPlan plan;
  std::string error;
};

Prepared PlanOf(const std::string& text, const std::string& label = "",
                const std::string& eval = "") {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f.csv", text);
  Prepared prepared;
  const auto layout = TellLayout(*files, "f.csv");
  if (!layout.ok()) return {{}, {}, layout.status().message()};
  prepared.profile = *ProfileData(*files, *layout, {"f.csv"}, {});
  std::optional<DataProfile> of_eval;
  if (!eval.empty()) {
    WriteText(*files, "e.csv", eval);
    of_eval = *ProfileData(*files, *layout, {"e.csv"}, {.only = label});
  }
  auto plan = PlanData(prepared.profile, of_eval ? &*of_eval : nullptr, {.label = label});
  if (!plan.ok()) return {{}, {}, plan.status().message()};
  prepared.plan = *plan;
  return prepared;
}

// Columns of every kind; 400 rows.
std::string Table() {
  std::string text = "row,session_id,age,visits,stars,color,tags,same,clicked\n";
  for (int i = 0; i < 400; ++i) {
    const uint64_t draw = MixBits(static_cast<uint64_t>(i));
    text += std::to_string(1000 + i) + ",s" + std::to_string(draw) + "," +
            std::to_string(20 + draw % 50) + "," + std::to_string((1u << (draw % 17)) - 1) + "," +
            std::to_string(1 + draw % 5) + "," + (draw % 3 == 0 ? "red" : "blue") + "," +
            (draw % 2 == 0   ? "a|b"
             : draw % 5 == 0 ? "b|c|a"
                             : "c") +
            ",x," + (draw % 4 == 0 ? "yes" : "no") + "\n";
  }
  return text;
}

TEST(PlanTest, ColumnsAreTakenForWhatTheyAre) {
  const Prepared prepared = PlanOf(Table());
  ASSERT_EQ(prepared.error, "");
  std::map<std::string, ColumnPlan> by_name;
  for (const ColumnPlan& column : prepared.plan.columns) by_name[column.spec.name] = column;
  EXPECT_EQ(by_name["row"].spec.type, ColumnType::kSkip);
  EXPECT_EQ(by_name["session_id"].spec.type, ColumnType::kSkip);
  EXPECT_EQ(by_name["age"].spec.type, ColumnType::kNumeric);
  EXPECT_EQ(by_name["age"].spec.transform, Transform::kStandardize);
  EXPECT_NEAR(by_name["age"].spec.mean, 44.5, 3);
  EXPECT_FALSE(by_name["age"].boundaries.empty());
  EXPECT_EQ(by_name["visits"].spec.transform, Transform::kLog1p);
  EXPECT_TRUE(by_name["visits"].log_buckets);
  EXPECT_EQ(by_name["stars"].spec.type, ColumnType::kCategorical);
  EXPECT_EQ(by_name["color"].spec.type, ColumnType::kCategorical);
  EXPECT_EQ(by_name["tags"].spec.type, ColumnType::kMulti);
  EXPECT_EQ(by_name["tags"].spec.separator, "|");
  EXPECT_EQ(by_name["same"].spec.type, ColumnType::kSkip);
  EXPECT_EQ(by_name["clicked"].spec.type, ColumnType::kLabel);
  EXPECT_THAT(by_name["clicked"].spec.positive, ElementsAre("yes"));
  EXPECT_GT(prepared.plan.positive_share, 0.15);
  EXPECT_LT(prepared.plan.positive_share, 0.35);
}

TEST(PlanTest, TheJobTrainsWithoutAnEdit) {
  for (const char* model : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "logistic"}) {
    const Prepared prepared = PlanOf(Table());
    JobWish wish;
    wish.name = "table";
    wish.model = model;
    wish.train = {"f.csv"};
    const Result<Job> job = ParseJob(PreparedJob(prepared.profile, prepared.plan, wish), "job", {});
    ASSERT_TRUE(job.ok()) << model << ": " << job.status().message();
    EXPECT_THAT(job->warnings, ElementsAre()) << model;
    const auto files = NewMemoryFileSystem();
    WriteText(*files, "f.csv", Table());
    const Result<DataPreview> preview = PreviewJobData(*files, *job);
    ASSERT_TRUE(preview.ok()) << preview.status().message();
    EXPECT_EQ(preview->rows, 400u);
    EXPECT_GT(preview->labels[1], 0u);
    EXPECT_THAT(preview->warnings, ElementsAre());
    EXPECT_THAT(PrepareReport(prepared.profile, prepared.plan, wish), HasSubstr("tags"));
  }
}

TEST(PlanTest, FormatsOfEntriesBecomeJobsToo) {
  std::string svm, ffm, fm;
  for (int i = 0; i < 50; ++i) {
    const std::string label = i % 3 == 0 ? "1" : "-1", a = std::to_string(i % 7),
                      b = std::to_string(100 + i % 5);
    svm += label + " " + a + ":1" + (i % 2 == 0 ? " 200:0.5" : "") + "\n";
    ffm += label + " 0:" + a + ":1 2:" + b + ":1\n";
    fm += label + " " + a + ":1 " + b + ":1\n";
  }
  for (const auto& [text, format, fields] :
       {std::tuple(svm, "libsvm", 1u), {ffm, "libffm", 3u}, {fm, "libfm", 2u}}) {
    const Prepared prepared = PlanOf(text);
    JobWish wish;
    wish.train = {"f.csv"};
    const Result<Job> job = ParseJob(PreparedJob(prepared.profile, prepared.plan, wish), "job", {});
    ASSERT_TRUE(job.ok()) << format << ": " << job.status().message();
    EXPECT_EQ(WordOf(job->data.format), format);
    EXPECT_EQ(FeaturesOf(job->data).sparse.size(), fields);
    EXPECT_NEAR(prepared.plan.positive_share, 17.0 / 50, 1e-12);
  }
}

TEST(PlanTest, LabelsOfEveryKind) {
  const auto rows = [](const std::string& yes, const std::string& no) {
    std::string text = "n,y\n";
    for (int i = 0; i < 30; ++i) text += std::to_string(i) + "," + (i % 3 == 0 ? yes : no) + "\n";
    return text;
  };
  EXPECT_THAT(PlanOf(rows("1", "-1")).plan.columns[1].spec.positive, ElementsAre());
  EXPECT_NEAR(PlanOf(rows("1", "-1")).plan.positive_share, 1.0 / 3, 1e-12);
  EXPECT_NEAR(PlanOf(rows("0", "1")).plan.positive_share, 2.0 / 3, 1e-12);
  EXPECT_THAT(PlanOf(rows(">50K", "<=50K")).plan.columns[1].spec.positive, ElementsAre(">50K"))
      << "the rarer one";
  EXPECT_THAT(PlanOf(rows("no", "yes")).plan.columns[1].spec.positive, ElementsAre("yes"));
  // The evaluation files spell the labels differently.
  const Prepared dots = PlanOf(rows(">50K", "<=50K"), "y", "n,y\n1,>50K.\n2,<=50K.\n");
  EXPECT_THAT(dots.plan.columns[1].spec.positive, ElementsAre(">50K", ">50K."));
  EXPECT_THAT(dots.plan.notes, ElementsAre());
  EXPECT_THAT(PlanOf(rows("a", "b"), "y", "n,y\n1,a\n2,z\n").plan.notes,
              ElementsAre(HasSubstr("have the label 'z'")));
  EXPECT_THAT(PlanOf(rows("1", "2"), "z").error,
              HasSubstr("--label=z: there is no such column in f.csv"));
  EXPECT_THAT(
      PlanOf(rows("1", "1")).error,
      HasSubstr("no column has two values, or the name of a label or a rating; give it with "
                "--label"));
  EXPECT_THAT(PlanOf(rows("1", "1"), "y").error,
              ::testing::AllOf(HasSubstr("f.csv: label 'y' has one value: '1'"),
                               HasSubstr("expected two (0 and 1, -1 and 1, or two words)")));
  EXPECT_EQ(PlanOf(rows("1", "x"), "n").plan.task, TaskKind::kRating);
  EXPECT_THAT(PlanOf(rows("0", "-1")).error, HasSubstr("is 0 or -1 in all rows"));
  EXPECT_THAT(PlanOf("c,a,b,d\nx,0,1,s\ny,1,0,t\nz,0,0,u\nw,1,1,v\n").error,
              HasSubstr("of two values are 'a', 'b'; give it with --label=NAME"))
      << "neither the first nor the last";
}

TEST(PlanTest, MissingCellsAndBadRowsAreSeen) {
  std::string text = "n,c,y\n";
  for (int i = 0; i < 300; ++i) {
    text += (i % 6 == 0 ? "?" : std::to_string(i * 1.5)) + "," + (i % 7 == 0 ? "?" : "a") +
            std::to_string(i % 3) + "," + (i % 2 == 0 ? "1" : "0") + "\n";
  }
  const Prepared prepared = PlanOf(text + "1,2\n5,a,\n");
  EXPECT_EQ(prepared.plan.missing, "?");
  EXPECT_EQ(prepared.plan.columns[0].spec.type, ColumnType::kNumeric);
  EXPECT_EQ(prepared.plan.bad_rows, 2u) << "one too short, one without a label";
  EXPECT_THAT(prepared.plan.notes[0], HasSubstr("f.csv:302: 2 cells where there should be 3"));
}

TEST(PlanTest, KeysThatComeOnceGetNoRow) {
  std::string text = "user_id,y\n";
  for (uint64_t i = 0; i < 260000; ++i) {
    // Half of the rows belong to 60,000 users that recur; the other users occur once.
    const uint64_t user = i % 2 == 0 ? MixBits(i) : MixBits(i) % 60000;
    text += std::to_string(user) + "," + (i % 3 == 0 ? "1" : "0") + "\n";
  }
  const Prepared prepared = PlanOf(text);
  ASSERT_EQ(prepared.error, "");
  EXPECT_TRUE(prepared.plan.admit_twice);
  EXPECT_THAT(PreparedJob(prepared.profile, prepared.plan, {}), HasSubstr("\"admit_after\": 2"));
  EXPECT_THAT(PrepareReport(prepared.profile, prepared.plan, {}), HasSubstr("about 1"));
  // A key that occurs twice has both rows in the training part in .81 of all cases.
  DataPlan twice;
  twice.admit_twice = true;
  twice.keys_by_times = {1000, 500};
  JobWish wish;
  wish.model = "logistic";
  EXPECT_DOUBLE_EQ(EstimateTables(twice, wish).rows, 500);
  wish.validation_share = 0.1;
  EXPECT_DOUBLE_EQ(EstimateTables(twice, wish).rows, 500 * .9 * .9);
}

}  // namespace
}  // namespace hdps
