// The inside of a scheduler, which its two sources share: frames and ticks, and changes of members.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/outside_text.h"
#include "common/protocol/messages.h"
#include "scheduler/job_coordinator.h"
#include "scheduler/members/cut_links.h"
#include "scheduler/members/failure_count.h"
#include "scheduler/members/key_value_store.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/recovery.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/members/scaling.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/report/run_report.h"
#include "scheduler/report/wait_notices.h"
#include "scheduler/scheduler_node.h"

namespace hdps {

// Nobody answers an Abort, and one copy may be lost: so often is it said, a tick apart.
inline constexpr int kFarewells = 5;
inline constexpr ViewId kFirstView{1};
// More numbers of commands than are given while a written state may still be lost.
inline constexpr uint64_t kIdsSkipped = 1 << 20;
// So many who find every place taken may wait for a loss that has not been noticed yet.
inline constexpr size_t kStandingByMax = 64;
// State that could not be written is tried again after this long.
inline constexpr TimeMs kStateAgainMs = 1000;

// Invariant: members and coordinator are there exactly from the complete cluster on.
struct SchedulerNode::Impl {
  Impl(const SchedulerOptions& o, ProgressListener v, FileSystem& f)
      : options(o),
        job(*o.job),
        job_digest(JobDigest(job)),
        voice(std::move(v)),
        files(f),
        rendezvous({.num_servers = o.num_servers,
                    .num_workers = o.num_workers,
                    .num_shards = o.job->cluster.shards,
                    .job_digest = job_digest,
                    .dead_after_ms = o.job->cluster.dead_after_ms}),
        recovery(o.job->cluster),
        tracker(o.command_retry_ms),
        checkpoints(f, JoinPath(o.out, "checkpoint"), o.job) {}

  void Notice(const std::string& line) {
    if (voice.notice) voice.notice(line);
  }
  // Of what anybody can cause.
  void NoticeOutside(std::string line) {
    if (const auto taken = outside.Take(std::move(line), now)) Notice(*taken);
  }

  template <typename Message>
  void Send(PeerId to, const Message& message, uint64_t request_id = 0) {
    Frame frame = EncodeMessage(message);
    frame.header.sender = kSchedulerPeer.value;
    frame.header.view = members ? members->view().view.value : 0;
    frame.header.request_id = request_id;
    output.frames.push_back({to, std::move(frame)});
  }

  // Decodes and dispatches; what breaks a rule costs its sender a line in the log.
  template <typename Message>
  void Handle(PeerId from, const Frame& frame) {
    Message message;
    if (const Status status = DecodeMessage(frame, &message); !status.ok()) {
      LOG(WARNING) << "dropped a frame of " << NameOf(from) << ": " << status.message();
      return;
    }
    On(from, message, frame);
  }

  // False when the frame is none of these messages.
  template <typename... Messages>
  bool Dispatch(PeerId from, const Frame& frame) {
    const auto kind = static_cast<MessageKind>(frame.header.kind);
    return ((kind == Messages::kKind && (Handle<Messages>(from, frame), true)) || ...);
  }

  bool Knows(PeerId peer) const {
    if (members) return members->Has(peer);
    return std::ranges::count(rendezvous.peers(), peer) > 0;
  }
  std::string NameOf(PeerId peer) const {
    if (members && members->Has(peer)) return members->NameOf(peer);
    return Knows(peer) ? rendezvous.NameOf(peer) : "peer " + std::to_string(peer.value);
  }

  void On(PeerId from, const JoinRequest& message, const Frame& frame);
  void On(PeerId from, const Heartbeat& message, const Frame& frame);
  void On(PeerId from, const CommandDone& message, const Frame& frame);
  void On(PeerId from, const StopRequest& message, const Frame& frame);
  void On(PeerId from, const Abort& message, const Frame& frame);
  void On(PeerId from, const KvPut& message, const Frame& frame);
  void On(PeerId from, const KvGet& message, const Frame& frame);
  void On(PeerId from, const StatusRequest& message, const Frame& frame);
  void On(PeerId from, const ScaleRequest& message, const Frame& frame);
  // Of a status: which members are waited for, and how long yet.
  void TellWanted(StatusReply* status) const;

  // Whether one who finds every place taken is told so only later.
  bool StandsBy(PeerId peer, const JoinRequest& request);
  void Form();
  void MakeCoordinator();
  // Finds what another process of the scheduler has left of this job; says why it is not used.
  void FindState();
  // Goes on where that process was.
  void TakeOver();
  // Leaves on disk what that needs, where it has changed.
  void KeepState();
  void ForgetState();  // The job is over: nobody goes on from here.
  void EnterView(View view);
  void Lose(const std::vector<PeerId>& lost);
  // Others that hold the rows of `lost` take over. False where the job has to go back.
  bool Promote(const std::vector<PeerId>& lost);
  std::string HowLost(PeerId peer) const;  // For people: "its process has ended".
  // `peer` cannot go on, or nobody reaches it: it is lost with the next tick. When those in its
  // place have failed again and again, the job ends.
  void GiveUp(PeerId peer, const std::string& how);
  void TickLinks();
  void TellTrouble(PeerId peer, const std::string& last, const std::string& current);
  // While copies of rows are missing, another server is waited for, as if the job were to be scaled
  // to as many as it has; what was asked for goes on.
  void SeekMembers();
  // Nobody has come for so long that those who are left are to make the copies that they can.
  bool CopiesMayBeAtOthers() const;
  View WithThoseLeft() const;
  View ScaledView();
  // Goes on with the cluster that is complete again.
  void Reform();
  void TickGathering();
  void TickRecovery();
  void TickScaling();
  void TickRunning();
  // What has not been sent, and what has not been answered for long.
  void SendDue();
  void Report();
  void ForgiveOwnStandstill(TimeMs at);
  void Stop(const std::string& reason);
  // Tells everyone who came, a few times, and ends.
  void Leave(int status, const std::string& reason);
  void SayFarewell();

  const SchedulerOptions options;
  const Job& job;
  const uint64_t job_digest;  // The job does not change, and its state is written often.
  const ProgressListener voice;
  FileSystem& files;
  Rendezvous rendezvous;
  Recovery recovery;
  FailureCount failures;
  std::map<PeerId, TimeMs> standing_by;  // Since when.
  OutsideLines outside;
  std::string refused_last;  // For people; empty: nobody was.
  Scaling scaling;
  std::optional<TimeMs> copies_missing_since;  // And nobody has come.
  PeerId scale_asked_by;                       // Last, and what it was told.
  ScaleReply scale_reply;
  TimeMs scale_asked_at = 0;
  std::set<PeerId> dismissed;  // Have left the job as they were asked to.
  CommandTracker tracker;
  CheckpointCatalog checkpoints;
  std::optional<FoundCheckpoint> start;
  std::optional<SchedulerState> before;  // Of another process, until it is taken over.
  bool state_changed = false;            // Beside the coordinator's.
  TimeMs state_tried_at = 0;
  bool state_trouble = false;  // It could not be written, and that was said.
  std::unique_ptr<RunReport> report;
  std::optional<Membership> members;
  std::optional<JobCoordinator> coordinator;
  KeyValueStore store;

  Output output;
  TimeMs now = 0;
  std::optional<TimeMs> began;  // The first tick.
  TimeMs noticed_at = 0, reported_at = 0, progress_noticed_at = 0;
  WaitNotices waits;

  int farewells_left = 0;
  bool stopping = false;
  bool leaving = false;
  bool done = false;
  int exit_status = 0;
  std::string exit_reason;
};

}  // namespace hdps
