// Tests what happens to gradients between a program and the rows: clipping, scaling, rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/worker/outside/table_job.h"

namespace hdps {
namespace {

constexpr uint64_t kExamples = 4;  // Of each worker and step.

class GradientsTest : public TableJobTest {};

TEST_F(GradientsTest, AreClippedByTheOwnNormOfEachWorkerInAsync) {
  // Norms of the mean gradients are 5 and 1.25; the limit of 2.5 halves the first one.
  const float first[] = {3, 4, 0, 0}, second[] = {0.75, 1, 0, 0};
  // As in PyTorch 1e-6 is added to the norm: 2e-7 of it, and a rounding of the quotient and of each
  // product, by 2^-24 of numbers up to 4.
  constexpr float kShrunk = 1 * 2e-7f + 3 * 0x1p-22f;
  const Overrides overrides = {"train.mode=async", "train.clip_norm=2.5"};
  Summary({2, 2}, overrides, [&](TableWorker& worker) {
    const std::vector<Key> keys = {worker.rank() + 1};
    ASSERT_TRUE(worker.Store(kWords, keys, std::vector<float>(kWordsDim, 0)).ok());
    ASSERT_TRUE(
        worker.Push(PullOne(worker, kWords, keys), worker.rank() == 0 ? first : second).ok());
    ASSERT_TRUE(worker.Advance(kExamples).ok());
  });
  Summary(
      {1, 1}, overrides,
      [](TableWorker& worker) {
        EXPECT_THAT(PullOne(worker, kWords, {1}, PullFor::kLook).rows,
                    testing::Pointwise(testing::FloatNear(kShrunk), {-0.75f, -1.f, 0.f, 0.f}));
        EXPECT_THAT(PullOne(worker, kWords, {2}, PullFor::kLook).rows,
                    testing::ElementsAre(-0.375, -0.5, 0, 0));
      },
      {}, Resume::kAuto);
}

TEST_F(GradientsTest, OfNoExamplesAreDroppedIfTheyAreZeros) {
  // With momentum a row moves also by a gradient of zero.
  const Overrides overrides = {"train.max_steps=3", "model.tables.0.optimizer.kind=momentum"};
  std::vector<std::string> digests;
  for (const bool zeros : {false, true}) {
    const nlohmann::json summary = Summary({1, 2}, overrides, [&](TableWorker& worker) {
      const std::vector<Key> keys = {1, 2};
      const std::vector<float> ones(2 * kWordsDim, 1), none(2 * kWordsDim, 0);
      ASSERT_TRUE(worker.Push(PullOne(worker, kWords, keys), ones).ok());
      ASSERT_TRUE(worker.Advance(kExamples).ok());
      const PulledRows pulled = PullOne(worker, kWords, keys);
      if (zeros) {
        ASSERT_TRUE(worker.Push(pulled, none).ok());
        ASSERT_TRUE(worker.Push(kWords, std::span(keys).first(1), std::span(none).first(4)).ok());
      }
      ASSERT_TRUE(worker.Advance(0).ok());
      MakeEmptySteps(worker);
    });
    digests.push_back(summary["digest"]);
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(GradientsTest, ThatAreSmallTravelInSixteenBitsByALossScale) {
  // Half of the smallest number of fp16 is 2^-25: a smaller one travels as 0 unless it is scaled.
  const float small = 0x1p-28f;
  for (const char* scale : {"1", "65536", "dynamic"}) {
    SCOPED_TRACE(scale);
    Summary({1, 2},
            {"parallel.wire=fp16", std::string("train.loss_scale=") + scale, "train.max_steps=2"},
            [&](TableWorker& worker) {
              const std::vector<Key> keys = {1};
              ASSERT_TRUE(worker.Store(kWords, keys, std::vector<float>(kWordsDim, 0)).ok());
              const std::vector<float> gradients(kWordsDim, small);
              ASSERT_TRUE(worker.Push(PullOne(worker, kWords, keys), gradients).ok());
              ASSERT_TRUE(worker.Advance(kExamples).ok());
              const float expected = scale == std::string("1") ? 0 : -0.5f * small;
              EXPECT_THAT(PullOne(worker, kWords, keys, PullFor::kLook).rows,
                          testing::Each(expected));
              MakeEmptySteps(worker);
            });
  }
}

TEST_F(GradientsTest, AndRowsTravelInSixteenBitsIfTheJobSaysSo) {
  // Rows are rounded once where they leave the server: to a relative 2^-8 in bf16.
  Summary({1, 1}, {"parallel.wire=bf16", "train.max_steps=3"}, [](TableWorker& worker) {
    const std::vector<Key> keys = {1, 2, 3};
    ASSERT_TRUE(worker.Store(kWords, keys, std::vector<float>(12, 1.0009765625f)).ok());
    EXPECT_THAT(PullOne(worker, kWords, keys).rows, testing::Each(1.0f));
    EXPECT_THAT(PullOne(worker, kWords, keys, PullFor::kLook).rows, testing::Each(1.0009765625f));
    MakeEmptySteps(worker);
  });
}

}  // namespace
}  // namespace hdps
