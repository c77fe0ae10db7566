// The scheduler: gathers the members, tells them what to do next, and reports the results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "scheduler/balance/balancer.h"
#include "scheduler/job_coordinator.h"
#include "scheduler/members/admission.h"
#include "scheduler/members/job_end.h"
#include "scheduler/members/key_value_store.h"
#include "scheduler/members/member_changes.h"
#include "scheduler/members/outbox.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/picture/job_watch.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/checkpoint_copies.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/report/notices.h"
#include "scheduler/report/progress_report.h"
#include "scheduler/report/trace_collection.h"
#include "scheduler/scheduler_options.h"
#include "scheduler/state/kept_state.h"

namespace hdps {

struct Abort;
struct CommandDone;
struct Heartbeat;
struct JobRequest;
struct JoinRequest;
struct KvGet;
struct KvPut;
struct LeaveRequest;
struct PanelRequest;
struct ScaleRequest;
struct RowPlacesRequest;
struct StatusRequest;
struct StopRequest;
struct TracePart;
struct TraceRequest;
struct View;

// A job is a sequence of phases; in each, commands are repeated to members until all have answered:
// rendezvous, load or initialize, then train to the next boundary, evaluate, save, ..., digest,
// finish. The node passes frames and ticks to its parts and does what they say: JobCoordinator
// decides what comes next, MemberChanges who takes part and what follows from losses.
//
// Invariant: the coordinator exists exactly from the first view on. A view, a command or an entry
// of the key-value store is sent only after an attempt to write it to scheduler.state. Only small
// files are written: manifests, metrics, the summary.
class SchedulerNode : public Node {
 public:
  // Looks for checkpoints in `out` and makes its folders. kInvalidArgument if the job does not fit
  // the cluster, or if `out` holds the checkpoint of another job; nothing has been written then.
  static Result<std::unique_ptr<SchedulerNode>> Make(const SchedulerOptions& options,
                                                     ProgressListener listener, FileSystem& files);
  void OnFrame(PeerId from, Frame frame) override;
  void OnTick(TimeMs now) override;
  Output TakeOutput() override { return outbox_.Take(); }
  bool done() const override {
    return end_.stepped_down() || (end_.done() && !trace_.awaited() && !copies_.awaited());
  }
  int exit_status() const override { return end_.last_word().exit_status; }
  const std::string& exit_reason() const override { return end_.last_word().message; }

  // Drains the job: the present steps are finished, and the job is saved and ends with status 0.
  void RequestStop(const std::string& reason) override;
  // Writes the state and ends this process alone, at once and with status 3: the next one goes on
  // with the members. A job that ends, or is told to stop, is ended first.
  void RequestLeave(const std::string& reason, TimeMs within_ms) override;
  // Is true if this process ends and the job does not: another scheduler goes on with it.
  bool stepped_down() const { return end_.stepped_down(); }
  // Ends a job that cannot go on, also for a reason from outside the cluster; all members are told,
  // a few times.
  void Fail(int exit_status, const std::string& reason);

 private:
  SchedulerNode(const SchedulerOptions& options, ProgressListener listener, FileSystem& files);

  // Decodes and dispatches a message; an invalid one is logged with its sender.
  template <typename Message>
  void Handle(PeerId from, const Frame& frame);
  // Returns false if the frame is none of these messages.
  template <typename... Messages>
  bool Dispatch(PeerId from, const Frame& frame);
  void On(PeerId from, const JoinRequest& message, uint64_t request_id);
  void On(PeerId from, const Heartbeat& message, uint64_t request_id);
  void On(PeerId from, const CommandDone& message, uint64_t request_id);
  void On(PeerId from, const StopRequest& message, uint64_t request_id);
  void On(PeerId from, const LeaveRequest& message, uint64_t request_id);
  void On(PeerId from, const Abort& message, uint64_t request_id);
  void On(PeerId from, const KvPut& message, uint64_t request_id);
  void On(PeerId from, const KvGet& message, uint64_t request_id);
  void On(PeerId from, const StatusRequest& message, uint64_t request_id);
  void On(PeerId from, const PanelRequest& message, uint64_t request_id);
  void On(PeerId from, const ScaleRequest& message, uint64_t request_id);
  void On(PeerId from, const JobRequest& message, uint64_t request_id);
  void On(PeerId from, const RowPlacesRequest& message, uint64_t request_id);
  void On(PeerId from, const TracePart& message, uint64_t request_id);
  void On(PeerId from, const TraceRequest& message, uint64_t request_id);

  // Let the job be watched: from its start, with each tick, and with its last state.
  void BeginWatch(bool continued);
  void TickWatch();
  void EndWatch();
  StatusReply StatusNow() const;
  WatchedJob WatchedNow() const;

  void Form();
  void TakeOver();  // Goes on where a former scheduler process was.
  void MakeCoordinator();
  void EnterView(View view);
  void TickRunning();
  // Moves shards off a server that is too busy. Returns whether the job has left its rest for that.
  bool TickBalance();
  void ForgiveOwnStandstill(TimeMs at);

  JobStand Stand() const;
  void Follow(MemberStep step);  // Carries out `step`.
  void GiveUp(PeerId peer, const std::string& how, int mistake_status = kExitDone);
  void Lose(const std::vector<PeerId>& lost);
  // Lets processes that have taken lost workers' places take up their steps.
  void Replace(MemberStep step);
  void LetGo(const std::vector<PeerId>& leavers, bool handed_over);

  void SendDue();  // Sends new commands, and repeats those unanswered for long.
  void AnswerPuts();
  HeartbeatAck AckOf(uint64_t heartbeat) const;
  void TickTrace();
  void TickCopies();
  void Finish();
  void SendAbort();

  const SchedulerOptions options_;
  FileSystem& files_;
  Notices notices_;
  Rendezvous rendezvous_;
  Admission admission_;
  MemberChanges changes_;
  KeyValueStore board_;
  KeptState kept_state_;
  CheckpointCatalog checkpoints_;
  CheckpointCopies copies_;
  std::string copy_progress_;  // The line of it that was shown last.
  std::string init_;           // As StartRun() returns it.
  CommandTracker tracker_;
  std::optional<ProgressReport> report_;  // Set once Make() is done.
  std::optional<JobCoordinator> coordinator_;
  JobWatch watch_;
  Balancer balancer_;
  uint32_t moved_shards_ = 0;  // Shards of the plan that is being carried out; 0: there is none.
  JobEnd end_;
  Outbox outbox_;
  TraceCollection trace_;
  TimeMs now_ = 0;
};

}  // namespace hdps
