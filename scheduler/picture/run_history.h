// Keeps what a job's page shows of the past: curves, evaluations, checkpoints, and events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "scheduler/picture/curve.h"

namespace hdps {

class FileSystem;

// A notice, a warning, or a change of the members.
struct RunEvent {
  uint64_t version = 0;
  std::optional<double> time = {};  // Seconds since 1970; none: not known.
  Clock step = 0;
  bool warning = false;
  std::string text = {};
  std::string cause = {};              // Why members were lost; empty: nothing else is known.
  std::optional<double> seconds = {};  // For how long the job stood.
};

struct KnownCheckpoint {
  uint64_t version = 0;
  Clock step = 0;
  // Seconds since 1970 when it was whole; none: before this process.
  std::optional<double> time = {};
  std::optional<double> seconds = {};  // From the order to save until it was whole.
  uint64_t bytes = 0;
  bool full = true;       // Otherwise it holds what changed since the one before.
  bool verified = false;  // Its files were read back and compared.
  std::string path = {};
};

// The figure of a set's last evaluation. `set`: empty for the first one.
struct EvaluatedFigure {
  std::string set, metric;
  double value = 0;  // NaN: undefined.
  Clock step = 0;
};

// Lines of metrics.jsonl are the one source of curves and evaluations, so that a scheduler that
// comes back reads what the one before has seen.
//
// Invariant: memory is bounded: at most kCurvesMax curves, kEventsMax events and kCheckpointsMax
// checkpoints. A copy of all curves takes less than a third of 8 MiB, for there are at most three:
// this one, the newest picture's and one that is being told.
class RunHistory {
 public:
  static constexpr size_t kCurvesMax = 50, kEventsMax = 200, kCheckpointsMax = 20;
  static_assert(3 * kCurvesMax * Curve::kPointsMax * sizeof(Curve::Point) < size_t{8} << 20);

  // Takes a line of metrics.jsonl; `version`: of the next picture; `time`: seconds since 1970, for
  // an event. A line that is cut off or tells nothing of these is ignored.
  void TakeLine(std::string_view line, uint64_t version, std::optional<double> time);
  // Takes the lines of the file of an earlier process. A file that cannot be read has none.
  void TakeFile(FileSystem& files, const std::string& path, uint64_t version);
  void TakeEvent(RunEvent event);
  void TakeCheckpoint(KnownCheckpoint checkpoint);

  const std::vector<Curve>& curves() const { return curves_; }
  const std::vector<EvaluatedFigure>& evaluations() const { return evaluations_; }
  const std::deque<RunEvent>& events() const { return events_; }
  const std::deque<KnownCheckpoint>& checkpoints() const { return checkpoints_; }
  // Figures of the last line of progress; NaN: not known.
  double loss() const { return loss_; }
  double learning_rate() const { return learning_rate_; }
  double examples_per_second() const { return examples_per_second_; }
  // Is true if something was taken since the last call.
  bool TakeChanged();

 private:
  void Add(const std::string& name, const std::string& set, Clock step, double value,
           uint64_t version);

  std::vector<Curve> curves_;
  std::vector<EvaluatedFigure> evaluations_;
  std::deque<RunEvent> events_;
  std::deque<KnownCheckpoint> checkpoints_;
  static constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
  double loss_ = kNotKnown, learning_rate_ = kNotKnown, examples_per_second_ = kNotKnown;
  std::string last_loss_;  // Why members were lost last.
  bool changed_ = true;
};

}  // namespace hdps
