// The scores of an evaluation as they come in, and its figures at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/metrics/metric.h"
#include "common/metrics/scored_examples.h"

namespace hdps {

// Invariant: what Finish gives depends on the examples alone, not on their order or on how they
// came in pieces; memory does not grow with them (see ScoredExamples).
class ScoreBook {
 public:
  // `folder` is for what does not fit in memory: made and removed as it is needed.
  ScoreBook(FileSystem& files, const std::string& folder, std::vector<TaskMetrics> tasks,
            size_t held_max = ScoredExamples::kHeldMax);
  ~ScoreBook();
  ScoreBook(const ScoreBook&) = delete;
  ScoreBook& operator=(const ScoreBook&) = delete;

  // scores and labels [n, tasks]; weights [n] or empty: all are 1; groups [n] or empty. They may
  // come over the wire: kInvalidArgument where their sizes do not fit.
  Status Add(std::span<const float> scores, std::span<const float> labels,
             std::span<const float> weights, std::span<const Key> groups);

  struct Told {
    std::vector<Figure> figures;       // Of each task in order, by its words.
    std::vector<CalibrationBin> bins;  // Of the first task that was asked for ece.
  };
  // `mean_loss`: of all examples by weight; it is the logloss of ScoreKind::kClass, whose scores do
  // not tell it.
  Result<Told> Finish(double mean_loss);

 private:
  struct Task {
    TaskMetrics metrics;
    // By score, by group; null where no metric asks for it.
    std::unique_ptr<ScoredExamples> by_score, by_group;
    // All; those of weight 0, which count for nothing and are in none of the others.
    uint64_t examples = 0, weightless = 0;
    uint64_t positives = 0, no_numbers = 0;
  };
  // Why there is no figure that needs both classes, or any; empty: there is.
  static std::string WhyNone(const Task& task);
  Status FinishTask(const Task& task, double mean_loss, Told* told);

  FileSystem& files_;
  const std::string folder_;
  std::vector<Task> tasks_;
};

}  // namespace hdps
