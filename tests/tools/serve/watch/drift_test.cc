// Tests the rule for drift: its errors against direct sums, and how often it errs.
#include "tools/serve/watch/drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/platform/random.h"
#include "tests/tools/serve/watch/scripted_model.h"

namespace hdps {
namespace {

TEST(RatioSums, HaveTheErrorOfRequestsAndNotOfRows) {
  // Two requests that say 0 and two that say 1, of 8 rows each. As 32 rows, the mean 0.5 would have
  // the error sqrt(0.25 / 32); of 4 requests it is sqrt(0.25 / 4).
  RatioSums sums;
  for (const double says : {0.0, 1.0, 0.0, 1.0}) sums.Add(8 * says, 8);
  EXPECT_EQ(sums.Mean(), 0.5);
  EXPECT_DOUBLE_EQ(sums.ErrorSquare(), 0.25 / 4);
  // Requests that agree have no error, however many rows each has.
  RatioSums alike;
  for (const double rows : {1.0, 5.0, 512.0}) alike.Add(0.25 * rows, rows);
  EXPECT_EQ(alike.ErrorSquare(), 0);
  EXPECT_EQ(RatioSums().Mean(), 0);
  EXPECT_EQ(RatioSums().ErrorSquare(), 0);
}

TEST(AnswerSums, AWindowHasTheDigitsOfItsOwnAnswers) {
  AnswerSums sums(1, 1), alone(1, 1);
  sums.Add({}, AnswerOf({1e30f, 0.5f}, {2}, {1}));
  EXPECT_EQ(sums.Take().rows, 2);
  for (AnswerSums* const each : {&sums, &alone}) {
    each->Add({}, AnswerOf({0.25f, 0.5f}, {2}, {0}));
    each->Add({}, AnswerOf({0.75f}, {1}, {1}));
  }
  const AnswerTotals window = sums.Take(), expected = alone.Read();
  EXPECT_EQ(window.requests, 2);
  EXPECT_EQ(window.prediction.Mean(), 0.5);
  EXPECT_EQ(window.prediction.ErrorSquare(), expected.prediction.ErrorSquare());
  EXPECT_EQ(window.Deviation(), expected.Deviation());
  EXPECT_EQ(window.unknown[0].Mean(), 1.0 / 3);
  EXPECT_EQ(sums.Read().rows, 0);
  EXPECT_EQ(sums.Read().unknown[0].items, 0);
}

TEST(AnswerSums, PredictionsThatAreNotFiniteAreLeftOut) {
  const float inf = std::numeric_limits<float>::infinity();
  AnswerSums sums(1, 1);
  sums.Add({}, AnswerOf({0.25f, inf, 0.75f}, {3}, {0}));
  sums.Add({}, AnswerOf({-inf}, {1}, {1}));
  const AnswerTotals totals = sums.Read();
  EXPECT_EQ(totals.requests, 1);
  EXPECT_EQ(totals.rows, 2);
  EXPECT_EQ(totals.prediction.Mean(), 0.5);
  EXPECT_EQ(totals.unknown[0].items, 4);
}

TEST(PredictionsOf, FindsThemAmongOtherOutputs) {
  using enum ScoreOutput;
  ScoreAnswer answer;
  for (const char* name : {"top_k", "top_k_score", "logit", "a.probability", "b.probability"}) {
    answer.outputs.push_back({name, 1, {}, {}});
  }
  ScoreRequest request;
  request.outputs = {kTopK, kLogit, kPrediction};
  const auto found = PredictionsOf(request, answer, 2);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]->name, "a.probability");
  EXPECT_EQ(found[1]->name, "b.probability");
  request.outputs = {kTopK, kLogit};
  EXPECT_TRUE(PredictionsOf(request, answer, 2).empty());
  request.outputs = {};
  EXPECT_EQ(PredictionsOf(request, AnswerOf({0.5f}), 1).size(), 1u);
}

// Answers to requests of `rows` rows of one user, whose predictions lie around that user's level:
// 0.3 on average, plus `shift`.
AnswerTotals Answers(uint64_t seed, int requests, int rows, double shift, double unknown_share) {
  AnswerSums sums(1, 1);
  Random random(seed);
  const auto uniform = [&] { return static_cast<double>(random.Next() >> 11) * 0x1p-53; };
  for (int r = 0; r < requests; ++r) {
    const double level = 0.1 + 0.4 * uniform() + shift;
    std::vector<float> predictions;
    for (int i = 0; i < rows; ++i) {
      predictions.push_back(static_cast<float>(level + 0.1 * (uniform() - 0.5)));
    }
    const auto keys = static_cast<uint64_t>(rows);
    // The key of the user is in all rows: known or unknown.
    const uint64_t unknown = uniform() < unknown_share ? keys : 0;
    sums.Add({}, AnswerOf(predictions, {keys}, {unknown}));
  }
  return sums.Read();
}

TEST(Drift, IsNotSeenInAnswersLikeTheEvaluationData) {
  // 512 rows of a user: by rows the error would be 23 times too small, and most windows beyond 5.
  const AnswerTotals evaluation = Answers(1, 256, 32, 0, 0.2);
  int far = 0;
  double by_requests_max = 0;
  for (uint64_t seed = 2; seed < 202; ++seed) {
    const AnswerTotals window = Answers(seed, 128, 512, 0, 0.2);
    const Difference prediction = PredictionDifference(window, evaluation);
    const Difference unknown = UnknownDifference(window.unknown[0], evaluation.unknown[0]);
    by_requests_max = std::max({by_requests_max, prediction.errors, unknown.errors});
    far += prediction.far(kDriftDeviations) + unknown.far(kDriftShare);
  }
  EXPECT_EQ(far, 0);
  EXPECT_LT(by_requests_max, kDriftErrors);
}

TEST(Drift, IsSeenWhenItMatters) {
  const AnswerTotals evaluation = Answers(1, 256, 32, 0, 0.2);
  const double deviation = evaluation.Deviation();
  EXPECT_NEAR(deviation, 0.12, 0.01);  // Uniform of width 0.4, and of width 0.1.
  for (uint64_t seed = 2; seed < 52; ++seed) {
    const AnswerTotals shifted = Answers(seed, 256, 16, 0.6 * deviation, 0.5);
    EXPECT_TRUE(PredictionDifference(shifted, evaluation).far(kDriftDeviations)) << seed;
    EXPECT_TRUE(UnknownDifference(shifted.unknown[0], evaluation.unknown[0]).far(kDriftShare))
        << seed;
    // Far beyond chance with so many rows, and of no importance.
    const AnswerTotals little = Answers(seed, 40'000, 4, 0.1 * deviation, 0.2);
    const Difference difference = PredictionDifference(little, evaluation);
    EXPECT_FALSE(difference.far(kDriftDeviations)) << seed;
  }
  // Without keys on one side nothing is compared; without any error every difference is beyond
  // chance.
  EXPECT_FALSE(UnknownDifference({}, evaluation.unknown[0]).far(kDriftShare));
  RatioSums none, all;
  for (int i = 0; i < 200; ++i) none.Add(0, 30);
  for (int i = 0; i < 200; ++i) all.Add(30, 30);
  EXPECT_TRUE(UnknownDifference(all, none).far(kDriftShare));
  EXPECT_FALSE(UnknownDifference(none, none).far(kDriftShare));
}

}  // namespace
}  // namespace hdps
