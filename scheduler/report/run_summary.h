// The summary of a run, and the table of it for people.
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
  Clock steps = 0;                       // Of the job, also those before it was resumed.
  uint64_t examples = 0;                 // Likewise.
  std::optional<double> train_logloss;   // Mean over the last epoch trained here; none without.
  std::optional<Evaluation> evaluation;  // Of the first evaluation set.
  // The evaluations of all sets, by name and in their order; empty where there is one alone.
  std::vector<std::pair<std::string, Evaluation>> eval_sets;
  // Where the evaluation was best, by which figure ("hr@10", "auc of late" of another set than the
  // first), what it came to, and the checkpoint; empty where none was kept.
  std::optional<Clock> best_step;
  std::string best_metric;
  double best_value = 0;
  double best_auc = 0, best_logloss = 0;  // Of the first set there; NaN where there is none.
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
  int64_t stood_ms = 0;    // From losses until the job went on, in all.
  std::string checkpoint;  // Folder of the newest.
  uint64_t staleness_max = 0;
  CacheTally cache;             // Over all workers.
  CollectiveTally collectives;  // Of the worker with the most, each.
  uint64_t bad_rows = 0;
  std::optional<Clock> resumed_from;
  std::optional<Clock> stopped_at;  // Where the job was told to stop; none when it ran to its end.
  std::vector<std::string> refused_checkpoints;
  std::vector<SettingChange> changes;  // On the way from checkpoints, since the first step.
};

// The share of the keys looked up that were kept at the worker; 0 where there were none.
inline double HitRate(const CacheTally& cache) {
  if (cache.lookups == 0) return 0;
  return static_cast<double>(cache.hits) / static_cast<double>(cache.lookups);
}

// The digest as summary.json and `hdps inspect` print it: 32 hexadecimal digits.
std::string DigestText(const uint64_t digest[2]);
// The end of a run for people: a short table, one string of several lines.
std::string SummaryTable(const RunSummary& summary, const std::string& out);

}  // namespace hdps
