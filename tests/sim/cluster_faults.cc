// Injects the faults of a cluster, and acts as its launcher.
#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/protocol/message_frames.h"
#include "tests/sim/cluster.h"

namespace hdps::sim {

void Cluster::AddOutages() {
  Random random(MixBits(options_.seed ^ 0x0a7u));
  for (uint32_t i = 0; i < options_.outages; ++i) {
    PeerId peer = kSchedulerPeer;
    const uint64_t members = 1 + options_.num_servers + options_.num_workers;
    const uint64_t who = random.Below(members + 1);
    if (who == members) {
      peer = kEveryone;
    } else if (who > options_.num_servers) {
      peer = PeerOf(Role::kWorker, static_cast<uint32_t>(who - options_.num_servers - 1));
    } else if (who > 0) {
      peer = PeerOf(Role::kServer, static_cast<uint32_t>(who - 1));
    }
    const auto from = static_cast<TimeMs>(random.Below(3000));
    network_.AddOutage({peer, from, from + 100 + static_cast<TimeMs>(random.Below(3000))});
  }
}

void Cluster::AddKills() {
  Random random(MixBits(options_.seed ^ 0xdeadu));
  for (uint32_t i = 0; i < options_.kills; ++i) {
    Fault kill;
    kill.at = static_cast<TimeMs>(random.Below(i == 0 ? 2500 : 8000));
    if (i > 0) kill.at += faults_.back().at + options_.kill_gap_ms;
    const uint64_t others = options_.kill_servers_only ? 0 : options_.num_workers + 1;
    const uint64_t who = random.Below(options_.num_servers + others);
    kill.role = who < options_.num_servers ? Role::kServer : Role::kWorker;
    kill.rank = static_cast<uint32_t>(who % options_.num_servers);
    if (kill.role == Role::kWorker) kill.rank = static_cast<uint32_t>(who) - options_.num_servers;
    if (kill.role == Role::kWorker && kill.rank == options_.num_workers)
      kill = {.at = kill.at, .role = Role::kScheduler};
    faults_.push_back(kill);
    for (uint32_t s = 0; s < options_.num_servers && options_.cut_copies_ms > 0; ++s) {
      if (kill.role != Role::kServer || s == kill.rank) continue;
      network_.AddCut({PeerOf(Role::kServer, kill.rank), PeerOf(Role::kServer, s),
                       kill.at - options_.cut_copies_ms, kill.at});
    }
  }
}

void Cluster::AddCuts() {
  if (options_.cut_off_at < 0) return;
  const TimeMs at = options_.cut_off_at, dead = options_.dead_after_ms;
  network_.AddCut({PeerOf(Role::kServer, 0), kSchedulerPeer, at, at + 10 * dead});
  network_.AddCut({PeerOf(Role::kWorker, 0), kSchedulerPeer, at + dead - 700, at + dead + 1300});
}

void Cluster::AddFault(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kPartition:
      return network_.AddPartition(
          {fault.places, fault.at, fault.at + fault.lasts, fault.out, fault.in});
    case Fault::Kind::kSlowDisk:
    case Fault::Kind::kFullDisk:
      return disk_faults_.push_back(fault);
    default:
      faults_.push_back(fault);
  }
}

void Cluster::Supervise() {
  const TimeMs now = network_.now();
  if (ended_by_fault_) return;
  if (scheduler_ == nullptr && scheduler_starts_at_ && *scheduler_starts_at_ <= now) {
    StartScheduler(/*same_run=*/true);
  } else {
    TellToStop();
  }
  const bool over = scheduler_ != nullptr && scheduler_->done();
  // Copies exist once the cluster has formed.
  if (options_.kills > 0 && options_.replicas > 0 && newest_view_.view.value == 0 &&
      !faults_.empty()) {
    faults_.front().at = std::max(faults_.front().at, now + 1);
  }
  while (!faults_.empty() && faults_.front().at <= now && !over) {
    const Fault fault = std::move(faults_.front());
    faults_.erase(faults_.begin());
    Do(fault);
  }
  if (!over && !ended_by_fault_) StartWhoIsMissing();
}

// Also tells a scheduler that was started in the drain.
void Cluster::TellToStop() {
  if (!launcher_.draining() || scheduler_ == nullptr || std::exchange(scheduler_told_, true))
    return;
  reached_ = newest_view_.workers.empty() ? 0 : std::numeric_limits<Clock>::max();
  for (const Member& worker : newest_view_.workers) {
    const auto told = clocks_told_.find(worker.peer);
    reached_ = std::min(reached_, told == clocks_told_.end() ? 0 : told->second);
  }
  scheduler_->RequestStop("asked to");
}

void Cluster::StartWhoIsMissing() {
  const TimeMs now = network_.now();
  for (const Place& who : launcher_.wanted()) {
    const auto [role, rank] = who;
    const Node* const node = NodeOf(role, rank);
    if (node != nullptr && !node->done()) continue;
    const auto status = node == nullptr ? std::nullopt : std::optional(node->exit_status());
    if (!launcher_.StartsNow(who, status, now)) continue;
    restarted_ += peers_.contains(who);
    Kill(role, rank);
    role == Role::kServer ? StartServer(rank) : StartWorker(rank);
  }
}

void Cluster::Do(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kPowerLoss: {
      Kill(fault.role, fault.rank);
      const auto place = peers_.find({fault.role, fault.rank});
      const bool scheduler = fault.role == Role::kScheduler;
      if (!scheduler && place == peers_.end()) return;
      disk_.LosePower(PlaceOf(scheduler ? kSchedulerPeer : place->second), fault.disk_too,
                      &chance_);
      ++power_lost_;
      return;
    }
    case Fault::Kind::kLoss:
      launcher_.Forget({fault.role, fault.rank});
      return Kill(fault.role, fault.rank);
    case Fault::Kind::kStandstill:
      if (NodeOf(fault.role, fault.rank) == nullptr) return;
      return network_.HoldUp(
          fault.role == Role::kScheduler ? kSchedulerPeer : PeerOf(fault.role, fault.rank),
          fault.lasts);
    case Fault::Kind::kScale:
      return Scale(fault);
    case Fault::Kind::kJoin:
      return Join(fault);
    case Fault::Kind::kDrain:
      stop_asked_ = true;
      return launcher_.Stop();
    case Fault::Kind::kLeave:
      return Leave(fault);
    case Fault::Kind::kStop:
      return Stop(fault);
    case Fault::Kind::kEnd:
      return EndAll();
    default:
      return Kill(fault.role, fault.rank);
  }
}

void Cluster::Kill(Role role, uint32_t rank) {
  if (NodeOf(role, rank) == nullptr) return;
  if (role == Role::kScheduler) return KillScheduler();
  network_.Detach(PeerOf(role, rank));
  if (role == Role::kWorker) return workers_[rank].node.reset();
  Server& server = servers_[rank];
  // The process may have been in the middle of a file.
  server.files->DieAfter(chance_.Below(12));
  server.executor->Finish();
  server.node.reset();
}

void Cluster::KillServer(uint32_t rank) { Kill(Role::kServer, rank); }
void Cluster::KillWorker(uint32_t rank) { Kill(Role::kWorker, rank); }

void Cluster::LoseServer(uint32_t rank) {
  Do({.kind = Fault::Kind::kLoss, .role = Role::kServer, .rank = rank});
}

void Cluster::KillScheduler() {
  network_.Detach(kSchedulerPeer);
  scheduler_.reset();
  scheduler_starts_at_ = launcher_.SchedulerKilled(network_.now());
}

void Cluster::DoLater(const Fault& fault) {
  constexpr TimeMs kAgainMs = 300;
  Fault later = fault;
  later.at = network_.now() + kAgainMs;
  faults_.insert(std::ranges::upper_bound(faults_, later.at, {}, &Fault::at), later);
}

// Waits until all members are there. Otherwise this one could take the rank of a later one, which
// would then be refused.
void Cluster::Join(const Fault& fault) {
  if (newest_view_.view.value == 0) return DoLater(fault);
  const Place who = NewPlace(fault.role, fault.asks);
  if (fault.other_job) of_other_job_.insert(who);
  launcher_.Want(who, network_.now(), /*ours=*/false, /*returns=*/false);
}

// A member without a view just leaves, which is another test.
void Cluster::Stop(const Fault& fault) {
  const bool server = fault.role == Role::kServer;
  Node* const node = server ? static_cast<Node*>(servers_[fault.rank].node.get())
                            : workers_[fault.rank].node.get();
  if (node == nullptr || !clocks_sent_.contains(PeerOf(fault.role, fault.rank))) return;
  stop_asked_ = true;
  node->RequestStop("asked to");
}

// A process that has ended is started again by its launcher.
void Cluster::Leave(const Fault& fault) {
  if (fault.role == Role::kScheduler) {
    if (scheduler_ == nullptr) return;
    scheduler_->RequestLeave("asked to", fault.lasts);
    if (scheduler_->done() && scheduler_->exit_status() == 3) KillScheduler();
    return;
  }
  const bool server = fault.role == Role::kServer;
  Node* const node = server ? static_cast<Node*>(servers_[fault.rank].node.get())
                            : workers_[fault.rank].node.get();
  if (node != nullptr) node->RequestLeave("asked to", fault.lasts);
}

void Cluster::EndAll() {
  ended_by_fault_ = true;
  Kill(Role::kScheduler, 0);
  for (uint32_t s = 0; s < servers_.size(); ++s) Kill(Role::kServer, s);
  for (uint32_t w = 0; w < workers_.size(); ++w) Kill(Role::kWorker, w);
}

void Cluster::Scale(const Fault& fault) {
  if (scheduler_ == nullptr) return DoLater(fault);
  ScaleRequest request;
  request.servers = fault.servers;
  request.workers = fault.workers;
  constexpr uint64_t kAskers = 900;
  scheduler_->OnFrame({kAskers + ++asked_}, EncodeMessage(request));
  const TimeMs starts_at = network_.now() + fault.lasts;
  for (int32_t s = 0; s < fault.servers; ++s) {
    launcher_.Want(NewPlace(Role::kServer, -1), starts_at, /*ours=*/false);
  }
  for (int32_t w = 0; w < fault.workers; ++w) {
    launcher_.Want(NewPlace(Role::kWorker, -1), starts_at, /*ours=*/false);
  }
}

}  // namespace hdps::sim
