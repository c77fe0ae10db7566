// Passes frames and ticks to the parts of the scheduler, and does what they say.
#include "scheduler/scheduler_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "common/job/job_file.h"
#include "common/platform/failpoint.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/state/run_start.h"

namespace hdps {

SchedulerNode::SchedulerNode(const SchedulerOptions& options, ProgressListener listener,
                             FileSystem& files)
    : options_(options),
      files_(files),
      notices_(std::move(listener)),
      rendezvous_({.num_servers = options.num_servers,
                   .num_workers = options.num_workers,
                   .num_shards = options.job->cluster.shards,
                   .job_digest = JobDigest(*options.job),
                   .dead_after_ms = options.job->cluster.dead_after_ms,
                   .placement = options.script == nullptr ? ShardMap() : options.script->shards}),
      admission_(options.job->cluster, rendezvous_, options.sabotage.taken_is_final),
      changes_(options.job, rendezvous_, options.sabotage.fewer_at_once),
      kept_state_(files, options.out,
                  {.job_digest = JobDigest(*options.job),
                   .num_servers = options.num_servers,
                   .num_workers = options.num_workers,
                   .boot = options.boot,
                   .reign = options.reign}),
      checkpoints_(files, JoinPath(options.out, "checkpoint"), options.job, options.resume),
      copies_(files, options.programs, JoinPath(options.out, "checkpoint"),
              options.job->checkpoint),
      tracker_(options.command_retry_ms),
      watch_(options_, files),
      balancer_(options.job->cluster),
      outbox_(options.reign) {
  notices_.KeepEvents(
      [this](const std::string& line, bool warning) { watch_.TakeNotice(line, warning); });
}

Result<std::unique_ptr<SchedulerNode>> SchedulerNode::Make(const SchedulerOptions& options,
                                                           ProgressListener listener,
                                                           FileSystem& files) {
  CHECK(options.job != nullptr);
  HDPS_RETURN_IF_ERROR(ValidateCluster(*options.job, options.num_servers, options.num_workers));
  std::unique_ptr<SchedulerNode> node(new SchedulerNode(options, listener, files));
  HDPS_ASSIGN_OR_RETURN(
      node->init_, StartRun(options, files, node->checkpoints_, node->kept_state_, node->notices_));
  HDPS_RETURN_IF_ERROR(node->copies_.CheckStart(node->checkpoints_.newest()));
  const bool continued = node->checkpoints_.newest() || node->kept_state_.found();
  node->report_.emplace(options.report_interval_ms, files, options.out, *options.job,
                        options.given_job, continued, options.tensorboard);
  node->BeginWatch(continued);
  node->report_->run().TellEvaluations(listener.evaluation);
  return node;
}

template <typename Message>
void SchedulerNode::Handle(PeerId from, const Frame& frame) {
  Message message;
  if (const Status status = DecodeMessage(frame, &message); !status.ok()) {
    LOG(WARNING) << "dropped a frame of " << changes_.NameOf(from) << ": " << status.message();
    return;
  }
  On(from, message, frame.header.request_id);
}

template <typename... Messages>
bool SchedulerNode::Dispatch(PeerId from, const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  return ((kind == Messages::kKind && (Handle<Messages>(from, frame), true)) || ...);
}

void SchedulerNode::OnFrame(PeerId from, Frame frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  if (end_.over()) {
    if (kind == MessageKind::kTraceRequest) return Handle<TraceRequest>(from, frame);
    if (const std::optional<Abort> answer = end_.AnswerTo(kind)) outbox_.Send(from, *answer);
    return;
  }
  if (changes_.formed() && changes_.members().Has(from)) changes_.members().Heard(from, now_);
  if (!Dispatch<JoinRequest, Heartbeat, CommandDone, StopRequest, LeaveRequest, Abort, KvPut, KvGet,
                StatusRequest, PanelRequest, ScaleRequest, JobRequest, RowPlacesRequest, TracePart,
                TraceRequest>(from, frame)) {
    notices_.SayOutside("dropped a frame of kind " + std::string(MessageKindName(kind)) + " from " +
                            changes_.NameOf(from) + ": it is not the scheduler's",
                        now_);
  }
  // The members stand still until they get the next command, so it does not wait for a tick.
  if (coordinator_ && tracker_.has_new()) SendDue();
}

void SchedulerNode::On(PeerId from, const JoinRequest& message, uint64_t) {
  using Stage = Admission::Stage;
  const Stage stage = !coordinator_            ? Stage::kGathering
                      : coordinator_->ending() ? Stage::kEnding
                                               : Stage::kUnderWay;
  const Admission::Answer answer = admission_.OnJoin(from, message, stage, now_);
  notices_.SayOutside(answer.line, now_);
  if (answer.refused) return outbox_.Send(from, *answer.refused);
  if (!changes_.formed()) {
    if (rendezvous_.complete()) Form();
    return;
  }
  if (changes_.members().Has(from)) {
    changes_.members().OnJoinAgain(from, now_);
    return outbox_.Send(from, changes_.members().view());
  }
  // It takes the place of a lost member with the next tick, if the job stands for it.
  if (answer.newcomer) notices_.Say(changes_.Joined(from));
  // If others are missing too it waits for them, and would take a silent scheduler for gone.
  const std::string missing = rendezvous_.Missing();
  if (!missing.empty()) {
    outbox_.Send(from, JoinRefused{0, "it has a place, and the job waits for " + missing, true});
  }
}

void SchedulerNode::On(PeerId from, const Heartbeat& message, uint64_t) {
  const std::optional<Abort> refusal = changes_.Refusal(from);
  if (refusal) return outbox_.Send(from, *refusal);
  const Membership& members = changes_.members();
  const ViewId view = members.view().view;
  Heartbeat heartbeat = message;
  const Clock reach = coordinator_->ReachOf(from);
  if (message.view == view && message.clock > reach) {
    if (coordinator_->training() && members.IsNewer(from, message.number)) {
      return GiveUp(from, "it says that it has finished step " + std::to_string(message.clock) +
                              ", and was told to train to step " + std::to_string(reach));
    }
    heartbeat.clock = reach;  // During a return to a checkpoint it may still report its old clock.
  }
  const MemberChanges::Heard heard = changes_.OnHeartbeat(from, heartbeat, now_);
  notices_.Warn(heard.warning);
  notices_.Say(heard.notices);
  if (message.view == view) balancer_.OnHeartbeat(from, message.loads);
  if (message.view == view) coordinator_->OnProgress(from, heartbeat);
  outbox_.Send(from, AckOf(message.number));
  if (message.view < view) outbox_.Send(from, members.view());
}

void SchedulerNode::On(PeerId from, const CommandDone& message, uint64_t) {
  if (!changes_.formed() || !changes_.members().Has(from)) return;
  const std::optional<Command> command = tracker_.TakeAnswered(from, message.id);
  HDPS_FAILPOINT("scheduler.command.answered");
  if (!command) return;
  watch_.LookAt(checkpoints_, now_);
  coordinator_->OnAnswer(from, *command, message, now_);
  watch_.LookAt(checkpoints_, now_);
}

void SchedulerNode::On(PeerId from, const StopRequest& message, uint64_t) {
  if (changes_.Knows(from))
    RequestStop(changes_.NameOf(from) + " was told to stop: " + message.reason);
}

void SchedulerNode::On(PeerId from, const Abort& message, uint64_t) {
  if (!changes_.Knows(from)) return;
  const bool fails = message.exit_status != kExitDone;
  if (fails && !options_.members_return) {
    return Fail(message.exit_status, changes_.NameOf(from) + ": " + message.message);
  }
  GiveUp(from, fails ? message.message : "it gives up with status 0, which is no failure",
         message.member_only ? kExitDone : message.exit_status);
}

void SchedulerNode::On(PeerId from, const KvPut& message, uint64_t request_id) {
  if (!changes_.Knows(from)) return;
  if (!board_.Put(from, message, request_id)) return GiveUp(from, KeyValueStore::TooMuch());
  kept_state_.ChangedForMachine();
}

void SchedulerNode::On(PeerId from, const KvGet& message, uint64_t request_id) {
  if (changes_.Knows(from)) outbox_.Send(from, board_.Get(message.key), request_id);
}

void SchedulerNode::OnTick(TimeMs now) {
  if (end_.over()) {
    trace_.End("the job has ended");
    trace_.OnTick(now);
  }
  if (end_.done()) {
    now_ = now;
    if (copies_.awaited()) TickCopies();
    return;
  }
  ForgiveOwnStandstill(now);
  now_ = now;
  notices_.SayLeftOut(now);
  if (end_.leaving()) return SendAbort();
  if (kept_state_.found()) TakeOver();
  if (coordinator_) {
    TickRunning();
  } else {
    AnswerPuts();
    Follow(admission_.Gather(now));
  }
  if (end_.over()) return;
  TickCopies();
  TickWatch();
}

// While this process stood still it could hear nobody, so that time is not silence of a member.
void SchedulerNode::ForgiveOwnStandstill(TimeMs at) {
  const TimeMs gap = at - now_;
  if (gap < static_cast<TimeMs>(options_.job->cluster.heartbeat_ms)) return;
  rendezvous_.ForgiveSilence(gap);
  admission_.ForgiveSilence(gap);
  if (changes_.formed()) changes_.members().ForgiveSilence(gap);
}

void SchedulerNode::TickRunning() {
  if (!TickBalance() &&
      (changes_.under_way() || coordinator_->needs_restart() || coordinator_->quiet())) {
    Follow(changes_.Next(Stand(), now_));
  }
  if (end_.leaving()) return;
  coordinator_->OnTick(now_);
  if (const std::optional<JobFailure>& failure = coordinator_->failure()) {
    return Fail(failure->exit_status, failure->message);
  }
  if (coordinator_->finished()) return Finish();
  for (const MemberChanges::CutOff& cut : changes_.FindCutOff()) {
    GiveUp(cut.peer, cut.how);
    if (end_.leaving()) return;
  }
  if (const std::vector<PeerId> lost = changes_.FindLost(now_); !lost.empty()) Lose(lost);
  SendDue();
  TickTrace();
  notices_.SayWaits(tracker_, changes_.members(), now_);
  const auto training = [this] { return coordinator_->progress(); };
  report_->OnTick(now_, coordinator_->training() ? training : std::function<ProgressState()>(),
                  notices_);
}

void SchedulerNode::Form() {
  EnterView(changes_.First());
  notices_.Say(changes_.Complete());
  MakeCoordinator();
  coordinator_->Begin(checkpoints_.newest(), init_, now_);
}

void SchedulerNode::MakeCoordinator() {
  notices_.BeginWaits(now_);
  report_->Begin(now_);
  const auto notice = [this](const std::string& line) { notices_.Say(line); };
  const auto warn = [this](const std::string& line) { notices_.Warn(line); };
  const auto enter = [this](View view) { EnterView(std::move(view)); };
  JobCoordinator::Parts parts{
      changes_.members(), tracker_, checkpoints_, report_->run(), files_, notice, warn, enter, {}};
  parts.stops_anywhere = options_.sabotage.stops_anywhere;
  parts.script = options_.script;
  parts.heir_begins_anew = options_.sabotage.heir_begins_anew;
  if (options_.members_return) {
    parts.give_up = [this](PeerId peer, const std::string& how, int mistake_status) {
      GiveUp(peer, how, mistake_status);
    };
  }
  coordinator_.emplace(options_.job, options_.out, parts);
}

// The members have gone on meanwhile. A new view makes them ignore the former scheduler process.
// Open commands are sent again, under the same numbers.
void SchedulerNode::TakeOver() {
  const auto& newest = checkpoints_.newest();
  std::vector<std::string> lines;
  SchedulerState state = kept_state_.TakeFound(options_.same_run || options_.sabotage.stop_is_kept,
                                               newest ? newest->manifest : Manifest(), &lines);
  notices_.Say(lines);
  if (end_.stop_asked()) state.job.stop = true;
  rendezvous_.Restore(state.view, state.processes, now_);
  tracker_.ContinueFrom(state.last_ids);
  board_.Restore(state.entries);
  View view = state.view;
  ++view.view.value;
  EnterView(std::move(view));
  MakeCoordinator();
  notices_.Say("the scheduler is back at step " + std::to_string(state.job.plan.position.clock) +
               "; the members of view " + std::to_string(state.view.view.value) + " go on");
  HDPS_FAILPOINT("scheduler.state.taken_over");
  if (!coordinator_->TakeOver(state.job, now_)) Follow(changes_.GoBack(now_));
  changes_.ContinueScaling(state.wanted_servers, state.wanted_workers);
  changes_.SeekServerForCopies(now_);
}

void SchedulerNode::EnterView(View view) {
  if (changes_.formed()) {
    // Without clearing, a long job fills the board with meetings of the past.
    if (WorkersMeetAnew(changes_.members().view(), view)) board_.Clear();
  }
  changes_.Enter(std::move(view), now_);
  outbox_.SetView(changes_.members().view().view);
  admission_.OnView(now_);
  kept_state_.ChangedForMachine();
  HDPS_FAILPOINT("scheduler.view.formed");
  const Membership& members = changes_.members();
  for (const PeerId peer : members.all()) {
    LOG(INFO) << "view " << members.view().view.value << ": " << members.NameOf(peer);
    outbox_.Send(peer, members.view());
  }
  HDPS_FAILPOINT("scheduler.view.sent");
}

JobStand SchedulerNode::Stand() const {
  if (!coordinator_) return {};
  return {.clock = coordinator_->progress().clock,
          .point_of_return = coordinator_->PointOfReturn(),
          .needs_restart = coordinator_->needs_restart(),
          .moving = coordinator_->moving(),
          .quiet = coordinator_->quiet(),
          .saved = coordinator_->saved() || options_.sabotage.leaves_unsaved,
          .loads = coordinator_->loads(),
          .ends = coordinator_->ends(),
          .why_back = coordinator_->WhyGoBack(),
          .takes_up = coordinator_->takes_up()};
}

void SchedulerNode::Follow(MemberStep step) {
  for (const std::string& line : step.gone) notices_.SayOutside(line, now_);
  notices_.SayWait(step.wait, now_);
  switch (step.what) {
    case MemberStep::Do::kNothing:
      return;
    case MemberStep::Do::kReplace:
      return Replace(std::move(step));
    case MemberStep::Do::kGoBack:
      if (!step.because.empty()) {
        notices_.Say("all go back to " + coordinator_->PointOfReturn() + ", because " +
                     step.because);
      }
      coordinator_->Suspend(now_);
      EnterView(std::move(step.view));
      coordinator_->GoBack({step.num_lost, step.stood_since}, now_);
      changes_.SeekServerForCopies(now_);
      HDPS_FAILPOINT("scheduler.job.went_back");
      return;
    case MemberStep::Do::kAskForQuiet:
      return coordinator_->AskForQuiet();
    case MemberStep::Do::kGoOn:
      return coordinator_->GoOn(now_);
    case MemberStep::Do::kChange:
      kept_state_.ChangedForMachine();
      return coordinator_->ChangeMembers(std::move(step.view), now_);
    case MemberStep::Do::kSave:
      return coordinator_->SaveHere(now_);
    case MemberStep::Do::kLetGo:
      return LetGo(step.leavers, !step.unsaved);
    case MemberStep::Do::kEnd:
      return Fail(step.end.exit_status, step.end.message);
  }
}

void SchedulerNode::SendDue() {
  if (coordinator_->TakeChanged()) kept_state_.ChangedForProcess();
  if (kept_state_.due(now_)) {
    notices_.Say(
        kept_state_.Write(StateOf(changes_, tracker_, board_, coordinator_->state(now_)), now_));
  }
  AnswerPuts();  // The state holds the entries by now.
  for (const CommandTracker::Due& due : tracker_.TakeDue(now_)) {
    outbox_.Send(due.to, due.command);
    HDPS_FAILPOINT("scheduler.command.sent");
  }
}

void SchedulerNode::AnswerPuts() {
  for (const KeyValueStore::Answer& answer : board_.TakeAnswers()) {
    outbox_.Send(answer.to, answer.value, answer.request_id);
  }
}

void SchedulerNode::RequestStop(const std::string& reason) {
  if (!end_.TakeStop()) return;
  if (kept_state_.found()) return;  // The job exists, and is taken over with the first tick.
  if (!coordinator_) return Fail(kExitDone, "stopped before the cluster was complete: " + reason);
  const Recovery& recovery = changes_.recovery();
  if (options_.sabotage.stop_ends_a_stand && recovery.under_way()) {
    return Fail(kExitFailed, reason);
  }
  coordinator_->Stop();
  SendDue();  // Who kills this process at the next words finds the stop in its state.
  notices_.Say("stopping: " + reason +
               (recovery.under_way()
                    ? "; when " + recovery.names() + " lost has been replaced, the job is saved"
                    : "; the steps at hand are finished, then the job is saved"));
}

}  // namespace hdps
