// Builds a cluster from a seed and runs it.
#include "tests/sim/cluster.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps::sim {
namespace {

constexpr char kSchedulerAddress[] = "ipc:///sim/scheduler";
constexpr char kOut[] = "/out";

std::shared_ptr<const Job> MakeJob(const ClusterOptions& options) {
  auto job = std::make_shared<Job>();
  job->name = "tally";
  job->tables = TallyTables();
  job->train.mode = options.mode;
  job->train.staleness_bound = options.staleness_bound;
  job->train.batch_size = options.num_workers;
  job->train.epochs = options.epochs;
  job->train.lookahead = options.lookahead;
  job->train.eval_each_epoch = false;
  job->parallel.gradients_mean = false;  // Whole numbers stay whole.
  job->checkpoint.every_steps = options.checkpoint_every;
  job->checkpoint.delta_every_steps = options.delta_every;
  ClusterSpec& cluster = job->cluster;
  cluster.shards = 8;
  cluster.heartbeat_ms = 200;
  cluster.dead_after_ms = static_cast<uint32_t>(options.dead_after_ms);
  cluster.scheduler_timeout_s = 20;
  cluster.replace_after_s = options.replace_after_s;
  cluster.replicas = options.replicas;
  cluster.request_retry_ms = 60;
  return job;
}

}  // namespace

ClusterOptions DrawCluster(uint64_t seed, Mode mode) {
  Random random(MixBits(seed) ^ 0x51u);
  ClusterOptions options;
  options.seed = seed;
  options.mode = mode;
  if (mode == Mode::kSsp) options.staleness_bound = 1 + static_cast<uint32_t>(random.Below(3));
  options.num_servers = 1 + static_cast<uint32_t>(random.Below(3));
  options.weather.loss_percent = static_cast<uint32_t>(random.Below(3)) * 12;
  options.weather.repeat_percent = static_cast<uint32_t>(random.Below(3)) * 12;
  options.weather.delay_ms_max = 1 + static_cast<TimeMs>(random.Below(40));
  options.weather.slow_percent = static_cast<uint32_t>(random.Below(4));
  options.weather.damage_percent = static_cast<uint32_t>(random.Below(3));
  options.outages = random.Below(3) == 0 ? 1 + static_cast<uint32_t>(random.Below(2)) : 0;
  options.slow_worker = random.Below(3) == 0 ? 0 : -1;
  options.lookahead = static_cast<uint32_t>(random.Below(4));
  // A tally counts less than 256, which every format holds exactly.
  options.wire = static_cast<DType>(seed % 3);
  return options;
}

Cluster::Cluster(const ClusterOptions& options, FileSystem* files)
    : options_(options),
      job_(MakeJob(options)),
      files_(files),
      executor_(NewInlineExecutor()),
      tally_({options.mode, options.staleness_bound, options.num_workers, options.cut_off_at >= 0}),
      network_(MixBits(options.seed) + options.incarnation, options.weather) {
  network_.OnSend([this](PeerId from, PeerId to, Frame* frame) { Spy(from, to, *frame); });
  StartScheduler();
  servers_.resize(options.num_servers);
  workers_.resize(options.num_workers);
  for (uint32_t s = 0; s < options.num_servers; ++s) StartServer(s);
  for (uint32_t w = 0; w < options.num_workers; ++w) StartWorker(w);
  AddOutages();
  AddKills();
  AddCuts();
}

PeerId Cluster::NewPeer(Role role, uint32_t rank) {
  const uint64_t kind = role == Role::kServer ? 100 : 200;
  return peers_[{role, rank}] = {(options_.incarnation + 1) * 1'000'000 + started_++ * 1000 + kind +
                                 rank};
}

void Cluster::StartScheduler() {
  SchedulerOptions scheduler;
  scheduler.job = job_;
  scheduler.out = kOut;
  scheduler.num_servers = options_.num_servers;
  scheduler.num_workers = options_.num_workers;
  scheduler.command_retry_ms = 100;
  ProgressListener voice;
  voice.notice = [this](const std::string& line) {
    unconfirmed_ += line.find("has not confirmed the end") != std::string::npos;
    went_back_ += line.find("the job goes on from") == 0;
    scaled_ += line.find("the job goes on with") == 0;
    promoted_ += line.find("no step is lost") != std::string::npos;
    taken_over_ += line.find("the scheduler is back") == 0;
    VLOG(1) << network_.now() << " " << line;
  };
  Result<std::unique_ptr<SchedulerNode>> made = SchedulerNode::Make(scheduler, voice, *files_);
  CHECK(made.ok()) << made.status().message();
  scheduler_ = *std::move(made);
  network_.Attach(kSchedulerPeer, kSchedulerAddress, scheduler_.get());
}

void Cluster::StartServer(uint32_t rank) {
  ServerNodeOptions server;
  server.job = job_;
  server.identity.self = NewPeer(Role::kServer, rank);
  server.identity.scheduler_address = kSchedulerAddress;
  server.identity.own_address = "ipc:///sim/server_" + std::to_string(rank);
  server.identity.rank = static_cast<int32_t>(rank);
  server.sabotage = options_.server_sabotage;
  servers_[rank] = std::make_unique<ServerNode>(*files_, *executor_, server);
  network_.Attach(server.identity.self, server.identity.own_address, servers_[rank].get());
}

void Cluster::StartWorker(uint32_t rank) {
  ScriptOptions script;
  script.seed = MixBits(options_.seed * 64 + rank);
  script.steps_per_epoch = options_.steps_per_epoch;
  const TimeMs slowness = options_.slow_worker == static_cast<int32_t>(rank) ? 5 : 1;
  script.compute_ms_min = options_.compute_ms_min * slowness;
  script.compute_ms_max = options_.compute_ms_max * slowness;
  script.await_push = options_.seed % 2 == 0;
  script.pull = options_.pushes_at_once == 0;
  script.pushes_at_once = std::max(options_.pushes_at_once, 1u);
  script.advance_early = options_.advance_early;
  script.lookahead = options_.lookahead;
  script.wire = options_.wire;
  script.repairs = options_.mode == Mode::kSync;
  script.strange_lists = options_.seed % 5 == 4;
  script.since_late = options_.since_late;
  if (rank == 0) script.mistaken_at = options_.mistaken_at;
  Worker& worker = workers_[rank];
  worker.node.reset();
  worker.peer = NewPeer(Role::kWorker, rank);
  worker.compute = std::make_unique<ScriptedWorker>(script, &tally_);
  WorkerNodeOptions node;
  node.job = job_;
  node.identity.self = worker.peer;
  node.identity.scheduler_address = kSchedulerAddress;
  node.identity.rank = static_cast<int32_t>(rank);
  worker.node = std::make_unique<WorkerNode>(node, worker.compute.get());
  worker.compute->Connect(worker.node.get());
  ScriptedWorker* compute = worker.compute.get();
  network_.Attach(worker.peer, "", worker.node.get(),
                  [compute](TimeMs now) { compute->OnTime(now); });
}

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
    Kill kill;
    kill.at = static_cast<TimeMs>(random.Below(i == 0 ? 2500 : 8000));
    if (i > 0) kill.at += kills_.back().at + options_.kill_gap_ms;
    const uint64_t others = options_.kill_servers_only ? 0 : options_.num_workers + 1;
    const uint64_t who = random.Below(options_.num_servers + others);
    kill.role = who < options_.num_servers ? Role::kServer : Role::kWorker;
    kill.rank = static_cast<uint32_t>(who % options_.num_servers);
    if (kill.role == Role::kWorker) kill.rank = static_cast<uint32_t>(who) - options_.num_servers;
    if (kill.role == Role::kWorker && kill.rank == options_.num_workers)
      kill = {kill.at, Role::kScheduler, 0};
    kills_.push_back(kill);
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

void Cluster::Supervise() {
  const TimeMs now = network_.now();
  if (scheduler_ == nullptr && scheduler_starts_at_ <= now) StartScheduler();
  const bool over = scheduler_ != nullptr && scheduler_->done();
  // Copies are there once the cluster has formed.
  if (options_.replicas > 0 && newest_view_.view.value == 0 && !kills_.empty()) {
    kills_.front().at = std::max(kills_.front().at, now + 1);
  }
  while (!kills_.empty() && kills_.front().at <= now && !over) {
    const Kill kill = kills_.front();
    kills_.erase(kills_.begin());
    if (kill.role == Role::kScheduler && scheduler_ != nullptr) KillScheduler();
    if (kill.role == Role::kServer && servers_[kill.rank] != nullptr) KillServer(kill.rank);
    if (kill.role == Role::kWorker && workers_[kill.rank].node != nullptr) KillWorker(kill.rank);
  }
  if (options_.restart_after_ms == 0 || over) return;
  for (const auto& [who, peer] : std::map(peers_)) {
    const auto& [role, rank] = who;
    const Node* node = role == Role::kServer ? static_cast<const Node*>(servers_[rank].get())
                                             : workers_[rank].node.get();
    if (node != nullptr && (!node->done() || node->exit_status() != 3)) continue;
    const TimeMs due = restart_at_.try_emplace(who, now + options_.restart_after_ms).first->second;
    if (now < due) continue;
    restart_at_.erase(who);
    if (node != nullptr) network_.Detach(peer);
    ++restarted_;
    role == Role::kServer ? StartServer(rank) : StartWorker(rank);
  }
}

void Cluster::Spy(PeerId from, PeerId to, const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  if (kind == MessageKind::kView) {
    View view;
    CHECK(DecodeMessage(frame, &view).ok());
    if (view.view.value > newest_view_.view.value) newest_view_ = view;
  } else if (kind == MessageKind::kCommand) {
    Command command;
    CHECK(DecodeMessage(frame, &command).ok());
    loaded_ = loaded_ || command.command == CommandKind::kLoad;
    // Whoever has told his is asked again in a later view, or the job was done with it.
    const bool load = command.command == CommandKind::kLoad;
    const bool digest = command.command == CommandKind::kDigest;
    if ((load || digest) && frame.header.view > digest_view_) {
      digest_view_ = frame.header.view;
      digest_commands_.clear();
      digests_.clear();
    }
    if (digest && frame.header.view == digest_view_) digest_commands_[to] = command.id;
  } else if (kind == MessageKind::kCommandDone && !digest_commands_.empty()) {
    CommandDone done;
    CHECK(DecodeMessage(frame, &done).ok());
    const auto asked = digest_commands_.find(from);
    if (asked != digest_commands_.end() && asked->second == done.id) digests_[from] = done;
  }
}

std::vector<const Node*> Cluster::nodes() const {
  std::vector<const Node*> nodes;
  if (scheduler_ != nullptr) nodes.push_back(scheduler_.get());
  for (const auto& server : servers_) {
    if (server != nullptr) nodes.push_back(server.get());
  }
  for (const Worker& worker : workers_) {
    if (worker.node != nullptr) nodes.push_back(worker.node.get());
  }
  return nodes;
}

bool Cluster::AllDone() const {
  if (scheduler_ == nullptr || !scheduler_->done()) return false;
  const std::vector<const Node*> all = nodes();
  return std::all_of(all.begin(), all.end(), [](const Node* node) { return node->done(); });
}

void Cluster::KillServer(uint32_t rank) {
  network_.Detach(PeerOf(Role::kServer, rank));
  servers_[rank].reset();
}

void Cluster::LoseServer(uint32_t rank) {
  KillServer(rank);
  peers_.erase({Role::kServer, rank});
}

void Cluster::KillScheduler() {
  network_.Detach(kSchedulerPeer);
  scheduler_.reset();
  scheduler_starts_at_ = network_.now() + options_.restart_after_ms;
}

void Cluster::AddServer() {
  ScaleRequest more;
  more.servers = 1;
  if (scheduler_ != nullptr) scheduler_->OnFrame({77}, EncodeMessage(more));
  servers_.emplace_back();
  StartServer(static_cast<uint32_t>(servers_.size() - 1));
}

void Cluster::DismissServer() {
  ScaleRequest fewer;
  fewer.servers = -1;
  if (scheduler_ != nullptr) scheduler_->OnFrame({77}, EncodeMessage(fewer));
}

void Cluster::KillWorker(uint32_t rank) {
  network_.Detach(PeerOf(Role::kWorker, rank));
  workers_[rank].node.reset();
}

Outcome Cluster::Run(TimeMs until) {
  const bool all_done = network_.RunUntil(until, [this] {
    Supervise();
    return AllDone();
  });
  return Judge(all_done);
}

void Cluster::RequestStop(uint64_t seed) {
  Random random(MixBits(seed ^ 0x570bu));
  // A member that has not seen the first view yet simply leaves, which is another story.
  const bool all_in = std::all_of(workers_.begin(), workers_.end(),
                                  [](const Worker& worker) { return worker.compute->clock() > 0; });
  const uint64_t who = all_in ? random.Below(3) : 0;
  if (who == 0) scheduler_->RequestStop("asked to");
  if (who == 1) servers_[random.Below(servers_.size())]->RequestStop("asked to");
  if (who == 2) workers_[random.Below(workers_.size())].node->RequestStop("asked to");
}

}  // namespace hdps::sim
