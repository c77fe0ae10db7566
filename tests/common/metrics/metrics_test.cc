// Tests every metric against its definition, example by example, on small random inputs with ties.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "common/metrics/score_book.h"
#include "common/platform/random.h"
#include "tests/error_bound.h"

namespace hdps {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// All sums below have fewer than 2^12 terms of a few operations in double, and fewer than 2^20
// pairs; this bounds the relative error.
constexpr double kRelative = 0x1.0p20 * std::numeric_limits<double>::epsilon();

using Examples = std::vector<ScoredExample>;

Examples RandomExamples(uint64_t seed, size_t count, bool weighted, uint64_t groups) {
  Random random(seed);
  Examples examples(count);
  for (ScoredExample& example : examples) {
    example.score = static_cast<float>(random.Below(16)) / 2 - 4;  // Logits; many are equal.
    example.label = random.Below(3) == 0 ? 1.0f : 0.0f;
    if (weighted) example.weight = static_cast<float>(random.Below(5)) / 2;  // Some weights are 0.
    example.group = random.Below(groups);
  }
  return examples;
}

Result<ScoreBook::Told> Tell(const Examples& examples, const TaskMetrics& metrics,
                             FileSystem& files, size_t held_max = ScoredExamples::kHeldMax) {
  ScoreBook book(files, "scores", {metrics}, held_max);
  for (const ScoredExample& e : examples) {
    const float score = e.score, label = e.label, weight = e.weight;
    const Key group = e.group;
    HDPS_RETURN_IF_ERROR(book.Add({&score, 1}, {&label, 1}, {&weight, 1}, {&group, 1}));
  }
  return book.Finish(0);
}

double Tell(const Examples& examples, const std::string& word,
            ScoreKind kind = ScoreKind::kProbability) {
  const auto files = NewMemoryFileSystem();
  const auto told = Tell(examples, {"", kind, {word}}, *files);
  EXPECT_TRUE(told.ok()) << told.status().message();
  return told.ok() ? told->figures.at(0).value : 0;
}

// ---- The definitions.

double W(const ScoredExample& e) { return double{e.weight}; }

double P(const ScoredExample& e) { return 1 / (1 + std::exp(-double{e.score})); }

double PlainAuc(const Examples& examples) {
  double won = 0, pairs = 0;
  for (const auto& p : examples) {
    for (const auto& n : examples) {
      if (p.label != 1 || n.label != 0) continue;
      pairs += W(p) * W(n);
      won += W(p) * W(n) * (p.score > n.score ? 1 : p.score == n.score ? 0.5 : 0);
    }
  }
  return pairs > 0 ? won / pairs : kNan;
}

double PlainAveragePrecision(const Examples& examples) {
  double positives = 0, sum = 0;
  for (const auto& e : examples) positives += e.label == 1 ? W(e) : 0;
  for (const auto& at : examples) {  // Each positive counts with the precision at its score.
    double right = 0, all = 0;
    for (const auto& e : examples) {
      if (e.score < at.score) continue;
      all += W(e);
      right += e.label == 1 ? W(e) : 0;
    }
    if (at.label == 1 && W(at) > 0) sum += W(at) * right / all;
  }
  return positives > 0 ? sum / positives : kNan;
}

double Mean(const Examples& examples, const std::function<double(const ScoredExample&)>& of) {
  double sum = 0, weight = 0;
  for (const auto& e : examples) sum += W(e) * of(e), weight += W(e);
  return weight > 0 ? sum / weight : kNan;
}

double PlainLogloss(const Examples& examples) {
  return Mean(examples,
              [](const ScoredExample& e) { return -std::log(e.label == 1 ? P(e) : 1 - P(e)); });
}

double PlainCalibration(const Examples& examples) {
  const double observed = Mean(examples, [](const auto& e) { return double{e.label}; });
  return observed > 0 ? Mean(examples, P) / observed : kNan;
}

double PlainCalibrationError(const Examples& examples) {
  double sum = 0, all = 0;
  for (int bin = 0; bin < 10; ++bin) {
    Examples here;
    for (const auto& e : examples) {
      if (std::min(static_cast<int>(P(e) * 10), 9) == bin) here.push_back(e);
    }
    double weight = 0;
    for (const auto& e : here) weight += W(e);
    all += weight;
    if (weight == 0) continue;
    sum += weight *
           std::fabs(Mean(here, [](const auto& e) { return double{e.label}; }) - Mean(here, P));
  }
  return all > 0 ? sum / all : kNan;
}

double PlainNormalizedEntropy(const Examples& examples) {
  const double share = Mean(examples, [](const auto& e) { return double{e.label}; });
  if (!(share > 0 && share < 1)) return kNan;
  return PlainLogloss(examples) / -(share * std::log(share) + (1 - share) * std::log(1 - share));
}

std::map<Key, Examples> ByGroup(const Examples& examples) {
  std::map<Key, Examples> groups;
  for (const auto& e : examples) groups[e.group].push_back(e);
  return groups;
}

double PlainGroupAuc(const Examples& examples) {
  double sum = 0, all = 0;
  for (const auto& [group, of_group] : ByGroup(examples)) {
    const double auc = PlainAuc(of_group);
    if (std::isnan(auc)) continue;
    double weight = 0;
    for (const auto& e : of_group) weight += W(e);
    sum += weight * auc;
    all += weight;
  }
  return all > 0 ? sum / all : kNan;
}

// Returns how many examples are in front of a positive one; among equal scores, negatives are.
size_t PlaceOf(const Examples& group, const ScoredExample& positive, size_t number) {
  size_t place = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const ScoredExample& e = group[i];
    if (e.score > positive.score) ++place;
    if (e.score != positive.score) continue;
    if (e.label == 0 || i < number) ++place;
  }
  return place;
}

double PlainTop(Examples examples, size_t k, bool ndcg) {
  std::erase_if(examples, [](const auto& e) { return e.weight == 0; });
  double sum = 0, all = 0;
  for (const auto& [group, of_group] : ByGroup(examples)) {
    double gained = 0, best = 0, weight = 0;
    size_t positives = 0;
    for (size_t i = 0; i < of_group.size(); ++i) {
      if (of_group[i].label != 1) continue;
      const size_t place = PlaceOf(of_group, of_group[i], i);
      if (place < k) gained += 1 / std::log2(static_cast<double>(place) + 2);
      if (positives < k) best += 1 / std::log2(static_cast<double>(positives) + 2);
      ++positives;
      weight += W(of_group[i]);
    }
    if (positives == 0) continue;
    weight /= static_cast<double>(positives);
    sum += weight * (ndcg ? gained / best : gained > 0 ? 1 : 0);
    all += weight;
  }
  return all > 0 ? sum / all : kNan;
}

void ExpectClose(double found, double wanted, const std::string& what) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(found)) << what << ": " << found;
  } else {
    EXPECT_NEAR(found, wanted, kRelative * std::max(1.0, std::fabs(wanted))) << what;
  }
}

TEST(MetricsTest, AllAreTheirDefinitions) {
  const std::map<std::string, std::function<double(const Examples&)>> plain = {
      {"auc", PlainAuc},
      {"logloss", PlainLogloss},
      {"pr_auc", PlainAveragePrecision},
      {"accuracy",
       [](const Examples& all) {
         return Mean(all, [](const auto& e) { return (P(e) >= 0.5) == (e.label == 1); });
       }},
      {"calibration", PlainCalibration},
      {"ece", PlainCalibrationError},
      {"normalized_entropy", PlainNormalizedEntropy},
      {"group_auc", PlainGroupAuc},
      {"hr@1", [](const Examples& all) { return PlainTop(all, 1, false); }},
      {"hr@3", [](const Examples& all) { return PlainTop(all, 3, false); }},
      {"ndcg@2", [](const Examples& all) { return PlainTop(all, 2, true); }},
      {"ndcg@10", [](const Examples& all) { return PlainTop(all, 10, true); }}};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const size_t count = seed % 20 * 3;  // None, few, many.
    Examples examples = RandomExamples(seed, count, seed % 2 == 0, 1 + seed % 7);
    if (seed % 10 == 3) {
      for (auto& e : examples) e.label = 1;  // All examples have one class.
    }
    for (const auto& [word, definition] : plain) {
      ExpectClose(Tell(examples, word), definition(examples),
                  word + ", seed " + std::to_string(seed));
    }
  }
}

// Without weights, AUC is a quotient of two whole numbers.
TEST(MetricsTest, AucIsExactOverTenThousandScores) {
  Random random(7);
  for (const uint64_t distinct : {3, 900, 1000000}) {
    Examples examples(10000);
    for (ScoredExample& example : examples) {
      example.score = static_cast<float>(random.Below(distinct)) / static_cast<float>(distinct);
      example.label = random.Below(3) == 0 ? 1.0f : 0.0f;
    }
    EXPECT_EQ(Tell(examples, "auc"), PlainAuc(examples)) << distinct << " different scores";
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const auto scored = [](float score, float label) {
    return ScoredExample{.score = score, .label = label};
  };
  EXPECT_EQ(Tell({scored(1, 0), scored(2, 0), scored(3, 1), scored(4, 1)}, "auc"), 1);
  EXPECT_EQ(Tell({scored(4, 0), scored(3, 0), scored(2, 1), scored(1, 1)}, "auc"), 0);
  EXPECT_EQ(Tell({scored(-infinity, 0), scored(0, 0), scored(0, 1), scored(infinity, 1)}, "auc"),
            0.875);
}

TEST(MetricsTest, NumbersAreTheirDefinitions) {
  Random random(3);
  Examples examples(50);
  for (auto& e : examples) {
    e.score = static_cast<float>(random.Normal() * 10);
    e.label = static_cast<float>(random.Normal() * 10);
    e.weight = static_cast<float>(random.Below(4));
  }
  const auto off = [](const ScoredExample& e) { return double{e.score} - double{e.label}; };
  const double mse = Mean(examples, [&](const auto& e) { return off(e) * off(e); });
  ExpectClose(Tell(examples, "rmse", ScoreKind::kNumber), std::sqrt(mse), "rmse");
  ExpectClose(Tell(examples, "mae", ScoreKind::kNumber),
              Mean(examples, [&](const auto& e) { return std::fabs(off(e)); }), "mae");
}

// The order of examples and sorted runs in files change no bit, and no file remains.
TEST(MetricsTest, OrderAndRunsChangeNoBit) {
  const TaskMetrics all{
      "",
      ScoreKind::kProbability,
      {"auc", "logloss", "pr_auc", "ece", "normalized_entropy", "group_auc", "hr@2", "ndcg@3"}};
  Examples examples = RandomExamples(9, 1000, true, 40);
  for (auto& e : examples) e.score += static_cast<float>(e.group) * 0x1.0p-20f;
  const auto files = NewMemoryFileSystem();
  const auto wanted = Tell(examples, all, *files);
  ASSERT_TRUE(wanted.ok());
  Random random(1);
  for (size_t held_max : {size_t{1}, size_t{3}, size_t{64}, size_t{999}, size_t{2000}}) {
    for (size_t i = examples.size(); i > 1; --i) {
      std::swap(examples[i - 1], examples[random.Below(i)]);
    }
    const auto told = Tell(examples, all, *files, held_max);
    ASSERT_TRUE(told.ok()) << told.status().message();
    EXPECT_EQ(told->figures, wanted->figures) << held_max;
    EXPECT_EQ(told->bins, wanted->bins);
    EXPECT_FALSE(files->Exists("scores/task_0_scores/run_0"));
    EXPECT_FALSE(files->Exists("scores"));
  }
}

TEST(MetricsTest, WhatIsUndefinedSaysWhy) {
  const auto files = NewMemoryFileSystem();
  Examples examples = RandomExamples(1, 30, false, 3);
  for (auto& e : examples) e.label = 0;
  const TaskMetrics metrics{"click", ScoreKind::kProbability, {"auc", "logloss", "group_auc"}};
  auto told = Tell(examples, metrics, *files);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->figures[0].word, "click.auc");
  EXPECT_EQ(told->figures[0].about, "all 30 labels are 0");
  EXPECT_TRUE(std::isfinite(told->figures[1].value));
  EXPECT_EQ(told->figures[2].about, "3 of 3 groups have labels of one class and are left out");
  examples[4].score = std::numeric_limits<float>::quiet_NaN();
  told = Tell(examples, metrics, *files);
  ASSERT_TRUE(told.ok());
  for (const Figure& figure : told->figures) EXPECT_TRUE(std::isnan(figure.value));
  EXPECT_EQ(told->figures[1].about, "1 of 30 scores are not numbers");
  EXPECT_EQ(FindFigure(told->figures, "auc"), &told->figures[0]);
  EXPECT_EQ(FindFigure(told->figures, "click.logloss"), &told->figures[1]);
  EXPECT_EQ(FindFigure(told->figures, "ece"), nullptr);
}

// An example of weight 0 does not count: it has no place in a ranking.
TEST(MetricsTest, ExamplesOfWeightZeroTakeNoPlace) {
  const TaskMetrics metrics{
      "",
      ScoreKind::kProbability,
      {"auc", "logloss", "pr_auc", "ece", "group_auc", "hr@1", "hr@3", "ndcg@3"}};
  const auto files = NewMemoryFileSystem();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Examples examples = RandomExamples(seed, 60, true, 8);
    Examples without = examples;
    std::erase_if(without, [](const auto& e) { return e.weight == 0; });
    ASSERT_LT(without.size(), examples.size());
    // Its score need not be a number.
    for (auto& e : examples) {
      if (e.weight == 0 && seed % 2 == 0) e.score = std::numeric_limits<float>::quiet_NaN();
    }
    const auto told = Tell(examples, metrics, *files), wanted = Tell(without, metrics, *files);
    ASSERT_TRUE(told.ok() && wanted.ok());
    EXPECT_EQ(told->figures, wanted->figures) << seed;
  }
}

TEST(MetricsTest, NoWeightIsAReason) {
  const auto files = NewMemoryFileSystem();
  const TaskMetrics metrics{"", ScoreKind::kProbability, {"auc", "logloss"}};
  Examples examples = RandomExamples(1, 30, false, 3);
  size_t negatives = 0;
  for (auto& e : examples) e.weight = e.label == 1 ? 0 : 1, negatives += e.label == 1 ? 0 : 1;
  auto told = Tell(examples, metrics, *files);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->figures[0].about,
            "all " + std::to_string(negatives) + " labels with a weight are 0");
  EXPECT_TRUE(std::isfinite(told->figures[1].value));
  for (auto& e : examples) e.weight = 0;
  told = Tell(examples, metrics, *files);
  ASSERT_TRUE(told.ok());
  for (const Figure& figure : told->figures) {
    EXPECT_TRUE(std::isnan(figure.value));
    EXPECT_EQ(figure.about, "all 30 weights are 0") << figure.word;
  }
}

uint64_t PeakBytes() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  char line[256];
  uint64_t kibibytes = 0;
  while (status != nullptr && std::fgets(line, sizeof(line), status) != nullptr) {
    if (std::sscanf(line, "VmHWM: %lu kB", &kibibytes) == 1) break;
  }
  if (status != nullptr) std::fclose(status);
  return kibibytes * 1024;
}

// With ten million scores by score and by group, the peak of the process grows by the buffers of
// two orders (24 MiB each) and what sorts and merges them, not by the 480 MB of the examples.
TEST(MetricsTest, TenMillionScoresTakeBoundedMemory) {
  const auto files = NewPosixFileSystem();
  const std::string folder =
      std::filesystem::temp_directory_path() / ("hdps_scores_" + std::to_string(NewPeerId().value));
  constexpr size_t kExamples = 10'000'000, kPiece = 4096;
  const uint64_t before = PeakBytes();
  ScoreBook book(*files, folder,
                 {{"", ScoreKind::kProbability, {"auc", "logloss", "ece", "group_auc", "hr@10"}}});
  Random random(5);
  std::vector<float> scores(kPiece), labels(kPiece);
  std::vector<Key> groups(kPiece);
  for (size_t done = 0; done < kExamples; done += kPiece) {
    for (size_t i = 0; i < kPiece; ++i) {
      const double probability = random.Unit();
      scores[i] = static_cast<float>(std::log(probability / (1 - probability)));
      labels[i] = random.Unit() < probability ? 1.0f : 0.0f;
      groups[i] = random.Below(100'000);
    }
    ASSERT_TRUE(book.Add(scores, labels, {}, groups).ok());
  }
  const auto told = book.Finish(0);
  ASSERT_TRUE(told.ok()) << told.status().message();
  const uint64_t grown = PeakBytes() - before;
  std::printf("10 million scores: %.1f MiB more at the peak; AUC %.6f, group AUC %.6f, ece %.6f\n",
              static_cast<double>(grown) / (1 << 20), told->figures[0].value,
              told->figures[3].value, told->figures[2].value);
  EXPECT_TRUE(files->Exists(folder));
  // Labels are drawn by uniform scores: P(s) of label 1 gives an AUC of 5/6.
  EXPECT_NEAR(told->figures[0].value, 5.0 / 6, 0.001);
  EXPECT_LT(told->figures[2].value, 0.005);
  EXPECT_LT(grown, uint64_t{128} << 20);
}

}  // namespace
}  // namespace hdps
