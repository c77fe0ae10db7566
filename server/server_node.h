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
#include "common/protocol/membership_client.h"
#include "embedding/table.h"

namespace hdps {

struct Job;

// Takes a safety mechanism out, so that a test can see its absence noticed. Never set elsewhere.
struct ServerSabotage {
  bool no_ledger = false;         // Repeated pushes are applied again.
  bool no_gate = false;           // Pulls never wait.
  bool no_repair = false;         // Rows that were read ahead are never said to have changed.
  bool ack_early = false;         // A push is acknowledged before the backups have it.
  bool backup_forgets = false;    // A backup does not know which pushes are in its rows.
  bool view_ignored = false;      // A backup takes changes of a primary that was replaced.
  bool answers_alone = false;     // A primary whose backups are silent acknowledges without them.
  bool old_views_served = false;  // Requests of before the newest view are served.
  bool moved_rows_left = false;   // Shards that come to a server come without their rows.
  bool deltas_forget_erased = false;  // Rows that have left are not said to have.
  bool saves_over = false;            // Who was replaced writes over what its successor has saved.
};

struct ServerNodeOptions {
  std::shared_ptr<const Job> job;
  NodeIdentity identity;
  // With cluster.memory_limit: where rows go that memory has no room for, if the job names no
  // folder.
  std::string spill_folder;
  bool own_process = false;    // All memory of the process is this server's.
  uint64_t expected_rows = 0;  // Of each table in all, for the prediction of memory; 0: not known.
  SectionAllocator* sections = nullptr;  // Where rows for a worker are put; null: anywhere.
  // Ends the loop's wait, from any thread: work beside the loop has ended, and TakeOutput() has
  // what came of it. May be empty where a tick is soon enough.
  std::function<void()> wake;
  ServerSabotage sabotage;
};

struct ServerCounters {
  uint64_t pulls = 0;         // Answered with rows.
  uint64_t pulls_parked = 0;  // Waited at the gate.
  uint64_t pushes = 0;        // Taken for the first time.
  uint64_t pushes_repeated = 0;
  uint64_t steps = 0;          // sync: combined updates.
  uint64_t refused = 0;        // Requests answered with a refusal.
  uint64_t dropped = 0;        // Frames nobody could answer yet: other views, strangers, broken.
  uint64_t staleness_max = 0;  // Clocks a served pull was ahead of the slowest worker.
};

// Invariant: a push that was acknowledged is applied exactly once, in sync together with all others
// of its step in order of rank. A training pull sees every push of the clocks before its own less
// the bound. No frame, whatever its bytes, stops the process.
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
  ServerCounters counters() const;  // Of all groups whose rows are here.
  // The rows of `group` as they are here, also at a backup; none where they are not.
  std::optional<Result<RowsDigest>> DigestOf(ServerId group) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
