// What is known of the answers of one model: figures, drift, and the log of requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/telemetry/meters.h"
#include "common/telemetry/samples.h"
#include "tools/serve/served_model.h"
#include "tools/serve/versions/version_facts.h"
#include "tools/serve/watch/answer_sums.h"
#include "tools/serve/watch/answer_watch.h"
#include "tools/serve/watch/drift.h"
#include "tools/serve/watch/evaluation_answers.h"
#include "tools/serve/watch/request_log.h"

namespace hdps {

struct ServingWatchOptions {
  size_t tasks = 1;  // As for PredictionsOf().
  // Returns the facts at once, on any thread, by the watch's clock; null: they are not known.
  std::function<VersionFacts()> versions;
  std::optional<EvaluationAnswers> evaluation;  // Nothing: drift is not watched.
  std::unique_ptr<RequestLog> log;              // Null: there is none.
  // Tells the operator of drift in a sentence that does not name the model; called by Turn().
  std::function<void(const std::string&)> warn;
};

// Counts answers, compares them with those of the evaluation data, and hands them to the log.
//
// Invariant: Saw() only adds to numbers and hands lines on. Answers are compared in windows that
// begin anew when the evaluation data are scored by a newer version, which is at most once in
// kScoreEveryMs.
class ServingWatch : public AnswerWatch {
 public:
  static constexpr int64_t kScoreEveryMs = 60'000;

  // Requires: `model` and `clock` outlive it.
  ServingWatch(ServedModel& model, MonotonicClock& clock, ServingWatchOptions options);

  void Saw(const Answered& answered) override;
  // Compares the answers of a full window with those of the evaluation data. For one thread, about
  // once a second.
  void Turn();
  // Returns all figures of the model, with its name as the label `model`; on any thread.
  std::vector<Sample> Samples() const;
  // Writes what the log has waiting; nothing is logged any more.
  void Close();

 private:
  void CountKeys(const ScoreAnswer& answer);
  void ScoreEvaluation();
  void Compare(const AnswerTotals& window);
  void SetVersions(const VersionFacts& facts) const;

  ServedModel& model_;
  MonotonicClock& clock_;
  const ServingWatchOptions options_;
  mutable Meters meters_;
  AnswerSums window_;  // The answers since a window began.

  // Used by Turn() alone.
  std::optional<AnswerTotals> evaluation_;  // By the version scored_step_.
  Clock scored_step_ = kNoClock;
  int64_t score_after_ms_ = 0;
  bool score_failed_ = false;
  bool prediction_far_ = false;
  std::vector<bool> feature_far_;  // [sparse features]
};

// Returns the text of /metrics: the figures of all models and of this process.
std::string ServingMetrics(FileSystem& files, const std::vector<const ServingWatch*>& models);

}  // namespace hdps
