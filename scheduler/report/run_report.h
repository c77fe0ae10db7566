// What a run tells about itself: metrics.jsonl, summary.json, the line of progress, the last table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "common/protocol/messages.h"
#include "scheduler/report/evaluation.h"

namespace hdps {

// What summary.json says, field by field.
struct RunSummary {
  std::string job;
  std::string mode;  // "sync", "async", "ssp"
  uint32_t workers = 0, servers = 0;
  Clock steps = 0;                       // Of the job, also those before it was resumed.
  uint64_t examples = 0;                 // Likewise.
  std::optional<double> train_logloss;   // Mean over the last epoch trained here; none without.
  std::optional<Evaluation> evaluation;  // Of the first evaluation set.
  // Of all of them, by name and in their order; empty where there is one alone.
  std::vector<std::pair<std::string, Evaluation>> eval_sets;
  // Where the evaluation was best, what it came to, and the checkpoint; empty where none was kept.
  std::optional<Clock> best_step;
  double best_auc = 0, best_logloss = 0;
  std::string best_checkpoint;
  std::string stopped_early;       // Why the job ended before its last epoch; empty: it did not.
  double examples_per_second = 0;  // While training.
  double wall_seconds = 0;         // From the complete cluster to the end.
  uint64_t digest[2] = {0, 0};
  uint64_t rows = 0;               // Of embedding tables.
  uint64_t dense_rows = 0;         // That the dense layers fill at the servers.
  uint64_t dense_parameters = 0;   // Of the dense layers.
  RowCounts row_counts;            // Of all servers.
  uint64_t row_bytes = 0;          // Of memory, of all servers: rows in memory and their index.
  uint64_t server_bytes_max = 0;   // The most memory that one of them took; 0: not told.
  uint32_t failures_survived = 0;  // Members that were lost.
  // Steps, and examples as far as was known, that were lost with them and trained again.
  uint64_t steps_again = 0, examples_again = 0;
  std::string checkpoint;  // Folder of the newest.
  uint64_t staleness_max = 0;
  CacheTally cache;             // Over all workers.
  CollectiveTally collectives;  // Of the worker with the most, each.
  uint64_t bad_rows = 0;
  std::optional<Clock> resumed_from;
  std::optional<Clock> stopped_at;  // Where the job was told to stop; none when it ran to its end.
  std::vector<std::string> refused_checkpoints;
};

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
  // `continued`: metrics.jsonl goes on, else it begins anew.
  RunReport(FileSystem& files, const std::string& out, const Job& job, bool continued);
  ~RunReport();

  void Begin(TimeMs now, const ProgressState& start);
  // A line of metrics.jsonl and the text of the progress line, over the time since the last one.
  // Without a new example it stays the last one, for some seconds.
  std::string Progress(TimeMs now, const ProgressState& state);
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
  struct Rates {
    double examples_per_second = 0;
    std::optional<double> loss;
  };
  Rates RatesSinceLast(TimeMs now, const ProgressState& state) const;
  void Append(const std::string& line);

  const uint32_t epochs_;
  const Clock max_steps_;
  const TableSpec dense_;  // Whose learning rate is told.
  std::unique_ptr<WritableFile> metrics_;
  std::optional<std::string> trouble_;
  bool trouble_told_ = false;
  bool torn_ = false;  // The last line may be there in part.
  TimeMs begin_ = 0, last_ = 0;
  double part_at_begin_ = 0;  // Of the whole job.
  ProgressState last_state_;
  std::string line_;  // The last line of progress.
  std::optional<Evaluation> evaluation_;
};

// The digest as summary.json and `hdps inspect` print it: 32 hexadecimal digits.
std::string DigestText(const uint64_t digest[2]);
Status WriteSummary(FileSystem& files, const std::string& out, const RunSummary& summary);
// The end of a run for people: a short table, one string of several lines.
std::string SummaryTable(const RunSummary& summary, const std::string& out);

}  // namespace hdps
