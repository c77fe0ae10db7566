// Passes messages between the cluster and the compute side.
#include "worker/role/worker_node.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/exit_status.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/process/member_options.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"
#include "common/telemetry/process_meters.h"

namespace hdps {
namespace {

// Longest time between the replacement of a server and the interruption of workers that wait for
// it.
constexpr uint32_t kReplacementStartsS = 30;

constexpr size_t kSent = 0, kReceived = 1;  // Places among the labels of traffic.
static_assert(kDirectionLabels[kSent] == "sent" && kDirectionLabels[kReceived] == "received");

PsClientOptions ClientOf(const WorkerNodeOptions& options) {
  const ClusterSpec& cluster = options.job->cluster;
  PsClientOptions client;
  client.self = options.identity.self;
  client.request_retry_ms = cluster.request_retry_ms;
  // Requests to a lost server wait while it is being replaced.
  client.request_timeout_s =
      std::max(cluster.request_timeout_s, cluster.replace_after_s + kReplacementStartsS);
  if (cluster.memory_limit > 0) {  // Requests also wait while a server waits for disk space.
    client.request_timeout_s =
        std::max(client.request_timeout_s, options.job->checkpoint.retry_s + kReplacementStartsS);
  }
  client.request_timeout_s += MessagesAwaitedS(options.job->data);
  client.pushes_in_flight_max = cluster.pushes_in_flight_max;
  client.recorder = options.recorder;
  client.probe_ms = cluster.heartbeat_ms;
  // The rest of dead_after_ms is left for its answer.
  client.dial_anew_ms = cluster.dead_after_ms / 3 * 2;
  return client;
}

}  // namespace

WorkerNode::WorkerNode(const WorkerNodeOptions& options, ComputeSide* compute)
    : compute_(compute),
      meters_(compute->meters()),
      own_process_(options.identity.process.empty() ? nullptr : NewPosixFileSystem()),
      dead_after_ms_(options.job->cluster.dead_after_ms),
      membership_(MembershipOf(Role::kWorker, options.identity, *options.job)),
      client_(ClientOf(options)) {
  if (options.recorder != nullptr) membership_.UseRecorder(*options.recorder);
  if (meters_ != nullptr) membership_.ReportReadings([this] { return ReadFigures(); });
}

Readings WorkerNode::ReadFigures() {
  if (own_process_ != nullptr) SetProcess(ReadProcessUsage(*own_process_), meters_);
  meters_->SetTotal(FigureNamed("hdps_worker_refused_orders_total"), membership_.refused_orders());
  return meters_->Read();
}

void WorkerNode::CountTraffic(size_t direction, const Frame& frame) {
  if (meters_ == nullptr) return;
  size_t bytes = sizeof(FrameHeader) + frame.envelope.size();
  for (const Buffer& section : frame.sections) bytes += section.size();
  meters_->Add(FigureNamed("hdps_worker_traffic_bytes_total"), bytes, direction);
}

void WorkerNode::OnFrame(PeerId from, Frame frame) {
  if (membership_.OnFrame(from, frame)) return Deliver();
  CountTraffic(kReceived, frame);
  if (!client_.OnFrame(from, frame)) {
    const auto kind = static_cast<MessageKind>(frame.header.kind);
    LOG_EVERY_N(WARNING, 100) << "a worker has no use for a " << MessageKindName(kind) << " from "
                              << from.value;
  }
  Deliver();
}

void WorkerNode::OnTick(TimeMs now) {
  client_.OnTick(now, /*deadlines_stand=*/place_empty());
  membership_.ReportSilent(client_.SilentFor(dead_after_ms_));
  membership_.ReportActivity(CurrentActivity());
  membership_.ReportTrouble(compute_->Trouble());
  membership_.OnTick(now);
  Deliver();
}

Activity WorkerNode::CurrentActivity() const {
  Activity activity = compute_->CurrentActivity();
  if (activity.wait_reason == WaitReason::kMembers) {
    activity.awaited = client_.Unanswered();
  } else if (activity.wait_reason == WaitReason::kGroup && view_ != nullptr) {
    for (const Member& worker : view_->workers) {
      if (worker.rank == membership_.rank()) continue;
      activity.awaited.push_back({worker.peer, activity.for_ms});
    }
  }
  return activity;
}

Output WorkerNode::TakeOutput() {
  Deliver();  // Requests of the compute side since the last frame may have results already.
  Output output = membership_.TakeOutput();
  for (Dial& dial : client_.TakeDials()) output.dials.push_back(std::move(dial));
  std::vector<Outgoing> requests = client_.TakeOutgoing();
  for (const Outgoing& request : requests) CountTraffic(kSent, request.frame);
  output.frames.insert(output.frames.end(), std::make_move_iterator(requests.begin()),
                       std::make_move_iterator(requests.end()));
  return output;
}

void WorkerNode::Deliver() {
  for (bool more = true; more && !ended_;) {
    more = false;
    std::shared_ptr<const View> view = membership_.view();
    if (view != nullptr && (view_ == nullptr || view_->view < view->view)) {
      // Requests from before the job went back to a checkpoint must not reach the servers now.
      if (view_ != nullptr && view_->restarts != view->restarts) client_.CancelAll();
      view_ = std::move(view);
      client_.OnView(view_);
      compute_->OnView(view_, WorkerId{membership_.rank()});
      more = true;
    }
    for (const Command& command : membership_.TakeCommands()) {
      compute_->OnCommand(command);
      more = true;
    }
    for (TicketResult& result : client_.TakeResults()) {
      compute_->OnReplies(result.ticket, std::move(result.status), std::move(result.replies));
      more = true;
    }
    for (const KvValue& value : membership_.TakeKvValues()) {
      compute_->OnKvValue(value);
      more = true;
    }
    if (membership_.ended()) {
      ended_ = true;
      client_.CancelAll();
      compute_->OnEnd(StatusOf({membership_.exit_status(), membership_.reason()}));
    }
  }
}

bool WorkerNode::done() const { return membership_.ended(); }
int WorkerNode::exit_status() const { return membership_.exit_status(); }
const std::string& WorkerNode::exit_reason() const { return membership_.reason(); }

void WorkerNode::Start(Ticket ticket, std::vector<ServerRequest> requests,
                       std::vector<ServerRequest> then) {
  if (membership_.ended()) return;  // OnEnd follows, so no reply will come.
  client_.Start(ticket, std::move(requests), std::move(then));
}
void WorkerNode::Cancel(Ticket ticket) { client_.Cancel(ticket); }
void WorkerNode::Answer(const CommandDone& done) { membership_.Answer(done); }
void WorkerNode::Report(const Heartbeat& progress) { membership_.Report(progress); }
void WorkerNode::Put(const KvPut& put) { membership_.Put(put); }
void WorkerNode::Get(const KvGet& get) { membership_.Get(get); }
bool WorkerNode::place_empty() const { return membership_.place_empty(); }
void WorkerNode::Fail(Status status) { membership_.Fail(status); }
void WorkerNode::RequestStop(const std::string& reason) { membership_.RequestStop(reason); }
void WorkerNode::RequestLeave(const std::string& reason, TimeMs within_ms) {
  membership_.RequestLeave(reason, within_ms);
}

}  // namespace hdps
