// Joins, sends heartbeats, takes views and commands, and detects the end.
#include "common/protocol/membership_client.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/base/exit_status.h"
#include "common/base/outside_text.h"
#include "common/platform/failpoint.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/command_book.h"
#include "common/protocol/locate/scheduler_link.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/trace/trace_sender.h"
#include "common/protocol/view.h"
#include "common/protocol/views/reign_fence.h"
#include "common/protocol/views/view_links.h"

namespace hdps {
namespace {

// The last message is sent so often, once a tick, because it is not acknowledged and a copy may be
// lost.
constexpr int kLeaveRepeats = 5;
constexpr int64_t kSayWaitMs = 10'000;
// A KvGet waits for another rank, so it is repeated more often than a heartbeat.
constexpr uint32_t kKvRetriesPerHeartbeat = 5;

}  // namespace

// Invariant: after `ended`, only repeated answers are sent.
struct MembershipClient::Impl {
  explicit Impl(const MembershipOptions& o)
      : options(o),
        scheduler(o.identity.locator != nullptr ? o.identity.locator
                                                : NewFixedLocator(o.identity.scheduler_address),
                  o.heartbeat_ms) {
    scheduler.Look(&output.dials);
  }

  template <typename Message>
  Frame MakeFrame(const Message& message, uint64_t request_id = 0) const {
    Frame frame = EncodeMessage(message);
    frame.header.view = view == nullptr ? 0 : view->view.value;
    frame.header.request_id = request_id;
    return frame;
  }
  template <typename Message>
  void SendToScheduler(const Message& message, uint64_t request_id = 0) {
    output.frames.push_back({kSchedulerPeer, MakeFrame(message, request_id)});
  }

  void End(int status, const std::string& why) {
    if (ended) return;
    ended = true;
    exit_status = status;
    reason = why;
  }

  // Sends `frame` a few times, then ends.
  void Leave(Frame frame, int status, const std::string& why) {
    if (ended || leaves_left > 0) return;
    leave_frame = std::move(frame);
    leaves_left = kLeaveRepeats;
    leave_status = status;
    leave_reason = why;
    SendLeave();
  }
  void SendLeave() {
    output.frames.push_back({kSchedulerPeer, leave_frame});
    if (--leaves_left == 0) End(leave_status, leave_reason);
  }
  bool leaving() const { return ended || leaves_left > 0; }

  void CountSilence(TimeMs now) {
    scheduler.CountSilence(now);
    const int64_t silence_ms = scheduler.silence_ms();
    if (view == nullptr) {
      if (silence_ms >= int64_t{options.rendezvous_timeout_s} * 1000) {
        End(3, scheduler.WhatIsAwaited());
      } else if (silence_ms >= say_wait_ms) {
        say_wait_ms += kSayWaitMs;
        LOG(WARNING) << scheduler.WhatIsAwaited();
      }
    } else if (silence_ms >= options.scheduler_timeout_ms) {
      End(3, "the scheduler at " + scheduler.address() + " has been silent for " +
                 std::to_string(silence_ms) + " ms; gave it up");
    } else {
      scheduler.DialIfSilent(now, &output.dials);
    }
  }
  void HeardScheduler() {
    scheduler.Heard();
    say_wait_ms = kSayWaitMs;
  }

  void Join() {
    scheduler.Look(&output.dials);
    if (scheduler.address().empty()) return;
    const NodeIdentity& own = options.identity;
    SendToScheduler(JoinRequest{options.role, own.rank, own.own_address, options.job_digest,
                                own.num_servers, own.num_workers, own.host, own.process,
                                own.records});
    HDPS_FAILPOINT("member.join.sent");
  }

  void Beat() {
    Heartbeat heartbeat = progress;
    heartbeat.view = view->view;
    heartbeat.number = ++beats;
    if (trace) trace->OnBeat(beats);
    heartbeat.heard = heard_beat;
    heartbeat.trouble = trouble;
    heartbeat.silent = silent;
    heartbeat.activity = activity;
    if (read_figures) heartbeat.readings = read_figures();
    if (read_loads) heartbeat.loads = read_loads();
    SendToScheduler(heartbeat);
    if (stop_reason) SendToScheduler(StopRequest{*stop_reason});
    if (wish) SendToScheduler(LeaveRequest{wish->reason});
  }

  // A wish to leave: why, and how long the scheduler may take to let this member go.
  struct LeaveWish {
    std::string reason;
    TimeMs within_ms = 0;
    std::optional<TimeMs> since = {};  // The first tick behind it.
  };
  // Leaves now, without having been let go; `how` says when that is.
  void Go(const std::string& how) {
    Leave(MakeFrame(LeaveRequest{wish->reason, true}), kExitFailed,
          "left " + how + ": " + wish->reason);
  }
  void CountWish(TimeMs now) {
    if (!wish->since) wish->since = now;
    if (now - *wish->since < wish->within_ms) return;
    Go("after " + std::to_string(wish->within_ms / 1000) + " s, before it could hand over");
  }

  // Sends a part of the trace if one is due; `all`: whatever is recorded.
  void SendTrace(bool all) {
    while (const auto part = trace ? trace->TakePart(all) : std::nullopt) {
      SendToScheduler(*part);
      if (!all) return;
    }
  }

  std::vector<Member> MembersLikeMe(const View& of) const {
    return options.role == Role::kServer ? of.Holders() : of.workers;
  }
  void On(View& message, const Frame&);
  void On(JoinRefused& message, const Frame&);
  void On(Abort& message, const Frame&) { End(message.exit_status, message.message); }
  void On(HeartbeatAck& message, const Frame&) {
    if (message.number <= beats) heard_beat = std::max(heard_beat, message.number);
    place_empty = message.place_empty;
    if (trace) trace->OnAck(message);
  }
  void On(Command& message, const Frame&);
  void On(KvValue& message, const Frame& frame);

  template <typename Message>
  void Handle(const Frame& frame) {
    Message message;
    const Status status = DecodeMessage(frame, &message);
    if (!status.ok()) {
      LOG(WARNING) << "dropped a frame of the scheduler: " << status.message();
      return;
    }
    if constexpr (requires { message.reign; }) {
      if (!reigns.Admits(message.reign)) return;
    }
    // Before the first view, only a view or a refusal counts as an answer.
    if (view != nullptr) HeardScheduler();
    // Once the end is decided, its reason is final; only lost answers are still repeated.
    if (!leaving() || std::is_same_v<Message, Command>) On(message, frame);
  }

  const MembershipOptions options;
  SchedulerLink scheduler;
  Output output;
  std::shared_ptr<const View> view;
  uint32_t rank = 0;
  Heartbeat progress;
  std::string trouble;
  std::vector<SilentServer> silent;
  Activity activity;
  std::function<std::vector<uint64_t>()> read_figures;  // May be empty.
  std::function<std::vector<ShardLoad>()> read_loads;   // Likewise.
  std::optional<TraceSender> trace;
  ReignFence reigns;
  bool place_empty = false;
  uint64_t beats = 0, heard_beat = 0;  // Numbers of the newest heartbeat, and answered one.
  Repeat join_repeat, beat_repeat;
  int64_t say_wait_ms = kSayWaitMs;  // Silence before the first view that is logged next.
  CommandBook commands;
  std::optional<std::string> stop_reason;
  std::optional<LeaveWish> wish;
  KvRequests kv;

  Frame leave_frame;
  int leaves_left = 0, leave_status = 0;
  std::string leave_reason;
  bool stands_by = false;  // The scheduler has no place for this member, and that was logged.
  bool ended = false;
  int exit_status = 0;
  std::string reason;
};

void MembershipClient::Impl::On(JoinRefused& message, const Frame&) {
  if (view != nullptr) return;  // Sent before this member got its place.
  if (!message.stands_by) return End(message.exit_status, message.message);
  HeardScheduler();
  if (std::exchange(stands_by, true)) return;
  LOG(WARNING) << "this " << RoleName(options.role) << " stands by: " << message.message;
}

void MembershipClient::Impl::On(View& message, const Frame&) {
  if (view != nullptr && message.reign == view->reign && message.view <= view->view) return;
  const std::vector<Member> peers = MembersLikeMe(message);
  const auto self = std::find_if(peers.begin(), peers.end(), [this](const Member& member) {
    return member.peer == options.identity.self;
  });
  if (self == peers.end()) {
    // Before the first view, this is a view of others, and joining goes on.
    if (view == nullptr) return;
    return End(3, "view " + std::to_string(message.view.value) + " of the scheduler at " +
                      scheduler.address() + " no longer contains this " + RoleName(options.role) +
                      ": it was taken for dead");
  }
  rank = self->rank;
  if (view != nullptr) HangUpWhoLeft(*view, message, &output);
  if (view != nullptr && WorkersMeetAnew(*view, message)) kv.Clear();
  DialServers(message, options.role, options.identity.self, &output);
  if (view != nullptr && message.restarts > view->restarts) {
    commands.DropWaiting();
    progress = {};
    silent.clear();
  }
  view = std::make_shared<const View>(std::move(message));
  HDPS_FAILPOINT("member.view.taken");
  HeardScheduler();
}

void MembershipClient::Impl::On(Command& message, const Frame& frame) {
  if (const CommandDone* done = commands.AnswerTo(message.id)) return SendToScheduler(*done);
  // A command needs its view; the scheduler repeats both.
  if (view == nullptr || leaving() || frame.header.view != view->view.value) return;
  message.view = view->view;
  commands.Accept(message);
  HDPS_FAILPOINT("member.command.accepted");
}

void MembershipClient::Impl::On(KvValue& message, const Frame& frame) {
  kv.On(message, frame.header.request_id);
}

MembershipClient::MembershipClient(const MembershipOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

MembershipClient::~MembershipClient() = default;

bool MembershipClient::OnFrame(PeerId from, const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  if (kind >= MessageKind::kPullRequest) return false;
  // Only the scheduler may send messages of the membership.
  if (from != kSchedulerPeer) return true;
  switch (kind) {
    case MessageKind::kJoinRefused:
      impl_->Handle<JoinRefused>(frame);
      return true;
    case MessageKind::kView:
      impl_->Handle<View>(frame);
      return true;
    case MessageKind::kHeartbeatAck:
      impl_->Handle<HeartbeatAck>(frame);
      return true;
    case MessageKind::kCommand:
      impl_->Handle<Command>(frame);
      return true;
    case MessageKind::kAbort:
      impl_->Handle<Abort>(frame);
      return true;
    case MessageKind::kKvValue:
      impl_->Handle<KvValue>(frame);
      return true;
    default:
      return true;
  }
}

void MembershipClient::OnTick(TimeMs now) {
  Impl& impl = *impl_;
  if (impl.ended) return;
  if (impl.leaves_left > 0) return impl.SendLeave();
  impl.CountSilence(now);
  if (impl.wish && !impl.ended) impl.CountWish(now);
  if (impl.leaving()) return;
  if (impl.view == nullptr) {
    if (impl.join_repeat.Due(now, impl.options.heartbeat_ms)) impl.Join();
    return;
  }
  const bool measures = impl.trace && impl.trace->measures();
  if (impl.beat_repeat.Due(now, measures ? 1 : impl.options.heartbeat_ms)) impl.Beat();
  impl.SendTrace(/*all=*/false);
  impl.kv.SendDue(now, impl.options.heartbeat_ms / kKvRetriesPerHeartbeat,
                  [&](const auto& message, uint64_t id) { impl.SendToScheduler(message, id); });
}

Output MembershipClient::TakeOutput() { return std::exchange(impl_->output, Output()); }

std::shared_ptr<const View> MembershipClient::view() const { return impl_->view; }

uint32_t MembershipClient::rank() const {
  CHECK(impl_->view != nullptr) << "no rank before the cluster has formed";
  return impl_->rank;
}

std::vector<Command> MembershipClient::TakeCommands() { return impl_->commands.TakeWaiting(); }

void MembershipClient::Answer(const CommandDone& done) {
  const std::optional<CommandKind> command = impl_->commands.Answer(done);
  if (!command || impl_->leaving()) return;
  impl_->SendTrace(/*all=*/true);  // The job may end with this answer.
  if (*command == CommandKind::kFinish) {
    // No heartbeat follows, and the scheduler keeps the figures of the last one.
    if (impl_->read_figures && impl_->view != nullptr) impl_->Beat();
    return impl_->Leave(impl_->MakeFrame(done), 0, "the job is finished");
  }
  impl_->SendToScheduler(done);
}

void MembershipClient::Report(const Heartbeat& progress) { impl_->progress = progress; }
void MembershipClient::ReportTrouble(const std::string& trouble) { impl_->trouble = trouble; }
void MembershipClient::ReportSilent(std::vector<SilentServer> servers) {
  impl_->silent = std::move(servers);
}

void MembershipClient::ReportActivity(Activity activity) {
  activity.subject = EscapeUntrusted(activity.subject, kSubjectBytesMax);
  if (activity.awaited.size() > kAwaitedMax) activity.awaited.resize(kAwaitedMax);
  impl_->activity = std::move(activity);
}

void MembershipClient::ReportReadings(std::function<std::vector<uint64_t>()> read) {
  impl_->read_figures = std::move(read);
}
void MembershipClient::ReportLoads(std::function<std::vector<ShardLoad>()> read) {
  impl_->read_loads = std::move(read);
}
void MembershipClient::UseRecorder(SpanRecorder& recorder) { impl_->trace.emplace(recorder); }

void MembershipClient::RequestStop(const std::string& reason) {
  if (impl_->stop_reason || impl_->wish || impl_->leaving()) return;
  impl_->stop_reason = reason;
  if (impl_->view == nullptr) {
    return impl_->Leave(impl_->MakeFrame(StopRequest{reason}), 0,
                        "stopped before the cluster had formed: " + reason);
  }
  impl_->SendToScheduler(StopRequest{reason});
}

void MembershipClient::RequestLeave(const std::string& reason, TimeMs within_ms) {
  if (impl_->stop_reason || impl_->wish || impl_->leaving()) return;
  impl_->wish = {reason, within_ms};
  if (impl_->view == nullptr) return impl_->Go("before the cluster had formed");
  impl_->SendToScheduler(LeaveRequest{reason});
}

void MembershipClient::Put(const KvPut& put) { impl_->kv.Put(put); }
void MembershipClient::Get(const KvGet& get) { impl_->kv.Get(get); }
std::vector<KvValue> MembershipClient::TakeKvValues() { return impl_->kv.TakeValues(); }

void MembershipClient::Fail(int exit_status, const std::string& message) {
  impl_->Leave(impl_->MakeFrame(Abort{exit_status, message}), exit_status, message);
}

void MembershipClient::FailAlone(const std::string& message) {
  impl_->Leave(impl_->MakeFrame(Abort{kExitFailed, message, true}), kExitFailed, message);
}

void MembershipClient::Fail(const Status& status) {
  if (RestartMayHelp(status.code())) return FailAlone(status.message());
  Fail(ExitStatusOf(status.code()), status.message());
}

bool MembershipClient::place_empty() const { return impl_->place_empty; }
bool MembershipClient::ended() const { return impl_->ended; }
uint64_t MembershipClient::refused_orders() const { return impl_->reigns.refused(); }
int MembershipClient::exit_status() const { return impl_->exit_status; }
const std::string& MembershipClient::reason() const { return impl_->reason; }

}  // namespace hdps
