// Simulates a cluster: real scheduler, servers and workers, with scripted training, on one
// simulated network.
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
#include "common/telemetry/figure_layout.h"
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
  uint64_t delta_every = 0;  // Steps between checkpoints that hold only changes.
  uint64_t save_seconds = 0, delta_seconds = 0;  // The same by the scheduler's clock.
  Weather weather;
  uint32_t outages = 0;      // Number of times that members are cut off for a while.
  int32_t slow_worker = -1;  // Rank of a worker that computes five times as long.
  TimeMs compute_ms_min = 0, compute_ms_max = 40;
  uint32_t pushes_at_once = 0;  // Above 0: workers only push, with so many pushes in flight.
  ServerSabotage server_sabotage;
  bool advance_early = false;
  uint32_t lookahead = 0;
  // As in TrainSpec. Rows are then no tallies, so no run is exact.
  bool recorded = false;  // Servers say that they record: in async and ssp all go back.
  uint32_t max_staleness = 0;
  double delay_compensation = 0;
  bool staleness_rate = false;
  DType wire = DType::kFp32;
  uint32_t copies = 1;  // Of the model: in sync mode workers push a step in several parts.
  bool since_late = false;
  Clock mistaken_at = -1;  // Clock at which worker 0 reports a mistake of the operator and ends.
  // Distinguishes the processes of a cluster that was started again.
  uint64_t incarnation = 0;
  // History of the cluster whose files this one continues.
  std::optional<StepHistory> history_before;
  // Above 0: processes that were killed or ended with status 3 are restarted, the first time after
  // this delay.
  TimeMs restart_after_ms = 0;
  LauncherSabotage launcher_sabotage;
  // With kDrain: the launcher also tells each new scheduler to drain. Before the first view it
  // always does.
  bool told_again = true;
  // A view with fewer servers than at the start is a fault.
  bool never_fewer = false;
  SchedulerSabotage scheduler_sabotage;
  // Number of processes to kill one after the other: servers, workers, or the scheduler.
  uint32_t kills = 0;
  bool kill_servers_only = false;
  TimeMs kill_gap_ms = 0;        // Smallest time between two kills.
  uint32_t balance_after_s = 0;  // As in ClusterSpec; 0: shards stay.
  uint32_t replicas = 0;
  // Time for which a server cannot reach other servers before it is killed.
  TimeMs cut_copies_ms = 0;
  // Time at which server 0 and the scheduler are cut off from each other for long. Worker 0 and the
  // scheduler are cut off at the time when server 0 is lost, but not so long that the worker is
  // lost.
  TimeMs cut_off_at = -1;
  TimeMs dead_after_ms = 20000;
  uint32_t replace_after_s = 60;
  OnWorkerLoss on_worker_loss = OnWorkerLoss::kWait;
  bool judged = false;          // Evaluations lower rates and end the job: see kJudgedAuc.
  bool rows_leave = false;      // As in TallyTables().
  TimeMs starts_within_ms = 0;  // Servers and workers start at random times within this span.
  std::vector<Fault> faults;    // In order of time.
  // ^Faults of the next cluster, which continues where this one was stopped or ended with its
  // launcher.
  std::vector<Fault> faults_of_next;
};

// Draws the options of one run in the given mode from a seed.
ClusterOptions DrawCluster(uint64_t seed, Mode mode);

// Returns the job that the cluster trains.
std::shared_ptr<const Job> JobOf(const ClusterOptions& options);
inline constexpr char kSchedulerAddress[] = "ipc:///sim/scheduler";
inline constexpr char kOut[] = "/out";  // Folder of the scheduler.

struct Outcome {
  // Every process ended with status 0, or was cut off at the end.
  bool finished = false;
  bool exact = false;  // The final rows are the result of all pushes, each applied once.
  // The job was stopped as asked and saved; it has steps left.
  bool stopped = false;
  bool ended_by_fault = false;        // The job ended with its launcher.
  std::vector<std::string> problems;  // Violated rules and failures.
  uint64_t trace = 0;
  TimeMs ended_at = 0;
  uint64_t frames = 0;
  ServerCounters servers;  // Sums over servers; staleness_max is the largest.
  // Figures of the servers' last processes; only counts, as no clock measures times.
  std::map<PeerId, Readings> server_readings;
  std::vector<TimeMs> train_ms;  // [workers]
  bool loaded = false;           // The job continued from a checkpoint.
  uint32_t restarted = 0;        // Restarted processes.
  uint32_t went_back = 0;        // Times that the cluster was formed again.
  uint32_t replaced = 0;         // Workers whose step another process took up.
  uint32_t taken_over = 0;       // Times that another scheduler took over.
  uint32_t scaled = 0;           // Times that members changed without a loss.
  uint32_t promoted = 0;         // Times that a backup became primary after a loss.
  uint32_t power_lost = 0;       // Times that a machine lost its unsynced data.
  uint32_t refused = 0;          // Processes that were refused a place.
  uint32_t stood_by = 0;         // Processes that stood by until the end.
  uint64_t leaves = 0;           // Members that left as they were told to, by the summary.
  uint64_t steps_again = 0;      // Steps that were trained again, by the summary.

  bool good() const { return finished && exact && problems.empty(); }
  std::string Describe() const;
};

// A simulated cluster.
//
// Invariant: everything that happens follows from the options; two clusters share only `files`.
class Cluster {
 public:
  Cluster(const ClusterOptions& options, FileSystem* files);
  ~Cluster();

  // Runs until the job is over or the clock is at `until`. A further call continues.
  Outcome Run(TimeMs until = 3'600'000);
  // Asks one of the processes, chosen by `seed`, to stop; before the first step it is the
  // scheduler.
  void RequestStop(uint64_t seed);
  const StepHistory& history() const { return tally_.history(); }
  // Kills the process of this server or worker.
  void KillServer(uint32_t rank);
  void KillWorker(uint32_t rank);
  void KillScheduler();
  // Ask for one server more, which is started, or for one less.
  void AddServer() { Scale({.kind = Fault::Kind::kScale, .servers = 1}); }
  void DismissServer() { Scale({.kind = Fault::Kind::kScale, .servers = -1}); }
  bool over() const { return scheduler_ != nullptr && scheduler_->done(); }
  // Kills the server, and no other is started for it.
  void LoseServer(uint32_t rank);
  // Returns the nodes that were not killed, the scheduler first.
  std::vector<const Node*> nodes() const;
  // Returns the newest process of this server or worker.
  PeerId PeerOf(Role role, uint32_t rank) const { return peers_.at({role, rank}); }
  SimNetwork& network() { return network_; }

 private:
  // The process of a server. Its unfinished work on disk ends with it.
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
  // Acts as the launcher, and starts the faults that are due.
  void Supervise();
  void StartWhoIsMissing();
  void TellToStop();
  void Do(const Fault& fault);
  void DoLater(const Fault& fault);
  void Join(const Fault& fault);
  void Stop(const Fault& fault);
  void Leave(const Fault& fault);
  void EndAll();
  // Starts another process of the role, which asks for `rank`; returns its place.
  Place NewPlace(Role role, int32_t rank);
  int32_t RankAskedBy(Place who) const;
  void Kill(Role role, uint32_t rank);
  void Scale(const Fault& fault);
  const Node* NodeOf(Role role, uint32_t rank) const;
  // Returns the disk as this process sees it, with the faults of its place.
  std::unique_ptr<ProcessFiles> FilesOf(PeerId peer);
  // Returns how much longer a disk operation takes at the moment.
  TimeMs DiskTakes(uint64_t place);
  PeerId NewPeer(Role role, uint32_t rank);
  // Reads the digest from the servers' messages to the scheduler.
  void Spy(PeerId from, PeerId to, const Frame& frame);
  bool AllDone() const;
  Outcome Judge(bool all_done) const;
  // Checks the digests and the request to the job: all of its steps, or to stop.
  void CheckEnd(Outcome* outcome) const;
  // Returns the number in a field of summary.json; 0 if there is none.
  uint64_t NumberInSummary(const std::string& field) const;
  // Is true if the summary is that of a job with `steps` steps which ended, but for the members'
  // goodbye.
  bool SummaryIsOf(Clock steps) const;
  // Is true if the process had reason to end as it did.
  bool IsExcused(PeerId peer, const Node& node, uint32_t* excuses) const;
  // Checks that every copy of a group's rows equals the primary's bit for bit.
  void CheckCopies(Outcome* outcome) const;

  const ClusterOptions options_;
  const std::shared_ptr<const Job> job_;
  SimDisk disk_;
  Random chance_;  // Draws the details of faults.
  Tally tally_;
  SimNetwork network_;
  // Members that the scheduler did not wait for at the end: they were cut off when the job was
  // finished, never hear of it, and end with status 3 after missing the scheduler long enough.
  uint32_t unconfirmed_ = 0;
  std::unique_ptr<ProcessFiles> scheduler_files_;
  std::unique_ptr<SchedulerNode> scheduler_;
  std::vector<Server> servers_;
  std::vector<Worker> workers_;
  std::vector<Fault> faults_;  // Faults to come, in order of time.
  std::vector<Fault> disk_faults_;
  // Numbers of started server and worker processes, and of scale requests.
  uint64_t started_ = 0, asked_ = 0;
  Launcher launcher_;
  std::map<Place, int32_t> ranks_asked_;  // Ranks that later processes ask for; -1: any.
  std::set<Place> of_other_job_;
  std::map<Place, PeerId> peers_;  // Newest process of each place.
  uint32_t replaced_ = 0;
  uint32_t restarted_ = 0, went_back_ = 0, taken_over_ = 0, scaled_ = 0, promoted_ = 0;
  uint32_t power_lost_ = 0;
  // Time of the next scheduler, if this one was killed.
  std::optional<TimeMs> scheduler_starts_at_;
  bool stop_asked_ = false, scheduler_told_ = false, ended_by_fault_ = false;
  // For each worker, its clock in each heartbeat, and in the last one that was acknowledged.
  std::map<PeerId, std::map<uint64_t, std::pair<ViewId, Clock>>> clocks_sent_;
  std::map<PeerId, Clock> clocks_told_;
  Clock reached_ = 0;  // Clock that the scheduler knew when it was told to stop.
  bool loaded_ = false;
  uint32_t views_of_fewer_ = 0;
  View newest_view_;          // Newest view that was sent to any member.
  uint64_t digest_view_ = 0;  // View in which the servers were last asked for digests.
  std::map<PeerId, CommandId> digest_commands_;  // Command to each server.
  std::map<PeerId, CommandDone> digests_;
};

}  // namespace hdps::sim
