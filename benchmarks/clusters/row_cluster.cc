// Starts servers, acts as their scheduler, and stops them.
#include "benchmarks/clusters/row_cluster.h"

#include <algorithm>
#include <utility>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"
#include "server/server_process.h"

namespace hdps {
namespace {

constexpr int64_t kReceiveMs = 20;

template <typename Message>
void SendTo(Transport& transport, PeerId to, ViewId view, const Message& message) {
  Frame frame = EncodeMessage(message);
  frame.header.sender = kSchedulerPeer.value;
  frame.header.view = view.value;
  transport.Send(to, std::move(frame));
}

bool IsOf(const Frame& frame, MessageKind kind) {
  return frame.header.kind == static_cast<uint16_t>(kind);
}

}  // namespace

Result<std::unique_ptr<RowCluster>> RowCluster::Start(const BenchSetting& setting,
                                                      FileSystem& files,
                                                      const RowClusterOptions& options) {
  std::unique_ptr<RowCluster> cluster(new RowCluster());
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(options.job, "benchmark", {}));
  cluster->job_ = std::make_shared<const Job>(std::move(job));
  cluster->shared_ = options.shared;
  if (options.transport == "inproc") cluster->hub_ = NewInprocHub();
  cluster->scheduler_transport_ = cluster->NewTransport(kSchedulerPeer);
  const std::string listen = cluster->hub_ ? "inproc://scheduler" : "tcp://127.0.0.1:0";
  HDPS_ASSIGN_OR_RETURN(cluster->scheduler_address_, cluster->scheduler_transport_->Listen(listen));
  HDPS_RETURN_IF_ERROR(cluster->StartServers(setting, files, options));
  HDPS_RETURN_IF_ERROR(cluster->Form(options));
  RowCluster* const self = cluster.get();
  cluster->scheduler_ = StartThread("scheduler", [self] { self->AnswerHeartbeats(); });
  return cluster;
}

std::unique_ptr<Transport> RowCluster::NewTransport(const PeerName& self) const {
  TransportOptions options;
  options.self = self;
  // Also refuses shared memory that servers offer.
  if (!shared_) options.shared_bytes_per_peer = 0;
  return hub_ ? NewInprocTransport(hub_, options) : NewZmqTransport(options);
}

Status RowCluster::StartServers(const BenchSetting& setting, FileSystem& files,
                                const RowClusterOptions& options) {
  const std::string job_file = JoinPath(setting.scratch, "job.json");
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, job_file, options.job));
  for (uint32_t s = 0; s < options.servers; ++s) {
    const std::string name = "server_" + std::to_string(s);
    std::string listen = "tcp://127.0.0.1:0";
    if (options.transport == "inproc") listen = "inproc://" + name;
    if (options.transport == "ipc") listen = "ipc://" + JoinPath(setting.scratch, name);
    if (hub_ || !options.processes) {
      threads_.push_back(StartThread("server", [this, listen, &files, threads = setting.threads] {
        RunServer(listen, files, threads);
      }));
      continue;
    }
    processes_.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{Beside(setting.program, "hdps-server"), "--job=" + job_file,
                                 "--scheduler=" + scheduler_address_, "--listen=" + listen,
                                 "--log=warning", "--threads=" + std::to_string(setting.threads)},
        JoinPath(setting.scratch, name + ".log")));
  }
  return Status();
}

void RowCluster::RunServer(const std::string& address, FileSystem& files, int threads) const {
  ServerProcessOptions server;
  server.node.job = job_;
  const PeerName name = NewPeerName();
  server.node.identity.self = name.peer;
  server.node.identity.scheduler_address = scheduler_address_;
  const std::unique_ptr<Transport> transport = NewTransport(name);
  const Result<std::string> listening = transport->Listen(address);
  if (!listening.ok()) return;  // The cluster will miss it.
  server.node.identity.own_address = *listening;
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
  RunServerProcess(server, *transport, *clock, files, *executor);
}

Status RowCluster::Form(const RowClusterOptions& options) {
  View view;
  view.view = {1};
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  constexpr int64_t kPatienceMs = 20000;
  const int64_t until = clock->NowMs() + kPatienceMs;
  while (view.servers.size() < options.servers) {
    if (clock->NowMs() > until) {
      return {Code::kUnavailable, "benchmark: only " + std::to_string(view.servers.size()) +
                                      " of " + std::to_string(options.servers) +
                                      " servers joined; is hdps-server beside hdps-bench?"};
    }
    PeerId from;
    Frame frame;
    JoinRequest join;
    if (!scheduler_transport_->Receive(kReceiveMs, &from, &frame)) continue;
    if (!IsOf(frame, MessageKind::kJoinRequest) || !DecodeMessage(frame, &join).ok()) continue;
    const bool known = std::any_of(view.servers.begin(), view.servers.end(),
                                   [&](const Member& member) { return member.peer == from; });
    if (known) continue;
    view.servers.push_back({from, static_cast<uint32_t>(view.servers.size()), join.address});
  }
  for (uint32_t w = 0; w < options.workers; ++w) {
    view.workers.push_back({worker_names_.emplace_back(NewPeerName()).peer, w, ""});
  }
  const uint32_t shards = job_->cluster.shards;
  for (uint32_t s = 0; s < shards; ++s) {  // As the scheduler assigns them.
    view.shards.owner.push_back({s * options.servers / shards});
  }
  view_ = std::make_shared<const View>(std::move(view));
  for (const Member& server : view_->servers)
    SendTo(*scheduler_transport_, server.peer, view_->view, *view_);
  return Status();
}

void RowCluster::AnswerHeartbeats() {
  bool told = false;
  size_t gone = 0;
  while (gone < view_->servers.size()) {
    if (stop_ && !told) {
      told = true;
      Command finish;
      finish.id = {1};
      finish.command = CommandKind::kFinish;
      for (const Member& server : view_->servers)
        SendTo(*scheduler_transport_, server.peer, view_->view, finish);
    }
    PeerId from;
    Frame frame;
    if (!scheduler_transport_->Receive(kReceiveMs, &from, &frame)) continue;
    if (IsOf(frame, MessageKind::kHeartbeat)) {
      SendTo(*scheduler_transport_, from, view_->view, HeartbeatAck{view_->view});
    } else if (IsOf(frame, MessageKind::kJoinRequest)) {
      SendTo(*scheduler_transport_, from, view_->view, *view_);
    } else if (IsOf(frame, MessageKind::kCommandDone)) {
      ++gone;
    }
  }
}

RowCluster::~RowCluster() {
  stop_ = true;
  if (scheduler_) scheduler_->Join();
  if (scheduler_) {
    for (const auto& process : processes_) process->Wait();
  }
  for (const auto& thread : threads_) thread->Join();
}

double RowCluster::CpuSeconds() const {
  double seconds = ProcessCpuSeconds();
  for (const auto& process : processes_) seconds += process->CpuSeconds();
  return seconds;
}

Result<std::unique_ptr<Transport>> RowCluster::NewWorkerTransport(uint32_t worker) {
  std::unique_ptr<Transport> transport = NewTransport(worker_names_[worker]);
  for (const Member& server : view_->servers) {
    HDPS_RETURN_IF_ERROR(transport->Connect(server.peer, server.address));
  }
  return transport;
}

Result<std::unique_ptr<RowClient>> RowClient::Make(RowCluster& cluster, uint32_t worker) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, cluster.NewWorkerTransport(worker));
  PsClientOptions options;
  options.self = cluster.view()->workers[worker].peer;
  std::unique_ptr<RowClient> client(new RowClient(options, std::move(transport)));
  client->client_.OnView(cluster.view());
  return client;
}

Ticket RowClient::Start(std::vector<ServerRequest> requests) {
  client_.OnTick(clock_->NowMs());  // Expires requests by their start time.
  const Ticket ticket{next_ticket_++};
  client_.Start(ticket, std::move(requests));
  SendAll();
  return ticket;
}

void RowClient::SendAll() {
  for (Outgoing& outgoing : client_.TakeOutgoing()) {
    transport_->Send(outgoing.to, std::move(outgoing.frame));
  }
}

Result<std::vector<Frame>> RowClient::Wait(Ticket ticket) {
  while (true) {
    for (TicketResult& result : client_.TakeResults()) results_.push_back(std::move(result));
    const auto found =
        std::find_if(results_.begin(), results_.end(),
                     [&](const TicketResult& result) { return result.ticket == ticket; });
    if (found != results_.end()) {
      const TicketResult result = std::move(*found);
      results_.erase(found);
      if (!result.status.ok()) return result.status;
      return result.replies;
    }
    PeerId from;
    Frame frame;
    if (transport_->Receive(kReceiveMs, &from, &frame)) client_.OnFrame(from, frame);
    client_.OnTick(clock_->NowMs());
    SendAll();
  }
}

}  // namespace hdps
