// A server: holds the rows of its shards, answers pulls, applies pushes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/net/node.h"
#include "common/net/section_allocator.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/membership_client.h"
#include "common/telemetry/figure_layout.h"
#include "embedding/table.h"
#include "server/record/order_hooks.h"

namespace hdps {

struct Job;
class SpanRecorder;

// Switches safety mechanisms off, so that tests can check that their absence is noticed. Never set
// elsewhere.
struct ServerSabotage {
  bool no_ledger = false;           // Repeated pushes are applied again.
  bool no_gate = false;             // Pulls never wait.
  bool no_repair = false;           // Changes of prefetched rows are not reported.
  bool ack_early = false;           // A push is acknowledged before the backups have it.
  bool backup_forgets = false;      // A backup forgets which pushes are in its rows.
  bool view_ignored = false;        // A backup takes changes of a replaced primary.
  bool answers_alone = false;       // A primary whose backups are silent acknowledges without them.
  bool old_views_served = false;    // Requests of older views are served.
  bool moved_rows_left = false;     // Shards move to a server without their rows.
  bool ahead_changes_left = false;  // Moved rows are as they were when they came ahead.
  bool deltas_forget_erased = false;  // Deltas leave out removed rows.
  bool ages_late = false;             // Rows of pushes count as older by one update.
  bool saves_over = false;            // A replaced server overwrites its successor's save.
  bool heir_reads_anew = false;       // Who takes a place reads rows that have changed since.
  bool heir_pushes_again = false;     // What a dead process had pushed is taken again.
  bool stand_too_far = false;         // A place is told to be a step further than it is.
  bool counts_forgotten = false;      // A place's counts are told as none.
  bool heir_believed = false;  // Every push before a dead process's last one counts as taken.
};

struct ServerNodeOptions {
  std::shared_ptr<const Job> job;
  NodeIdentity identity;
  // Folder for rows that do not fit under cluster.memory_limit, if the job names none.
  std::string spill_folder;
  bool guests_read = false;    // Callers that are no members may read rows.
  bool own_process = false;    // All memory of the process is this server's.
  uint64_t expected_rows = 0;  // Rows of each table in all, to predict memory; 0: not known.
  SectionAllocator* sections = nullptr;  // Allocates rows for a worker; null: the heap.
  // Ends the loop's wait, from any thread, when work beside the loop has ended and TakeOutput() has
  // its result. May be empty if a tick is soon enough.
  std::function<void()> wake;
  // Writes the files of saves, so that work on rows does not wait for them; null: the executor of
  // the rows does. Outlives the node.
  Executor* file_writes = nullptr;
  // Measures what the server counts; null: heartbeats have no figures. Outlives the node.
  MonotonicClock* clock = nullptr;
  SpanRecorder* recorder = nullptr;  // Records traces; null: there are none. Outlives the node.
  OrderHooks order = {};             // Records the order of requests, or replays it.
  ServerSabotage sabotage;
};

struct ServerCounters {
  uint64_t pulls = 0;         // Pulls answered with rows.
  uint64_t pulls_parked = 0;  // Pulls that waited at the gate.
  uint64_t pushes = 0;        // Pushes taken for the first time.
  uint64_t pushes_repeated = 0;
  uint64_t pushes_too_old = 0;  // Taken pushes whose gradients were left out: train.max_staleness.
  uint64_t steps = 0;           // sync: combined updates applied.
  uint64_t refused = 0;         // Requests answered with a refusal.
  uint64_t dropped = 0;  // Frames that could not be answered: other views, strangers, damaged.
  uint64_t staleness_max = 0;  // Largest lead, in clocks, of a served pull over the slowest worker.
};

// One server of a job.
//
// Invariant: an acknowledged push is applied exactly once; in sync mode together with all others of
// its step, in order of rank. A training pull sees every push of the clocks before its own, less
// the staleness bound. No frame, whatever its bytes, stops the process.
//
// `executor` and `files` must outlive the node.
class ServerNode : public Node {
 public:
  ServerNode(FileSystem& files, Executor& executor, const ServerNodeOptions& options);
  ~ServerNode() override;

  void OnFrame(PeerId from, Frame frame) override;
  void OnTick(TimeMs now) override;
  Output TakeOutput() override;
  bool done() const override;
  int exit_status() const override;
  const std::string& exit_reason() const override;

  void RequestStop(const std::string& reason) override;
  void RequestLeave(const std::string& reason, TimeMs within_ms) override;
  ServerCounters counters() const;  // Over all groups whose rows are here.
  // Returns the figures of this server as they are now. While rows are read or written beside the
  // loop, what tables count is that of before.
  Readings ReadFigures();
  bool joined() const;    // It is a member of a view.
  uint32_t rank() const;  // Its rank, 0 before it has joined.
  // Returns the digest of the group's rows here, also at a backup; none if they are not here.
  std::optional<Result<RowsDigest>> DigestOf(ServerId group) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
