// Collects the scores of an evaluation as they arrive, and computes its figures at the end.
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

// Invariant: the result of Finish() depends only on the examples, not on their order or on how they
// were split. Memory does not grow with their number (see ScoredExamples).
class ScoreBook {
 public:
  // `folder` holds what does not fit into memory; it is created and removed as needed.
  ScoreBook(FileSystem& files, const std::string& folder, std::vector<TaskMetrics> tasks,
            size_t held_max = ScoredExamples::kHeldMax);
  ~ScoreBook();
  ScoreBook(const ScoreBook&) = delete;
  ScoreBook& operator=(const ScoreBook&) = delete;

  // Adds n examples. scores and labels [n, tasks]; weights [n], or empty if all are 1; groups [n],
  // or empty. They may come over the wire. Errors: kInvalidArgument if sizes do not match.
  Status Add(std::span<const float> scores, std::span<const float> labels,
             std::span<const float> weights, std::span<const Key> groups);

  struct Told {
    std::vector<Figure> figures;       // For each task in order, by its words.
    std::vector<CalibrationBin> bins;  // Bins of the first task with the metric ece.
  };
  // `mean_loss` is the weighted mean over all examples. It is the logloss of ScoreKind::kClass,
  // whose scores do not determine it.
  Result<Told> Finish(double mean_loss);

 private:
  struct Task {
    TaskMetrics metrics;
    // Examples by score and by group; null if no metric needs them.
    std::unique_ptr<ScoredExamples> by_score, by_group;
    // All examples, and those of weight 0, which are ignored and not part of the other counts.
    uint64_t examples = 0, weightless = 0;
    uint64_t positives = 0, no_numbers = 0;
  };
  // Returns why there is no figure that needs both classes, or no figure at all; empty if there is
  // one.
  static std::string WhyNone(const Task& task);
  Status FinishTask(const Task& task, double mean_loss, Told* told);

  FileSystem& files_;
  const std::string folder_;
  std::vector<Task> tasks_;
};

}  // namespace hdps
