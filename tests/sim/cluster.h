// A scheduler, servers and workers, all real but for the workers' compute side, on one simulated
// network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/view.h"
#include "scheduler/scheduler_node.h"
#include "server/server_node.h"
#include "tests/sim/disk.h"
#include "tests/sim/faults.h"
#include "tests/sim/launcher.h"
#include "tests/sim/network.h"
#include "tests/sim/scripted_worker.h"
#include "tests/sim/tally.h"
#include "worker/role/worker_node.h"

namespace hdps {
struct Job;
}  // namespace hdps

namespace hdps::sim {

struct ClusterOptions {
  uint64_t seed = 0;
  Mode mode = Mode::kSync;
  uint32_t staleness_bound = 0;
  uint32_t num_servers = 2, num_workers = 3;
  Clock steps_per_epoch = 6;
  uint32_t epochs = 2;
  uint64_t checkpoint_every = 0;
  uint64_t delta_every = 0;  // Checkpoints that hold only what changed.
  Weather weather;
  uint32_t outages = 0;      // Members, or all of them, cut off for a while.
  int32_t slow_worker = -1;  // This one computes five times as long.
  TimeMs compute_ms_min = 0, compute_ms_max = 40;
  uint32_t pushes_at_once = 0;  // Above 0: workers only push, so many at once.
  ServerSabotage server_sabotage;
  bool advance_early = false;
  uint32_t lookahead = 0;
  DType wire = DType::kFp32;
  bool since_late = false;
  Clock mistaken_at = -1;    // Worker 0 gives up at this clock.
  uint64_t incarnation = 0;  // Distinguishes the processes of a cluster that was started again.
  // What was trained by a cluster whose files this one goes on with.
  std::optional<StepHistory> history_before;
  // Above 0: processes that were killed, or ended with status 3, are started again, the first time
  // so long after.
  TimeMs restart_after_ms = 0;
  LauncherSabotage launcher_sabotage;
  // With kDrain: the launcher tells each scheduler that it starts in the drain so, too.
  bool told_again = true;
  bool never_fewer = false;  // A view of fewer servers than there were at first is a fault.
  SchedulerSabotage scheduler_sabotage;
  // So many processes are killed, one after the other: servers, workers, or the scheduler.
  uint32_t kills = 0;
  bool kill_servers_only = false;
  TimeMs kill_gap_ms = 0;  // At least, from one to the next.
  uint32_t replicas = 0;
  TimeMs cut_copies_ms = 0;  // Before a server is killed it reaches no other server for so long.
  // Server 0 and the scheduler lose sight of each other at this time, for long; so do worker 0 and
  // the scheduler, not so long that it is taken for lost, at the time when server 0 is.
  TimeMs cut_off_at = -1;
  TimeMs dead_after_ms = 20000;
  uint32_t replace_after_s = 60;
  OnWorkerLoss on_worker_loss = OnWorkerLoss::kWait;
  bool judged = false;          // Evaluations let rates fall and end the job: see kJudgedAuc.
  bool rows_leave = false;      // As in TallyTables().
  TimeMs starts_within_ms = 0;  // Servers and workers start some time within so long.
  std::vector<Fault> faults;    // By time.
  // Of the next cluster, which goes on where this one was told to stop, or ended with its launcher.
  std::vector<Fault> faults_of_next;
};

// What a seed draws for one run in the given mode.
ClusterOptions DrawCluster(uint64_t seed, Mode mode);

// The job that such a cluster trains.
std::shared_ptr<const Job> JobOf(const ClusterOptions& options);
inline constexpr char kSchedulerAddress[] = "ipc:///sim/scheduler";
inline constexpr char kOut[] = "/out";  // Of the scheduler.

struct Outcome {
  bool finished = false;              // Every process ended, with status 0 (or was cut off then).
  bool exact = false;                 // The final rows are what all pushes, once each, make.
  bool stopped = false;               // As asked, and saved: the job has steps left.
  bool ended_by_fault = false;        // With its launcher.
  std::vector<std::string> problems;  // What was read against the rules, or failed.
  uint64_t trace = 0;
  TimeMs ended_at = 0;
  uint64_t frames = 0;
  ServerCounters servers;        // Sums; staleness_max is the largest.
  std::vector<TimeMs> train_ms;  // [workers]
  bool loaded = false;           // The job went on from a checkpoint.
  uint32_t restarted = 0;        // Processes.
  uint32_t went_back = 0;        // How often the cluster was formed again.
  uint32_t taken_over = 0;       // How often another scheduler went on.
  uint32_t scaled = 0;           // How often members changed without a loss.
  uint32_t promoted = 0;         // How often others went on with the rows of a lost server.
  uint32_t power_lost = 0;       // How often a machine forgot what it had not synced.
  uint32_t refused = 0;          // Processes that were told there is no place for them.
  uint32_t stood_by = 0;         // Processes of which the cluster had no need until the end.

  bool good() const { return finished && exact && problems.empty(); }
  std::string Describe() const;
};

// Invariant: all that happens follows from the options; two clusters share nothing but `files`.
class Cluster {
 public:
  Cluster(const ClusterOptions& options, FileSystem* files);
  ~Cluster();

  // Until the job is over, or `until`. May be called again to go on.
  Outcome Run(TimeMs until = 3'600'000);
  // One of the processes is told to stop; chosen by `seed`. Before the first step it is the
  // scheduler.
  void RequestStop(uint64_t seed);
  const StepHistory& history() const { return tally_.history(); }
  // The process of this server or worker is gone without a word.
  void KillServer(uint32_t rank);
  void KillWorker(uint32_t rank);
  void KillScheduler();
  // The job is to go on with one server more, which is started, or with one less.
  void AddServer() { Scale({.kind = Fault::Kind::kScale, .servers = 1}); }
  void DismissServer() { Scale({.kind = Fault::Kind::kScale, .servers = -1}); }
  bool over() const { return scheduler_ != nullptr && scheduler_->done(); }
  // And nobody starts it again.
  void LoseServer(uint32_t rank);
  // The nodes that have not been killed, the scheduler first.
  std::vector<const Node*> nodes() const;
  // The newest process of this server or worker.
  PeerId PeerOf(Role role, uint32_t rank) const { return peers_.at({role, rank}); }
  SimNetwork& network() { return network_; }

 private:
  // A process of a server. What it was at on disk ends when it does.
  struct Server {
    std::unique_ptr<ProcessFiles> files;
    std::unique_ptr<LateExecutor> executor;
    std::unique_ptr<ServerNode> node;
  };
  struct Worker {
    PeerId peer;
    std::unique_ptr<ScriptedWorker> compute;
    std::unique_ptr<WorkerNode> node;
  };

  void StartScheduler(bool same_run);
  void StartServer(uint32_t rank);
  void StartWorker(uint32_t rank);
  void AddOutages();
  void AddKills();
  void AddCuts();
  void AddFault(const Fault& fault);
  // Does what a launcher does, and the faults that are due.
  void Supervise();
  void StartWhoIsMissing();
  void TellToStop();
  void Do(const Fault& fault);
  void DoLater(const Fault& fault);
  void Join(const Fault& fault);
  void Stop(const Fault& fault);
  void EndAll();
  // Another process of the role, which asks for `rank`; returns where.
  Place NewPlace(Role role, int32_t rank);
  int32_t RankAskedBy(Place who) const;
  void Kill(Role role, uint32_t rank);
  void Scale(const Fault& fault);
  const Node* NodeOf(Role role, uint32_t rank) const;
  // The disk as this process sees it, with the faults of its place.
  std::unique_ptr<ProcessFiles> FilesOf(PeerId peer);
  // How much longer than usual something on disk takes just now.
  TimeMs DiskTakes(uint64_t place);
  PeerId NewPeer(Role role, uint32_t rank);
  // Reads the digest from what the servers tell the scheduler.
  void Spy(PeerId from, PeerId to, const Frame& frame);
  bool AllDone() const;
  Outcome Judge(bool all_done) const;
  // What the digests must be, and what was asked of the job: all of its steps, or to stop.
  void JudgeEnd(Outcome* outcome) const;
  // Of a cluster whose job had its end behind it, but for the members' farewell.
  bool SummaryIsOf(Clock steps) const;
  // Whether it is no wonder that this process ended so.
  bool IsExcused(PeerId peer, const Node& node, uint32_t* excuses) const;
  // Every copy of a group's rows is the primary's, bit for bit.
  void JudgeCopies(Outcome* outcome) const;

  const ClusterOptions options_;
  const std::shared_ptr<const Job> job_;
  SimDisk disk_;
  Random chance_;  // Of what the faults need beside their times.
  Tally tally_;
  SimNetwork network_;
  // Members that the scheduler did not wait for at the end: cut off when the job was finished, they
  // never hear of it and end with status 3 when they have missed the scheduler long enough.
  uint32_t unconfirmed_ = 0;
  std::unique_ptr<ProcessFiles> scheduler_files_;
  std::unique_ptr<SchedulerNode> scheduler_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  std::vector<Fault> faults_;  // Not done yet, by time.
  std::vector<Fault> disk_faults_;
  uint64_t started_ = 0, asked_ = 0;  // Processes of servers and workers, and scale requests.
  Launcher launcher_;
  std::map<Place, int32_t> ranks_asked_;  // Of those that came later; -1: any.
  std::set<Place> of_other_job_;
  std::map<Place, PeerId> peers_;  // Of the newest processes.
  uint32_t restarted_ = 0, went_back_ = 0, taken_over_ = 0, scaled_ = 0, promoted_ = 0;
  uint32_t power_lost_ = 0;
  std::optional<TimeMs> scheduler_starts_at_;  // It was killed.
  bool stop_asked_ = false, scheduler_told_ = false, ended_by_fault_ = false;
  // By worker: its clock in each heartbeat, and in the last one that was acknowledged.
  std::map<PeerId, std::map<uint64_t, std::pair<ViewId, Clock>>> clocks_sent_;
  std::map<PeerId, Clock> clocks_told_;
  Clock reached_ = 0;  // What the scheduler knew of when it was told to stop.
  bool loaded_ = false;
  uint32_t views_of_fewer_ = 0;
  View newest_view_;                             // That anybody was sent.
  uint64_t digest_view_ = 0;                     // In which the servers were asked last.
  std::map<PeerId, CommandId> digest_commands_;  // The one to each server.
  std::map<PeerId, CommandDone> digests_;
};

}  // namespace hdps::sim
