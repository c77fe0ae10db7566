// Builds a cluster from a seed and runs it.
#include "tests/sim/cluster.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/step_lists.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"

namespace hdps::sim {
namespace {

// Is true if a primary may be replaced before it or a worker has heard of it.
bool MayBeReplaced(const ClusterOptions& options) {
  return options.cut_off_at >= 0 || (options.replicas > 0 && !options.faults.empty());
}

std::shared_ptr<const Job> OtherJobThan(ClusterOptions options) {
  ++options.epochs;
  return JobOf(options);
}

}  // namespace

std::shared_ptr<const Job> JobOf(const ClusterOptions& options) {
  auto job = std::make_shared<Job>();
  job->name = "tally";
  job->tables = TallyTables(options.rows_leave);
  job->train.mode = options.mode;
  job->train.staleness_bound = options.staleness_bound;
  job->train.max_staleness = options.max_staleness;
  job->train.delay_compensation = options.delay_compensation;
  job->train.staleness_rate = options.staleness_rate;
  job->train.batch_size = 64;  // Enough data for all steps.
  job->train.epochs = options.epochs;
  job->train.lookahead = options.lookahead;
  job->train.eval_each_epoch = options.judged;
  if (options.judged) {
    job->data.eval = {"eval"};
    job->train.early_stop.patience = kJudgedPatience;
    job->train.plateau.patience = 1;
    job->train.plateau.factor = kJudgedFactor;
  }
  job->parallel.gradients_mean = false;  // Keeps the numbers whole.
  job->parallel.interleave_num = options.copies;
  job->checkpoint.every_steps = options.checkpoint_every;
  job->checkpoint.delta_every_steps = options.delta_every;
  job->checkpoint.every_seconds = options.save_seconds;
  job->checkpoint.delta_every_seconds = options.delta_seconds;
  ClusterSpec& cluster = job->cluster;
  cluster.shards = 8;
  cluster.heartbeat_ms = 200;
  cluster.dead_after_ms = static_cast<uint32_t>(options.dead_after_ms);
  cluster.scheduler_timeout_s = 20;
  cluster.replace_after_s = options.replace_after_s;
  cluster.on_worker_loss = options.on_worker_loss;
  cluster.replicas = options.replicas;
  cluster.balance = options.balance_after_s > 0 ? Balance::kAuto : Balance::kOff;
  cluster.balance_after_s = std::max(options.balance_after_s, 1u);
  cluster.request_retry_ms = 60;
  return job;
}

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
  // A tally counts below 256, which every format holds exactly.
  options.wire = static_cast<DType>(seed % 3);
  options.copies = 1 + static_cast<uint32_t>(seed / 3 % 3);
  return options;
}

Cluster::Cluster(const ClusterOptions& options, FileSystem* files)
    : options_(options),
      job_(JobOf(options)),
      disk_(files),
      chance_(MixBits(options.seed ^ 0xfa17u) + options.incarnation),
      tally_({options.mode, options.staleness_bound, options.num_workers, options.rows_leave,
              MayBeReplaced(options)}),
      network_(MixBits(options.seed) + options.incarnation, options.weather),
      launcher_(options.restart_after_ms, options.launcher_sabotage) {
  network_.OnSend([this](PeerId from, PeerId to, Frame* frame) { Spy(from, to, *frame); });
  StartScheduler(/*same_run=*/false);
  servers_.resize(options.num_servers);
  workers_.resize(options.num_workers);
  for (uint32_t s = 0; s < options.num_servers; ++s) launcher_.Want({Role::kServer, s}, 0);
  for (uint32_t w = 0; w < options.num_workers; ++w) launcher_.Want({Role::kWorker, w}, 0);
  for (const Place& who : launcher_.wanted()) {
    if (options.starts_within_ms > 0) {
      const auto within = static_cast<uint64_t>(options.starts_within_ms);
      launcher_.Want(who, static_cast<TimeMs>(chance_.Below(within)));
    } else if (launcher_.StartsNow(who, std::nullopt, 0)) {
      who.first == Role::kServer ? StartServer(who.second) : StartWorker(who.second);
    }
  }
  AddOutages();
  AddKills();
  AddCuts();
  for (const Fault& fault : options.faults) AddFault(fault);
}

Cluster::~Cluster() {
  for (Server& server : servers_) {
    if (server.executor != nullptr) server.executor->Finish();
  }
}

PeerId Cluster::NewPeer(Role role, uint32_t rank) {
  const uint64_t places = role == Role::kServer ? kServerPlaces : kWorkerPlaces;
  return peers_[{role, rank}] = {(options_.incarnation + 1) * 1'000'000 + started_++ * 1000 +
                                 places + rank};
}

std::unique_ptr<ProcessFiles> Cluster::FilesOf(PeerId peer) {
  const uint64_t place = PlaceOf(peer);
  return std::make_unique<ProcessFiles>(&disk_, place, [this, peer, place]() -> Status {
    for (const Fault& fault : disk_faults_) {
      const bool holds = network_.now() >= fault.at && network_.now() < fault.at + fault.lasts;
      if (fault.kind == Fault::Kind::kFullDisk && holds && fault.places.contains(place)) {
        return {Code::kIoError, "No space left on device"};
      }
    }
    // The scheduler's loop waits for the disk; servers write in the background.
    if (peer == kSchedulerPeer) network_.HoldUp(peer, DiskTakes(place) / 8);
    return {};
  });
}

TimeMs Cluster::DiskTakes(uint64_t place) {
  for (const Fault& fault : disk_faults_) {
    const bool holds = network_.now() >= fault.at && network_.now() < fault.at + fault.lasts;
    if (fault.kind != Fault::Kind::kSlowDisk || !holds || !fault.places.contains(place)) continue;
    return 20 + static_cast<TimeMs>(chance_.Below(2500));
  }
  return 0;
}

void Cluster::StartScheduler(bool same_run) {
  SchedulerOptions scheduler;
  scheduler.job = job_;
  scheduler.out = kOut;
  scheduler.same_run = same_run;
  scheduler.num_servers = options_.num_servers;
  scheduler.num_workers = options_.num_workers;
  scheduler.command_retry_ms = 100;
  // A scheduler of this cluster was killed before.
  scheduler.same_run = scheduler_starts_at_.has_value();
  ProgressListener voice;
  voice.notice = [this](const std::string& line) {
    unconfirmed_ += line.find("has not confirmed the end") != std::string::npos;
    went_back_ += line.find("the job goes on from") == 0;
    replaced_ += line.find("was replaced in place") != std::string::npos;
    scaled_ += line.find("the job goes on with") == 0;
    promoted_ += line.find("no step is lost") != std::string::npos;
    taken_over_ += line.find("the scheduler is back") == 0;
    const std::string again = "the job is to stop: it trains to step ";
    if (line.find(again) == 0) {
      reached_ = std::max<Clock>(reached_, std::stoll(line.substr(again.size())));
    }
    VLOG(1) << network_.now() << " " << line;
  };
  scheduler.sabotage = options_.scheduler_sabotage;
  scheduler_files_ = FilesOf(kSchedulerPeer);
  Result<std::unique_ptr<SchedulerNode>> made =
      SchedulerNode::Make(scheduler, voice, *scheduler_files_);
  CHECK(made.ok()) << made.status().message();
  scheduler_ = *std::move(made);
  clocks_told_.clear();
  // A stop is kept with the job, which begins with the first view.
  if (options_.told_again || newest_view_.view.value == 0) scheduler_told_ = false;
  network_.Attach(kSchedulerPeer, kSchedulerAddress, scheduler_.get());
}

Place Cluster::NewPlace(Role role, int32_t rank) {
  const bool server = role == Role::kServer;
  const Place who{role, static_cast<uint32_t>(server ? servers_.size() : workers_.size())};
  server ? void(servers_.emplace_back()) : void(workers_.emplace_back());
  ranks_asked_[who] = rank;
  return who;
}

int32_t Cluster::RankAskedBy(Place who) const {
  const auto asked = ranks_asked_.find(who);
  return asked == ranks_asked_.end() ? static_cast<int32_t>(who.second) : asked->second;
}

void Cluster::StartServer(uint32_t rank) {
  ServerNodeOptions server;
  server.job = of_other_job_.contains({Role::kServer, rank}) ? OtherJobThan(options_) : job_;
  server.identity.self = NewPeer(Role::kServer, rank);
  server.identity.scheduler_address = kSchedulerAddress;
  server.identity.own_address = "ipc:///sim/server_" + std::to_string(rank);
  server.identity.rank = RankAskedBy({Role::kServer, rank});
  server.identity.records = options_.recorded;
  server.sabotage = options_.server_sabotage;
  const PeerId peer = server.identity.self;
  Server& process = servers_[rank];
  process.node.reset();
  process.files = FilesOf(peer);
  process.executor =
      std::make_unique<LateExecutor>([this, peer] { return DiskTakes(PlaceOf(peer)); });
  process.node = std::make_unique<ServerNode>(*process.files, *process.executor, server);
  LateExecutor* const executor = process.executor.get();
  network_.Attach(peer, server.identity.own_address, process.node.get(),
                  [executor](TimeMs now) { executor->RunDue(now); });
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
  script.lists = ListsOfStep(*job_);
  script.repairs = options_.mode == Mode::kSync;
  script.rows_leave = options_.rows_leave;
  script.judged = options_.judged;
  script.strange_lists = options_.seed % 5 == 4;
  script.since_late = options_.since_late;
  if (rank == 0) script.mistaken_at = options_.mistaken_at;
  Worker& worker = workers_[rank];
  worker.node.reset();
  worker.peer = NewPeer(Role::kWorker, rank);
  worker.compute = std::make_unique<ScriptedWorker>(script, &tally_);
  WorkerNodeOptions node;
  node.job = of_other_job_.contains({Role::kWorker, rank}) ? OtherJobThan(options_) : job_;
  node.identity.self = worker.peer;
  node.identity.scheduler_address = kSchedulerAddress;
  node.identity.rank = RankAskedBy({Role::kWorker, rank});
  worker.node = std::make_unique<WorkerNode>(node, worker.compute.get());
  worker.compute->Connect(worker.node.get());
  ScriptedWorker* compute = worker.compute.get();
  network_.Attach(worker.peer, "", worker.node.get(),
                  [compute](TimeMs now) { compute->OnTime(now); });
}

void Cluster::Spy(PeerId from, PeerId to, const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  if (kind == MessageKind::kView) {
    View view;
    CHECK(DecodeMessage(frame, &view).ok());
    if (view.view.value > newest_view_.view.value) newest_view_ = view;
    views_of_fewer_ += view.servers.size() < options_.num_servers;
    tally_.WentBack(view.restarts);
  } else if (kind == MessageKind::kCommand) {
    Command command;
    CHECK(DecodeMessage(frame, &command).ok());
    VLOG(2) << network_.now() << " to " << PlaceOf(to) << " in view " << frame.header.view << ": "
            << command.id.value << " " << CommandKindName(command.command) << " until "
            << command.until;
    if (command.command == CommandKind::kLoad && !std::exchange(loaded_, true) &&
        options_.history_before) {
      tally_.history() = *options_.history_before;
    }
    if (command.command == CommandKind::kLoad && frame.header.view == newest_view_.view.value) {
      tally_.history().GoOn(command.until, static_cast<uint32_t>(newest_view_.workers.size()));
    }
    // A member that has told its digest is asked again in a later view, unless the job was done
    // with it.
    const bool load = command.command == CommandKind::kLoad;
    const bool digest = command.command == CommandKind::kDigest;
    if ((load || digest) && frame.header.view > digest_view_) {
      digest_view_ = frame.header.view;
      digest_commands_.clear();
      digests_.clear();
    }
    if (digest && frame.header.view == digest_view_) digest_commands_[to] = command.id;
  } else if (kind == MessageKind::kHeartbeat) {
    Heartbeat heartbeat;
    CHECK(DecodeMessage(frame, &heartbeat).ok());
    clocks_sent_[from][heartbeat.number] = {heartbeat.view, heartbeat.clock};
  } else if (kind == MessageKind::kHeartbeatAck && from == kSchedulerPeer) {
    HeartbeatAck ack;
    CHECK(DecodeMessage(frame, &ack).ok());
    // A heartbeat from an earlier view is acknowledged, but the scheduler ignores its clock.
    const auto& [view, clock] = clocks_sent_[to][ack.number];
    if (view == ack.view) clocks_told_[to] = clock;
  } else if (kind == MessageKind::kCommandDone) {
    CommandDone done;
    CHECK(DecodeMessage(frame, &done).ok());
    VLOG(2) << network_.now() << " from " << PlaceOf(from) << ": " << done.id.value << " done at "
            << done.clock;
    const auto asked = digest_commands_.find(from);
    if (asked != digest_commands_.end() && asked->second == done.id) digests_[from] = done;
  }
}

const Node* Cluster::NodeOf(Role role, uint32_t rank) const {
  if (role == Role::kScheduler) return scheduler_.get();
  if (role == Role::kServer) return servers_[rank].node.get();
  return workers_[rank].node.get();
}

std::vector<const Node*> Cluster::nodes() const {
  std::vector<const Node*> nodes;
  if (scheduler_ != nullptr) nodes.push_back(scheduler_.get());
  for (const Server& server : servers_) {
    if (server.node != nullptr) nodes.push_back(server.node.get());
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

Outcome Cluster::Run(TimeMs until) {
  const bool all_done = network_.RunUntil(until, [this] {
    Supervise();
    return AllDone() || ended_by_fault_ || !launcher_.GaveUp(network_.now()).empty();
  });
  return Judge(all_done && AllDone());
}

void Cluster::RequestStop(uint64_t seed) {
  stop_asked_ = true;
  Random random(MixBits(seed ^ 0x570bu));
  // A member without a view just leaves, which is another test.
  const bool all_in = std::all_of(workers_.begin(), workers_.end(),
                                  [](const Worker& worker) { return worker.compute->clock() > 0; });
  const uint64_t who = all_in ? random.Below(3) : 0;
  if (who == 0) scheduler_->RequestStop("asked to");
  if (who == 1) servers_[random.Below(servers_.size())].node->RequestStop("asked to");
  if (who == 2) workers_[random.Below(workers_.size())].node->RequestStop("asked to");
}

}  // namespace hdps::sim
