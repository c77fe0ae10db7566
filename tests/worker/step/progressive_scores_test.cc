// Tests which examples a worker keeps, and what of them is its part of the window.
#include "worker/step/progressive_scores.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"

namespace hdps {
namespace {

Job WithWindow(uint32_t window) {
  Job job;
  job.train.progressive.window = window;
  return job;
}

// Returns a batch of examples number `begin` to `end`, whose labels, weights and groups are these
// numbers.
Batch Numbered(uint32_t begin, uint32_t end, uint32_t tasks = 1) {
  Batch batch;
  batch.num_examples = end - begin;
  batch.num_labels = tasks;
  for (uint32_t n = begin; n < end; ++n) {
    batch.labels.insert(batch.labels.end(), tasks, static_cast<float>(n));
    batch.weights.push_back(static_cast<float>(n));
    batch.groups.push_back(n);
  }
  return batch;
}

// Returns the numbers of the examples that a worker answers.
std::vector<float> Told(const ProgressiveScores& scores, uint32_t rank, uint32_t workers,
                        uint32_t tasks = 1) {
  CommandDone done;
  scores.FillIn(rank, workers, &done);
  const auto floats = [](const Buffer& buffer) {
    return std::vector<float>(buffer.As<float>().begin(), buffer.As<float>().end());
  };
  const std::vector<float> numbers = floats(done.weights);
  EXPECT_EQ(floats(done.scores), floats(done.labels));
  EXPECT_EQ(done.labels.As<float>().size(), numbers.size() * tasks);
  EXPECT_EQ(done.groups.As<Key>().size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(static_cast<float>(done.groups.As<Key>()[i]), numbers[i]);
    EXPECT_EQ(done.labels.As<float>()[i * tasks], numbers[i]);
  }
  return numbers;
}

std::vector<float> From(int begin, int end) {
  std::vector<float> numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), static_cast<float>(begin));
  return numbers;
}

TEST(ProgressiveScores, TheNewestAreKeptWhateverTheBatches) {
  const Job job = WithWindow(10);
  ProgressiveScores scores(job);
  EXPECT_TRUE(scores.used());
  EXPECT_EQ(Told(scores, 0, 1), From(0, 0));
  uint32_t end = 0;
  for (const uint32_t examples : {3u, 4u, 0u, 5u, 9u, 1u, 40u, 2u}) {
    const Batch batch = Numbered(end, end + examples);
    scores.Add(batch, batch.labels);
    end += examples;
    const int first = end > 10 ? static_cast<int>(end) - 10 : 0;
    EXPECT_EQ(Told(scores, 0, 1), From(first, static_cast<int>(end)));
  }
  scores.Forget();
  EXPECT_EQ(Told(scores, 0, 1), From(0, 0));
}

TEST(ProgressiveScores, ThePartsOfAllWorkersAreTheWindow) {
  const Job job = WithWindow(10);
  ProgressiveScores scores(job);
  const Batch batch = Numbered(0, 15);
  scores.Add(batch, batch.labels);
  EXPECT_EQ(Told(scores, 0, 4), From(12, 15));
  EXPECT_EQ(Told(scores, 1, 4), From(12, 15));
  EXPECT_EQ(Told(scores, 2, 4), From(13, 15));
  EXPECT_EQ(Told(scores, 3, 4), From(13, 15)) << "3 + 3 + 2 + 2";
}

TEST(ProgressiveScores, AnExampleHasAScoreForEachTask) {
  Job job = WithWindow(3);
  job.model.tasks = {{.label = "click"}, {.label = "buy"}};
  ProgressiveScores scores(job);
  const Batch batch = Numbered(0, 8, 2);
  scores.Add(batch, batch.labels);
  EXPECT_EQ(Told(scores, 0, 1, 2), From(5, 8));
}

TEST(ProgressiveScores, NoWindowNoScores) {
  const Job job = WithWindow(0);
  EXPECT_FALSE(ProgressiveScores(job).used());
}

}  // namespace
}  // namespace hdps
