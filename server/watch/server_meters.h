// Counts what one server does and holds, for whoever watches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/table_keys.h"
#include "common/telemetry/meters.h"
#include "common/telemetry/span_recorder.h"

namespace hdps {

class TableSlice;
struct Command;
struct CommandDone;
struct Job;
struct SavedFile;
struct ServerCounters;

// Rows of one table at one server, as the primary of their shards.
struct TableHoldings {
  uint64_t rows_in_memory = 0, rows_on_disk = 0;
  uint64_t memory_bytes = 0, disk_bytes = 0;
  RowCounts counts;

  void Add(const TableSlice& slice);
};

// Invariant: the counters of requests grow as these are served, on whichever thread serves them.
// What the tables count themselves is taken over when the counters are about to be read.
class ServerMeters {
 public:
  // `clock`: measures times; null: no times are counted. `recorder`: of traces, or null. Both must
  // outlive the object.
  ServerMeters(const Job& job, MonotonicClock* clock, SpanRecorder* recorder = nullptr);

  Meters& meters() { return meters_; }
  SpanRecorder* recorder() const { return recorder_; }
  int64_t NowNs() const { return clock_ == nullptr ? 0 : clock_->NowNs(); }
  // Returns the time from `begin_ns` until now; -1 without a clock.
  int64_t Since(int64_t begin_ns) const {
    return clock_ == nullptr ? -1 : clock_->NowNs() - begin_ns;
  }
  // Counts that time in a histogram of times, and returns it.
  int64_t Took(FigureId figure, int64_t begin_ns) {
    const int64_t took_ns = Since(begin_ns);
    if (clock_ != nullptr) meters_.Observe(figure, took_ns);
    return took_ns;
  }
  // Records `what` for a trace until the span ends, if one is taken of its step.
  RecordedSpan Record(const SpanOf& of, const char* what) const {
    return RecordedSpan(recorder_, of, what, what);
  }
  // Counts and records a wait at the gate until now.
  void WaitedAtGate(const SpanOf& of, int64_t begin_ns) {
    Took(FigureNamed("hdps_server_gate_wait_seconds"), begin_ns);
    if (recorder_ == nullptr || !recorder_->Records(of.step)) return;
    recorder_->Add("gate wait", "gate wait", begin_ns, recorder_->NowNs(), of);
  }
  // Counts the keys of a pull that is answered.
  void CountKeys(const std::vector<TableKeys>& tables);
  // Counts the age in clocks of a push's rows of one table.
  void CountAge(TableId table, uint64_t clocks);
  // Counts files of a checkpoint.
  void CountSaved(const std::vector<SavedFile>& files);
  // Counts a save that has ended, and its time if no copies are left to be written. Failed saves
  // and those of rows that move to another server are no checkpoints.
  void CountSave(const Command& save, const CommandDone& done, int64_t begun_ns);

  // Returns the figures; `disk_waits`: whether rows wait for room on the disk; `refused_orders`: as
  // MembershipClient counts them.
  Readings ReadWhile(bool disk_waits, uint64_t refused_orders);

  void TakeOver(const ServerCounters& counters);
  void TakeOver(TableId table, const TableHoldings& holdings);

 private:
  MonotonicClock* const clock_;
  SpanRecorder* const recorder_;
  std::vector<size_t> labels_;  // [tables]: their places among the tables that are counted.
  Meters meters_;
};

}  // namespace hdps
