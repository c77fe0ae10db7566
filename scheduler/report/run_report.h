// The outputs of a run: lines of metrics.jsonl, the line of progress, and summary.json.
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

namespace hdps {

struct Job;
struct View;

// Where the training stands, for one line.
struct ProgressState {
  Clock clock = 0;
  uint32_t epoch = 0;         // From 0: as many are complete.
  double epoch_progress = 0;  // 0..1
  uint64_t examples = 0;      // Trained since this process began.
  double loss_sum = 0;        // Over those.
  CacheTally cache = {};      // Over all workers.
  bool epoch_begun = true;    // A step of `epoch` has been taken.
  double rate = 1;            // What the learning rates are multiplied with.
};

// The epoch that the last step belongs to, counted from 1 as people count.
uint32_t EpochOf(const ProgressState& state, uint32_t epochs);

// Turns states of the run into files and lines. A file that cannot be written is reported once and
// never stops the training.
//
// Invariant: every line of metrics.jsonl is one whole JSON object.
class RunReport {
 public:
  // `given`: the job as a person gave it, or empty. `continued`: metrics.jsonl goes on, else it
  // begins anew.
  RunReport(FileSystem& files, const std::string& out, const Job& job, const std::string& given,
            bool continued);
  ~RunReport();

  void Begin(TimeMs now, const ProgressState& start);
  // Training goes on, having stood since the last line, as for an evaluation.
  void GoOn(TimeMs now);
  // A line of metrics.jsonl and the text of the progress line: the loss since the last one, the
  // speed by TrainingSpeed. Without a new example it stays the last one, for some seconds.
  std::string Progress(TimeMs now, const ProgressState& state);
  const std::string& line() const { return line_; }  // The last one; empty: there is none.
  // A member is lost, of which nothing was heard for so long; the job goes on from `state`, having
  // stood for so long.
  void Lost(TimeMs now, const std::string& member, TimeMs silent_ms);
  // Another server goes on with the rows of a lost one.
  void Promoted(TimeMs now, uint32_t group, const std::string& from, const std::string& to);
  void WentBack(TimeMs now, const ProgressState& state, TimeMs stood_ms);
  // The members have changed without a loss; rows that moved, and how long the job stood for it.
  struct Moved {
    uint64_t shards = 0, rows = 0, bytes = 0;
    TimeMs stood_ms = 0;
  };
  void Scaled(TimeMs now, const ProgressState& state, const View& view, const Moved& moved);
  // `set`: its name; empty: the first, whose figures the line of progress shows. `rate`: what the
  // learning rates were multiplied with up to here; none where nothing changes them.
  void Evaluated(TimeMs now, const ProgressState& state, const Evaluation& evaluation,
                 const std::string& set = "", std::optional<double> rate = std::nullopt);
  // From here on the learning rates are multiplied with `rate`.
  void RateFell(TimeMs now, Clock clock, double rate, const std::string& why);
  // The first thing that could not be written, once; and again where it was written meanwhile.
  std::optional<std::string> TakeTrouble();

 private:
  std::optional<double> LossSinceLast(const ProgressState& state) const;
  void Append(const std::string& line);

  const uint32_t epochs_;
  const Clock max_steps_;
  // Returns the learning rate of the dense weights in update `step`: see OptimizerAt().
  const std::function<float(Clock step, double rate)> learning_rate_;
  std::unique_ptr<WritableFile> metrics_;
  std::optional<std::string> trouble_;
  bool trouble_told_ = false;
  bool torn_ = false;  // The last line may be there in part.
  TimeMs begin_ = 0, last_ = 0;
  double part_at_begin_ = 0;  // Of the whole job.
  ProgressState last_state_;
  TrainingSpeed speed_;
  std::string line_;  // The last line of progress.
  std::optional<Evaluation> evaluation_;
};

Status WriteSummary(FileSystem& files, const std::string& out, const RunSummary& summary);

}  // namespace hdps
