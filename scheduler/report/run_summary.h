// The summary of a run, and its table for the console.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/manifest.h"
#include "common/protocol/manifest_parts.h"
#include "scheduler/report/evaluation.h"

namespace hdps {

// The fields of summary.json.
struct RunSummary {
  std::string job;
  std::string mode;  // "sync", "async", "ssp"
  uint32_t workers = 0, servers = 0;
  Clock steps = 0;                       // Steps of the job, including those before it was resumed.
  uint64_t examples = 0;                 // Examples of the job, counted as `steps` are.
  std::optional<double> train_logloss;   // Mean over the last epoch trained here, if any.
  std::optional<Evaluation> evaluation;  // Result of the first evaluation set.
  // The evaluations of all sets, by name in their order; empty if there is only one set.
  std::vector<std::pair<std::string, Evaluation>> eval_sets;
  std::optional<Evaluation> progressive;  // Of train.progressive, when last told.
  // The best evaluation: its step, the figure ("hr@10", or "auc of late" for a set that is not the
  // first), its value, and the checkpoint; empty if none was kept.
  std::optional<Clock> best_step;
  std::string best_metric;
  double best_value = 0;
  double best_auc = 0, best_logloss = 0;  // Figures of the first set there; NaN if there is none.
  std::string best_checkpoint;
  std::string stopped_early;       // Why the job ended before its last epoch; empty: it did not.
  double examples_per_second = 0;  // Rate while training.
  double wall_seconds = 0;         // Time from the complete cluster to the end.
  uint64_t digest[2] = {0, 0};
  uint64_t rows = 0;               // Rows of embedding tables.
  uint64_t dense_rows = 0;         // Rows of the dense layers at the servers.
  uint64_t dense_parameters = 0;   // Parameters of the dense layers.
  RowCounts row_counts;            // Counts of all servers.
  uint64_t row_bytes = 0;          // Memory of rows and their index, over all servers.
  uint64_t server_bytes_max = 0;   // The largest memory of a server; 0: not reported.
  uint32_t failures_survived = 0;  // Members that were lost.
  uint32_t leaves = 0;             // Members that left as they were told to.
  // Steps, and examples as far as known, that were lost and trained again.
  uint64_t steps_again = 0, examples_again = 0;
  int64_t stood_ms = 0;    // Total time from losses until the job went on.
  std::string checkpoint;  // Folder of the newest checkpoint.
  uint64_t staleness_max = 0;
  CacheTally cache;             // Counts of all workers.
  CollectiveTally collectives;  // Largest value of any worker, for each field.
  uint64_t bad_rows = 0;
  uint64_t unknown_ids = 0;  // Ids of the training data that have no row.
  std::optional<Clock> resumed_from;
  // Clock at which the job was stopped; none if it ran to its end.
  std::optional<Clock> stopped_at;
  std::vector<std::string> refused_checkpoints;
  std::vector<SettingChange> changes;  // Changes at checkpoints since the first step.
};

// Returns the share of looked-up keys that the workers' caches held; 0 without lookups.
inline double HitRate(const CacheTally& cache) {
  if (cache.lookups == 0) return 0;
  return static_cast<double>(cache.hits) / static_cast<double>(cache.lookups);
}

// Returns the digest as summary.json and `hdps inspect` print it: 32 hexadecimal digits.
std::string DigestText(const uint64_t digest[2]);
// Returns a short table for the end of a run, in one string of several lines.
std::string SummaryTable(const RunSummary& summary, const std::string& out);

}  // namespace hdps
