// Writes the outputs of a run: lines of metrics.jsonl, the line of progress, and summary.json.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "common/protocol/tallies.h"
#include "scheduler/report/evaluation.h"
#include "scheduler/report/run_summary.h"
#include "scheduler/report/training_speed.h"
#include "scheduler/report/write_trouble.h"

namespace hdps {

struct Job;
struct View;
class EventFile;

// The progress of training, for one line.
struct ProgressState {
  Clock clock = 0;
  uint32_t epoch = 0;         // Number of complete epochs.
  double epoch_progress = 0;  // 0..1
  uint64_t examples = 0;      // Trained since this process began.
  double loss_sum = 0;        // Sum of their losses.
  CacheTally cache = {};      // Counts of all workers.
  bool epoch_begun = true;    // A step of `epoch` was taken.
  double rate = 1;            // Factor of the learning rates.
  // Mean age of the rows of all pushes, in clocks; none in sync.
  std::optional<double> push_staleness = {};
};

// Returns the epoch of the last step, counted from 1.
uint32_t EpochOf(const ProgressState& state, uint32_t epochs);

// Turns states of the run into files and lines. A file that cannot be written is reported once and
// never stops the training.
//
// Invariant: every line of metrics.jsonl is one whole JSON object.
class RunReport {
 public:
  // `given`: the job as the user gave it, or empty. `continued`: appends to metrics.jsonl instead
  // of starting it anew. `tensorboard`: the lines also go to OUT/tensorboard, as EventFile does it.
  RunReport(FileSystem& files, const std::string& out, const Job& job, const std::string& given,
            bool continued, bool tensorboard = false);
  ~RunReport();

  void Begin(TimeMs now, const ProgressState& start);
  // Notes that training goes on after a pause since the last line, such as an evaluation.
  void GoOn(TimeMs now);
  // Appends a line to metrics.jsonl and returns the text of the line of progress: the loss since
  // the last one, and the speed by TrainingSpeed. Without new examples the last text stays for some
  // seconds.
  std::string Progress(TimeMs now, const ProgressState& state);
  const std::string& line() const { return line_; }  // The last text; empty: none.
  // Calls `listener` with each line of an evaluation from now on; null: nobody.
  void TellEvaluations(std::function<void(const std::string& line)> listener) {
    evaluation_listener_ = std::move(listener);
  }
  // Calls `listener` with each line of metrics.jsonl from now on, also where it cannot be written.
  void TellLines(std::function<void(const std::string& line)> listener) {
    line_listener_ = std::move(listener);
  }
  // Report a lost member that was silent for `silent_ms`, and why, and that the job goes on from
  // `state` after standing for `stood_ms`.
  void Lost(TimeMs now, const std::string& member, TimeMs silent_ms, const std::string& cause);
  // Reports that a process took up the step of a lost worker in place.
  void Replaced(TimeMs now, const std::string& member, TimeMs after_ms);
  // Reports that another server goes on with the rows of a lost one.
  void Promoted(TimeMs now, uint32_t group, const std::string& from, const std::string& to);
  void WentBack(TimeMs now, const ProgressState& state, TimeMs stood_ms);
  // A change of the members without a loss: what moved, and how long the job stood.
  struct Moved {
    uint64_t shards = 0, rows = 0, bytes = 0;
    TimeMs stood_ms = 0;
  };
  void Scaled(TimeMs now, const ProgressState& state, const View& view, const Moved& moved);
  // `set`: name of the evaluation set; empty for the first, whose figures the line of progress
  // shows. `rate`: factor of the learning rates so far; none if nothing changes it.
  void Evaluated(TimeMs now, const ProgressState& state, const Evaluation& evaluation,
                 const std::string& set = "", std::optional<double> rate = std::nullopt);
  // Reports that the learning rates are multiplied by `rate` from now on.
  void RateFell(TimeMs now, Clock clock, double rate, const std::string& why);
  // Returns an error of writing, as WriteTrouble does, with the name of the file.
  std::optional<std::string> TakeTrouble();

 private:
  std::optional<double> LossSinceLast(const ProgressState& state) const;
  void Append(const std::string& line);

  const uint32_t epochs_;
  const Clock max_steps_;
  // Returns the learning rate of the dense weights, or else of the first table, in update `step`:
  // see OptimizerAt().
  const std::function<float(Clock step, double rate)> learning_rate_;
  const bool has_layers_;  // Otherwise the losses and epochs are those of another program.
  std::function<void(const std::string&line)> evaluation_listener_, line_listener_;
  std::unique_ptr<WritableFile> metrics_;
  std::unique_ptr<EventFile> events_;  // Null without --tensorboard.
  WriteTrouble trouble_;
  bool torn_ = false;  // The last line may be incomplete.
  TimeMs begin_ = 0, last_ = 0;
  double part_at_begin_ = 0;  // Part of the whole job done at begin_.
  ProgressState last_state_;
  TrainingSpeed speed_;
  std::string line_;  // The last progress line.
  // Of the first evaluation set, and of train.progressive.
  std::optional<Evaluation> evaluation_, progressive_;
};

Status WriteSummary(FileSystem& files, const std::string& out, const RunSummary& summary);

}  // namespace hdps
