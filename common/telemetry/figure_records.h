// The list of figures that running processes tell: a record each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hdps {

enum class FigureKind : uint8_t { kCounter, kGauge, kHistogram };

// The role tells who counts a figure. kProcess: every daemon, of its own process. kServing: hdps
// serve, of one model, which a further label `model` names.
enum class FigureRole : uint8_t { kProcess, kWorker, kServer, kScheduler, kServing };

enum class FigureUnit : uint8_t { kNone, kSeconds, kBytes, kClocks };

// What one figure is divided by; each is a label, with fixed values unless said otherwise.
enum class FigureLabels : uint8_t {
  kNone,
  kStage,       // stage: the parts of StepTimes.
  kDirection,   // direction: sent, received.
  kTable,       // table: the job's tables by name.
  kTableTier,   // table, tier: memory, disk.
  kMember,      // role, state: free; the scheduler makes the samples.
  kEvaluation,  // set, metric: free; the scheduler makes the samples.
  kFeature,     // feature: the model's sparse features by name.
  kProtocol,    // protocol: of a request.
  kCode,        // code: the status of an answer, as over HTTP.
  kRefresh,     // kind: whole checkpoints, deltas.
  kRefusal,     // reason: why a checkpoint was not taken.
  kShard        // shard, server: free; the scheduler makes the samples.
};

struct FigureRecord {
  std::string_view name;  // As in Prometheus: base units, "_total" at the end of a counter.
  FigureRole role;
  FigureKind kind;
  FigureUnit unit;
  FigureLabels labels;
  std::string_view help;  // A sentence without its period.
};

// Adding a figure is a line here and its use. Within a role the order is that of the wire.
inline constexpr auto kFigures = [] {
  using enum FigureRole;
  using enum FigureKind;
  using enum FigureLabels;
  constexpr auto kPlain = FigureUnit::kNone;
  constexpr auto kSeconds = FigureUnit::kSeconds;
  constexpr auto kBytes = FigureUnit::kBytes;
  constexpr auto kClocks = FigureUnit::kClocks;
  return std::to_array<FigureRecord>({
      {"process_cpu_seconds_total", kProcess, kCounter, kSeconds, kNone,
       "Processor time of this process, user and system"},
      {"process_resident_memory_bytes", kProcess, kGauge, kBytes, kNone,
       "Memory of this process that is in RAM"},
      {"process_open_fds", kProcess, kGauge, kPlain, kNone, "Open files and connections"},
      {"process_start_time_seconds", kProcess, kGauge, kSeconds, kNone,
       "Start of this process in seconds since 1970"},

      {"hdps_worker_step_seconds", kWorker, kHistogram, kSeconds, kNone,
       "Time of a training step on the compute thread"},
      {"hdps_worker_stage_seconds_total", kWorker, kCounter, kSeconds, kStage,
       "Time of training steps by stage; stages called hidden overlap the others"},
      {"hdps_worker_examples_total", kWorker, kCounter, kPlain, kNone, "Examples trained on"},
      {"hdps_worker_loss", kWorker, kGauge, kPlain, kNone, "Mean loss of the last step"},
      {"hdps_worker_bad_rows_total", kWorker, kCounter, kPlain, kNone,
       "Rows of the data that were left out because they cannot be read"},
      {"hdps_worker_rows_awaited_seconds", kWorker, kGauge, kSeconds, kNone,
       "How long the reader of a followed log has waited for more rows; 0: it does not wait"},
      {"hdps_worker_topic_lag_messages", kWorker, kGauge, kPlain, kNone,
       "Messages of a topic in this worker's partitions that it has not read"},
      {"hdps_worker_topic_lag_seconds", kWorker, kGauge, kSeconds, kNone,
       "Age of the last message that was read; 0: there are no others yet"},
      {"hdps_worker_messages_missing_total", kWorker, kCounter, kPlain, kNone,
       "Offsets of a topic that were passed over because no message has them"},
      {"hdps_worker_pull_seconds", kWorker, kHistogram, kSeconds, kNone,
       "Time from a pull to the last reply to it"},
      {"hdps_worker_push_seconds", kWorker, kHistogram, kSeconds, kNone,
       "Time from a push to the last acknowledgement of it"},
      {"hdps_worker_traffic_bytes_total", kWorker, kCounter, kBytes, kDirection,
       "Bytes of messages between this worker and servers"},
      {"hdps_worker_kept_lookups_total", kWorker, kCounter, kPlain, kNone,
       "Keys looked up among the rows kept at the worker"},
      {"hdps_worker_kept_hits_total", kWorker, kCounter, kPlain, kNone,
       "Keys found among the rows kept at the worker"},
      {"hdps_worker_staleness_clocks", kWorker, kHistogram, kClocks, kNone,
       "Clocks by which this worker was ahead of the slowest when it read rows"},
      {"hdps_worker_dropped_steps_total", kWorker, kCounter, kPlain, kNone,
       "Steps of which a server left gradients out: rows older than train.max_staleness"},
      {"hdps_worker_dropped_examples_total", kWorker, kCounter, kPlain, kNone,
       "Examples of these steps"},
      {"hdps_worker_refused_orders_total", kWorker, kCounter, kPlain, kNone,
       "Views and commands of schedulers that no longer led, which were refused"},

      {"hdps_server_rows", kServer, kGauge, kPlain, kTableTier,
       "Rows held here, copies of other servers left out"},
      {"hdps_server_row_bytes", kServer, kGauge, kBytes, kTableTier,
       "Bytes of these rows with their index; on disk without it"},
      {"hdps_server_pulls_total", kServer, kCounter, kPlain, kNone, "Pulls answered with rows"},
      {"hdps_server_pushes_total", kServer, kCounter, kPlain, kNone,
       "Pushes taken, also for copies of other servers; repetitions left out"},
      {"hdps_server_pushes_repeated_total", kServer, kCounter, kPlain, kNone,
       "Pushes that came again and changed nothing"},
      {"hdps_server_pushes_too_old_total", kServer, kCounter, kPlain, kNone,
       "Pushes whose gradients were left out: their rows were older than train.max_staleness"},
      {"hdps_server_push_staleness_clocks", kServer, kHistogram, kClocks, kTable,
       "Clocks by which the rows of a push were old when it was taken; async and ssp"},
      {"hdps_server_keys_total", kServer, kCounter, kPlain, kTable,
       "Keys of the pulls that were answered"},
      {"hdps_server_pull_seconds", kServer, kHistogram, kSeconds, kNone,
       "Time to serve a pull, waiting left out"},
      {"hdps_server_push_seconds", kServer, kHistogram, kSeconds, kNone,
       "Time to check and take a push; in sync the step's update comes later"},
      {"hdps_server_gate_wait_seconds", kServer, kHistogram, kSeconds, kNone,
       "Time for which a pull waited until its rows were new enough"},
      {"hdps_server_rows_admitted_total", kServer, kCounter, kPlain, kTable,
       "Rows made for new keys"},
      {"hdps_server_rows_evicted_total", kServer, kCounter, kPlain, kTable,
       "Rows removed by their table's policy"},
      {"hdps_server_rows_fetched_total", kServer, kCounter, kPlain, kTable,
       "Rows read back from disk"},
      {"hdps_server_save_seconds", kServer, kHistogram, kSeconds, kNone,
       "Time to write this server's part of a checkpoint"},
      {"hdps_server_saved_bytes_total", kServer, kCounter, kBytes, kNone,
       "Bytes written for checkpoints"},
      {"hdps_server_memory_limit_bytes", kServer, kGauge, kBytes, kNone,
       "Limit on the memory of rows; 0: none"},
      {"hdps_server_disk_waits", kServer, kGauge, kPlain, kNone,
       "1 while rows wait for room on the disk, otherwise 0"},
      {"hdps_server_refused_orders_total", kServer, kCounter, kPlain, kNone,
       "Views and commands of schedulers that no longer led, which were refused"},

      {"hdps_step", kScheduler, kGauge, kPlain, kNone, "Steps that every worker has finished"},
      {"hdps_epoch", kScheduler, kGauge, kPlain, kNone, "Epoch under way, from 1"},
      {"hdps_examples_total", kScheduler, kCounter, kPlain, kNone,
       "Examples trained on by all workers since this process began"},
      {"hdps_examples_per_second", kScheduler, kGauge, kPlain, kNone,
       "Speed over the last seconds of training"},
      {"hdps_training_loss", kScheduler, kGauge, kPlain, kNone,
       "Mean loss over the last report interval"},
      {"hdps_learning_rate", kScheduler, kGauge, kPlain, kNone,
       "Learning rate of the dense weights, or else of the first table"},
      {"hdps_evaluation", kScheduler, kGauge, kPlain, kEvaluation,
       "Figures of the last evaluation of each set"},
      {"hdps_members", kScheduler, kGauge, kPlain, kMember,
       "Members by role and state: alive, silent, missing"},
      {"hdps_shard_busy_ratio", kScheduler, kGauge, kPlain, kShard,
       "Part of the time in which the server of a shard worked on it; of the eight hottest shards"},
      {"hdps_server_busy_over_mean", kScheduler, kGauge, kPlain, kNone,
       "Busy time of the busiest server over the mean of all servers; 0: not known"},
      {"hdps_shards_moved_total", kScheduler, kCounter, kPlain, kNone,
       "Shards that moved because their server was too busy"},
      {"hdps_losses_survived_total", kScheduler, kCounter, kPlain, kNone,
       "Members that were lost while the job went on"},
      {"hdps_checkpoint_step", kScheduler, kGauge, kPlain, kNone, "Step of the newest checkpoint"},
      {"hdps_checkpoint_time_seconds", kScheduler, kGauge, kSeconds, kNone,
       "Time of the newest checkpoint in seconds since 1970; 0: none"},
      {"hdps_checkpoint_interval_seconds", kScheduler, kGauge, kSeconds, kNone,
       "Time between the last two checkpoints; 0: not known"},
      {"hdps_copy_step", kScheduler, kGauge, kPlain, kNone,
       "Step of the newest checkpoint whose copy is in object storage"},
      {"hdps_copy_seconds", kScheduler, kGauge, kSeconds, kNone,
       "Time that the last copy of a checkpoint or delta took"},
      {"hdps_copy_failures_total", kScheduler, kCounter, kPlain, kNone,
       "Copies of checkpoints, and removals of old ones, that failed"},

      {"hdps_serving_request_seconds", kServing, kHistogram, kSeconds, kProtocol,
       "Time from the last byte of a request to its answer, errors included"},
      {"hdps_serving_errors_total", kServing, kCounter, kPlain, kCode,
       "Requests that were answered with an error"},
      {"hdps_serving_rows_total", kServing, kCounter, kPlain, kNone, "Rows that were scored"},
      {"hdps_serving_batches_total", kServing, kCounter, kPlain, kNone,
       "Batches in which they were scored: of one request, or of several by --batch_wait_us"},
      {"hdps_serving_keys_total", kServing, kCounter, kPlain, kFeature, "Keys of the scored rows"},
      {"hdps_serving_unknown_keys_total", kServing, kCounter, kPlain, kFeature,
       "Keys among them that have no row in the model"},
      {"hdps_serving_mean_prediction", kServing, kGauge, kPlain, kNone,
       "Mean prediction of the last rows that were compared with evaluation data; 0 before"},
      {"hdps_serving_evaluation_mean_prediction", kServing, kGauge, kPlain, kNone,
       "Mean prediction of the job's evaluation data by the version at hand; 0: not known"},
      {"hdps_serving_evaluation_unknown_share", kServing, kGauge, kPlain, kFeature,
       "Share of the keys of these data that have no row in the model"},
      {"hdps_serving_prediction_drift", kServing, kGauge, kPlain, kNone,
       "1 while predictions are far from those of the evaluation data, otherwise 0"},
      {"hdps_serving_feature_drift", kServing, kGauge, kPlain, kFeature,
       "1 while the share of unknown keys is far from that of the evaluation data, otherwise 0"},
      {"hdps_serving_step", kServing, kGauge, kPlain, kNone, "Step of the version that answers"},
      {"hdps_serving_version_age_seconds", kServing, kGauge, kSeconds, kNone,
       "Time for which this version has answered"},
      {"hdps_serving_refreshes_total", kServing, kCounter, kPlain, kRefresh,
       "Versions that were taken, the first one included"},
      {"hdps_serving_refresh_seconds_total", kServing, kCounter, kSeconds, kRefresh,
       "Time to verify and load these versions"},
      {"hdps_serving_refresh_bytes_total", kServing, kCounter, kBytes, kRefresh,
       "Bytes of these versions' files"},
      {"hdps_serving_refused_versions_total", kServing, kCounter, kPlain, kRefusal,
       "Checkpoints that were refused, which the log names"},
      {"hdps_serving_logged_rows_total", kServing, kCounter, kPlain, kNone,
       "Rows written to the log of requests"},
      {"hdps_serving_unlogged_rows_total", kServing, kCounter, kPlain, kNone,
       "Rows that the log should have and lacks: no room, or no line of the data can hold them"},
  });
}();

// The place of a record in the list.
struct FigureId {
  uint16_t index = 0;
  friend bool operator==(FigureId, FigureId) = default;
};

// Returns the figure of that name; a name that is not in the list does not compile.
consteval FigureId FigureNamed(std::string_view name) {
  for (size_t i = 0; i < kFigures.size(); ++i) {
    if (kFigures[i].name == name) return {static_cast<uint16_t>(i)};
  }
  throw "no such figure";
}

constexpr const FigureRecord& RecordOf(FigureId id) { return kFigures[id.index]; }

// The upper bounds of the buckets of histograms; one more bucket takes what is larger.
inline constexpr std::array<int64_t, 19> kTimeBoundsNs = {
    10'000,        25'000,        50'000,        100'000,       250'000,
    500'000,       1'000'000,     2'500'000,     5'000'000,     10'000'000,
    25'000'000,    50'000'000,    100'000'000,   250'000'000,   500'000'000,
    1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000};
inline constexpr std::array<int64_t, 8> kClockBounds = {0, 1, 2, 4, 8, 16, 32, 64};

constexpr std::span<const int64_t> BoundsOf(const FigureRecord& record) {
  if (record.kind != FigureKind::kHistogram) return {};
  if (record.unit == FigureUnit::kClocks) return kClockBounds;
  return kTimeBoundsNs;
}

// The values of label `stage`, in the order of StepTimes.
inline constexpr auto kStageLabels = std::to_array<std::string_view>(
    {"read", "dedup", "read_wait", "pull_wait", "pull_hidden", "compute", "reduce_dense",
     "reduce_hidden", "keep", "push_wait", "total"});
inline constexpr auto kDirectionLabels = std::to_array<std::string_view>({"sent", "received"});
inline constexpr auto kTierLabels = std::to_array<std::string_view>({"memory", "disk"});
// The values of label `protocol`, in the order of ServingProtocol.
inline constexpr auto kProtocolLabels =
    std::to_array<std::string_view>({"infer_json", "infer_binary", "predict", "lookup", "message"});
// The values of label `code`; the last one stands for all others.
inline constexpr auto kCodeLabels =
    std::to_array<std::string_view>({"400", "404", "413", "503", "other"});
// The values of label `kind`.
inline constexpr auto kRefreshLabels = std::to_array<std::string_view>({"whole", "delta"});
// The values of label `reason`, in the order of Refusal.
inline constexpr auto kRefusalLabels =
    std::to_array<std::string_view>({"damaged", "unfit", "memory", "unreadable"});

}  // namespace hdps
