// The list of figures that running processes tell: a record each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hdps {

enum class FigureKind : uint8_t { kCounter, kGauge, kHistogram };

// Who counts a figure. kProcess: every daemon, of its own process.
enum class FigureRole : uint8_t { kProcess, kWorker, kServer, kScheduler };

enum class FigureUnit : uint8_t { kNone, kSeconds, kBytes, kClocks };

// What one figure is divided by; each is a label, with fixed values unless said otherwise.
enum class FigureLabels : uint8_t {
  kNone,
  kStage,      // stage: the parts of StepTimes.
  kDirection,  // direction: sent, received.
  kTable,      // table: the job's tables by name.
  kTableTier,  // table, tier: memory, disk.
  kMember,     // role, state: free; the scheduler makes the samples.
  kEvaluation  // set, metric: free; the scheduler makes the samples.
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

      {"hdps_server_rows", kServer, kGauge, kPlain, kTableTier,
       "Rows held here, copies of other servers left out"},
      {"hdps_server_row_bytes", kServer, kGauge, kBytes, kTableTier,
       "Bytes of these rows with their index; on disk without it"},
      {"hdps_server_pulls_total", kServer, kCounter, kPlain, kNone, "Pulls answered with rows"},
      {"hdps_server_pushes_total", kServer, kCounter, kPlain, kNone,
       "Pushes taken, also for copies of other servers; repetitions left out"},
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
      {"hdps_losses_survived_total", kScheduler, kCounter, kPlain, kNone,
       "Members that were lost while the job went on"},
      {"hdps_checkpoint_step", kScheduler, kGauge, kPlain, kNone, "Step of the newest checkpoint"},
      {"hdps_checkpoint_time_seconds", kScheduler, kGauge, kSeconds, kNone,
       "Time of the newest checkpoint in seconds since 1970; 0: none"},
      {"hdps_checkpoint_interval_seconds", kScheduler, kGauge, kSeconds, kNone,
       "Time between the last two checkpoints; 0: not known"},
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

}  // namespace hdps
