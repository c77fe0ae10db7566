// Tests the generator: same bytes for the same seed, the requested skew, labels as probable as
// stated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_log.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kTextMax = uint64_t{1} << 30;

TEST(ZipfTest, FrequenciesFollowTheExponent) {
  constexpr uint64_t kCount = 20, kDraws = 100000;
  for (double exponent : {0.0, 0.5, 1.0, 1.05, 2.5}) {
    std::vector<double> expected(kCount), seen(kCount);
    double total = 0;
    for (uint64_t k = 0; k < kCount; ++k) {
      total += expected[k] = std::pow(static_cast<double>(k + 1), -exponent);
    }
    const Zipf zipf(kCount, exponent);
    Random random(3);
    for (uint64_t i = 0; i < kDraws; ++i) seen.at(zipf.Draw(random)) += 1;
    double chi_squared = 0;
    for (uint64_t k = 0; k < kCount; ++k) {
      const double wanted = expected[k] / total * kDraws;
      chi_squared += (seen[k] - wanted) * (seen[k] - wanted) / wanted;
    }
    EXPECT_LT(chi_squared, 50) << "exponent " << exponent << ", 19 degrees of freedom";
  }
  Random random(3);
  EXPECT_EQ(Zipf(1, 1.05).Draw(random), 0u);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(Zipf(uint64_t{1} << 32, 1.05).Draw(random), 1ull << 32);
}

SyntheticLogSpec SmallSpec(TeacherFamily family) {
  SyntheticLogSpec spec;
  spec.rows = 300;
  spec.eval_rows = 200;
  spec.numeric = 4;
  spec.categorical = 6;
  spec.vocabulary = 50;
  spec.family = family;
  return spec;
}

std::string TrainText(const SyntheticLogSpec& spec) {
  const auto files = NewMemoryFileSystem();
  const auto written = WriteSyntheticLog(*files, "log", spec);
  EXPECT_TRUE(written.ok()) << written.status().message();
  return *ReadWholeFile(*files, "log/train.tsv", kTextMax);
}

TEST(SyntheticLogTest, TheSeedDecidesEveryByte) {
  SyntheticLogSpec spec = SmallSpec(TeacherFamily::kPairwise);
  const std::string text = TrainText(spec);
  EXPECT_EQ(TrainText(spec), text);
  spec.rows = 100;
  const std::string shorter = TrainText(spec);
  EXPECT_EQ(text.substr(0, shorter.size()), shorter) << "fewer rows are the first of them";
  spec.seed = 2;
  EXPECT_NE(TrainText(spec), shorter);
}

TEST(SyntheticLogTest, TheReaderTakesEveryRow) {
  const auto files = NewMemoryFileSystem();
  const SyntheticLogSpec spec = SmallSpec(TeacherFamily::kLinear);
  ASSERT_TRUE(WriteSyntheticLog(*files, "log", spec).ok());
  DataSpec data;
  data.format = DataFormat::kCriteo;
  for (const auto& [path, rows] :
       {std::pair("log/train.tsv", spec.rows), std::pair("log/eval.tsv", spec.eval_rows)}) {
    auto reader = NewBatchReader(*files, data, {path}, {.batch_size = 64});
    uint64_t seen = 0;
    std::set<Key> first, last;
    for (const Batch& batch : ReadEpoch(**reader)) {
      seen += batch.num_examples;
      first.insert(batch.sparse[0].keys.begin(), batch.sparse[0].keys.end());
      last.insert(batch.sparse[6].keys.begin(), batch.sparse[6].keys.end());
    }
    EXPECT_EQ(seen, rows);
    EXPECT_GT(first.size(), 10u);
    EXPECT_LE(first.size(), spec.vocabulary + 1);
    EXPECT_EQ(last.size(), 1u) << "a column that was not asked for is empty";
  }
}

TEST(SyntheticLogTest, ValuesOfAFieldHaveDifferentTexts) {
  SyntheticRow row;
  row.values = {0};
  std::set<std::string> texts;
  for (; row.values[0] < 20000; ++row.values[0]) {
    std::string text;
    AppendCriteoLine(row, 1u << 30, &text);
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 20000u);
}

class TeacherTest : public ::testing::TestWithParam<TeacherFamily> {};

TEST_P(TeacherTest, LabelsAreAsProbableAsSaid) {
  SyntheticLogSpec spec = SmallSpec(GetParam());
  spec.signal = 1.5;
  spec.ctr = 0.3;
  const SyntheticLog log(spec);
  constexpr uint64_t kRows = 20000;
  constexpr size_t kBins = 5;
  std::vector<double> labels(kBins), probabilities(kBins);
  double logit_sum = 0, logit_squares = 0, probability_sum = 0;
  SyntheticRow row;
  for (uint64_t i = 0; i < kRows; ++i) {
    log.RowAt(i, &row);
    const auto bin = std::min(kBins - 1, static_cast<size_t>(row.probability * kBins));
    labels[bin] += row.label ? 1 : 0;
    probabilities[bin] += row.probability;
    const double logit = std::log(row.probability / (1 - row.probability));
    logit_sum += logit;
    logit_squares += logit * logit;
    probability_sum += row.probability;
  }
  for (size_t bin = 0; bin < kBins; ++bin) {
    EXPECT_NEAR(labels[bin], probabilities[bin], 4 * std::sqrt(probabilities[bin]) + 4)
        << "bin " << bin;
  }
  const double mean = logit_sum / kRows;
  EXPECT_NEAR(std::sqrt(logit_squares / kRows - mean * mean), spec.signal, 0.1 * spec.signal);
  EXPECT_NEAR(probability_sum / kRows, spec.ctr, 0.02);
}

TEST_P(TeacherTest, TheBestReachableIsTheTeachersOwn) {
  SyntheticLogSpec spec = SmallSpec(GetParam());
  spec.rows = 0;
  spec.eval_rows = 10000;
  const auto files = NewMemoryFileSystem();
  const auto best = WriteSyntheticLog(*files, "log", spec);
  ASSERT_TRUE(best.ok());
  EXPECT_NEAR(best->auc, best->expected_auc, 0.015);
  EXPECT_GT(best->auc, 0.75) << "there is something to learn";
  EXPECT_LT(best->auc, 0.95) << "and something to miss";
  EXPECT_NEAR(best->ctr, spec.ctr, 0.03);
  spec.noise = 0.5;
  const auto noisy = WriteSyntheticLog(*files, "noisy", spec);
  EXPECT_LT(noisy->expected_auc, best->expected_auc - 0.05);
}

INSTANTIATE_TEST_SUITE_P(Families, TeacherTest,
                         ::testing::Values(TeacherFamily::kLinear, TeacherFamily::kPairwise,
                                           TeacherFamily::kCrosses, TeacherFamily::kDot,
                                           TeacherFamily::kWideDeep));

// The part a linear model cannot learn: something must be left without the linear part.
TEST(TeacherPartsTest, FamiliesAboveLinearInteract) {
  const std::vector<double> numbers = {0.5, -1};
  const auto difference = [&](TeacherFamily family) {
    const Teacher teacher(family, 7);
    const auto logit = [&](uint64_t a, uint64_t b) {
      const std::vector<uint64_t> values = {a, b, 3};
      return teacher.Linear({values, numbers}) + teacher.Interaction({values, numbers});
    };
    return std::abs(logit(1, 1) - logit(1, 2) - logit(2, 1) + logit(2, 2));
  };
  EXPECT_LT(difference(TeacherFamily::kLinear), 1e-12);
  for (TeacherFamily family : {TeacherFamily::kPairwise, TeacherFamily::kCrosses,
                               TeacherFamily::kDot, TeacherFamily::kWideDeep}) {
    EXPECT_GT(difference(family), 0.01);
  }
}

TEST(SyntheticLogTest, FilesThatAreThereStayAsTheyAre) {
  const auto files = NewMemoryFileSystem();
  SyntheticLogSpec spec = SmallSpec(TeacherFamily::kLinear);
  ASSERT_TRUE(WriteSyntheticLog(*files, "log", spec).ok());
  EXPECT_TRUE(WriteSyntheticLog(*files, "log", spec).ok()) << "the same bytes";
  const std::string text = *ReadWholeFile(*files, "log/train.tsv", kTextMax);
  for (const int change : {0, 1, 2}) {
    SyntheticLogSpec other = spec;
    other.seed += change == 0 ? 1 : 0;
    other.rows = change == 1 ? spec.rows + 1 : change == 2 ? spec.rows - 1 : spec.rows;
    const Status status = WriteSyntheticLog(*files, "log", other).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("log/train.tsv is there already"));
    EXPECT_EQ(*ReadWholeFile(*files, "log/train.tsv", kTextMax), text);
  }
}

TEST(SyntheticLogTest, AMistakenSpecIsNamed) {
  const auto files = NewMemoryFileSystem();
  const auto refused = [&](void (*change)(SyntheticLogSpec*), const char* field) {
    SyntheticLogSpec spec = SmallSpec(TeacherFamily::kLinear);
    change(&spec);
    const Status status = WriteSyntheticLog(*files, "log", spec).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << field;
    EXPECT_THAT(status.message(), HasSubstr(field));
  };
  refused([](SyntheticLogSpec* spec) { spec->numeric = 14; }, "--numeric=14");
  refused([](SyntheticLogSpec* spec) { spec->categorical = 27; }, "--categorical=27");
  refused([](SyntheticLogSpec* spec) { spec->vocabulary = 0; }, "--vocabulary=0");
  refused([](SyntheticLogSpec* spec) { spec->zipf = -1; }, "--zipf=-1");
  refused([](SyntheticLogSpec* spec) { spec->ctr = 1; }, "--ctr=1");
  refused([](SyntheticLogSpec* spec) { spec->missing = 1; }, "--missing=1");
  refused([](SyntheticLogSpec* spec) { spec->noise = -0.1; }, "--noise=-0.1");
}

TEST(SyntheticDigitsTest, PicturesTellTheirClass) {
  const auto files = NewMemoryFileSystem();
  SyntheticDigitsSpec spec;
  spec.rows = 100;
  spec.eval_rows = 300;
  const auto accuracy = WriteSyntheticDigits(*files, "digits", spec);
  ASSERT_TRUE(accuracy.ok());
  EXPECT_GT(*accuracy, 0.4) << "chance is 0.1";
  DataSpec data;
  data.columns.resize(1 + kDigitPixels);
  data.columns[0].name = "label";
  data.columns[0].type = ColumnType::kLabel;
  for (uint32_t i = 1; i <= kDigitPixels; ++i) {
    data.columns[i].name = "pixel" + std::to_string(i);
    data.columns[i].type = ColumnType::kNumeric;
  }
  auto reader =
      NewBatchReader(*files, data, {"digits/train.csv"}, {.batch_size = 100, .num_classes = 10});
  const auto batches = ReadEpoch(**reader);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].num_examples, 100u);
  EXPECT_EQ(std::set<float>(batches[0].labels.begin(), batches[0].labels.end()).size(), 10u);
}

TEST(SyntheticDigitsTest, IdxFilesHaveTheSamePictures) {
  const auto files = NewMemoryFileSystem();
  SyntheticDigitsSpec spec;
  spec.rows = 40;
  spec.eval_rows = 10;
  spec.idx = true;
  const auto accuracy = WriteSyntheticDigits(*files, "digits", spec);
  ASSERT_TRUE(accuracy.ok());
  DataSpec data;
  data.format = DataFormat::kIdx;
  auto reader = NewBatchReader(*files, data, {"digits/" + DigitsFile(spec, "train")},
                               {.batch_size = 40, .shuffle = false, .num_classes = 10});
  const auto batches = ReadEpoch(**reader);
  ASSERT_EQ(batches.size(), 1u);
  const SyntheticDigits digits(spec);
  DigitPicture picture;
  for (size_t i = 0; i < 40; ++i) {
    digits.PictureAt(i, &picture);
    EXPECT_EQ(batches[0].labels[i], static_cast<float>(picture.label));
    EXPECT_EQ(batches[0].numeric[i * kDigitPixels + 400],
              static_cast<float>(picture.pixels[400] / 255.0));
  }
}

}  // namespace
}  // namespace hdps
