// Runs members on threads or as processes, and the scheduler always on this process.
#include "benchmarks/clusters/job_run.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "benchmarks/clusters/child_process.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/net/node_loop.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/process_watch.h"
#include "common/platform/random.h"
#include "scheduler/scheduler_node.h"
#include "server/server_process.h"
#include "worker/role/worker_process.h"

namespace hdps {
namespace {

// State that the members of one run share.
struct Setting {
  const BenchSetting& bench;
  FileSystem& files;
  const JobRunOptions& run;
  std::shared_ptr<const Job> job;
  std::shared_ptr<InprocHub> hub;  // Null with sockets.
  std::string scheduler_address;   // Address of the scheduler.

  std::unique_ptr<Transport> NewTransport(const PeerName& self) const {
    return hub ? NewInprocTransport(hub, {.self = self}) : NewZmqTransport({.self = self});
  }
  std::string AddressFor(const std::string& name) const {
    if (hub) return "inproc://" + name;
    if (run.placement == "ipc") return "ipc://" + JoinPath(run.out, name);
    return "tcp://127.0.0.1:0";
  }
};

void RunServer(const Setting& setting, uint32_t rank) {
  ServerProcessOptions options;
  options.node.job = setting.job;
  const PeerName name = NewPeerName();
  options.node.identity.self = name.peer;
  options.node.identity.scheduler_address = setting.scheduler_address;
  options.node.identity.rank = static_cast<int32_t>(rank);
  options.node.spill_folder = JoinPath(setting.run.out, "spill");
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  std::unique_ptr<Transport> transport = setting.NewTransport(name);
  if (setting.run.server_link != nullptr) {
    transport = NewSlowTransport(std::move(transport), *setting.run.server_link, *clock);
  }
  Result<std::string> address =
      transport->Listen(setting.AddressFor("server_" + std::to_string(rank)));
  if (!address.ok()) return;  // The scheduler will miss the server and report it.
  options.node.identity.own_address = *address;
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.bench.threads);
  RunServerProcess(options, *transport, *clock, setting.files, *executor);
}

// Results of a worker on a thread.
struct WorkerRun {
  StepTimes times;
  StepTimes steady_times;
  double steady_cpu_seconds = 0;
  TransportCounters traffic;
};

void RunWorker(const Setting& setting, uint32_t rank, const AfterStep& after_step, WorkerRun* run) {
  WorkerProcessOptions options;
  options.node.job = setting.job;
  const PeerName name = NewPeerName();
  options.node.identity.self = name.peer;
  options.node.identity.scheduler_address = setting.scheduler_address;
  options.node.identity.rank = static_cast<int32_t>(rank);
  const std::unique_ptr<Transport> transport = setting.NewTransport(name);
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  StepTimes before;  // Times before the steady steps.
  int64_t before_ns = 0;
  std::clock_t before_cpu = 0;
  options.after_step = [&](const StepReport& step) {
    if (step.clock == setting.run.steady_from) {
      before = step.times;
      before_ns = clock->NowNs();
      before_cpu = std::clock();
    } else if (step.clock == setting.run.steady_to) {
      run->steady_times = step.times.Since(before);
      run->steady_times.total_ns = clock->NowNs() - before_ns;
      run->steady_cpu_seconds = static_cast<double>(std::clock() - before_cpu) / CLOCKS_PER_SEC /
                                static_cast<double>(run->steady_times.steps);
    }
    after_step(step);
  };
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.bench.threads);
  run->times = RunWorkerProcess(options, *transport, *clock, setting.files, *executor).times;
  run->traffic = transport->counters();
}

// Runs the members as threads or processes; its destructor joins them.
class Members {
 public:
  explicit Members(const Setting& setting) : setting_(setting), runs_(setting.run.workers) {}
  ~Members() { Join(); }

  void Start(const AfterStep& after_step) {
    const JobRunOptions& run = setting_.run;
    const bool processes = run.placement == "processes";
    for (uint32_t s = 0; s < run.servers; ++s) {
      if (processes || run.placement == "servers") {
        StartProcess("server", s);
      } else {
        threads_.push_back(StartThread("server", [this, s] { RunServer(setting_, s); }));
      }
    }
    for (uint32_t w = 0; w < run.workers; ++w) {
      if (processes) {
        StartProcess("worker", w);
      } else {
        threads_.push_back(StartThread(
            "worker", [this, &after_step, w] { RunWorker(setting_, w, after_step, &runs_[w]); }));
      }
    }
  }

  void Join() {
    for (const auto& thread : threads_) thread->Join();
    for (const auto& process : processes_) process->Wait();
    threads_.clear();
    processes_.clear();
  }
  const std::vector<WorkerRun>& runs() const { return runs_; }
  void KillFirst() { processes_.front()->Signal(SIGKILL); }

 private:
  void StartProcess(const std::string& role, uint32_t rank) {
    const JobRunOptions& run = setting_.run;
    const std::string name = role + "_" + std::to_string(rank);
    std::vector<std::string> command = {Beside(setting_.bench.program, "hdps-" + role),
                                        "--job=" + JoinPath(run.out, "job.json"),
                                        "--scheduler=" + setting_.scheduler_address,
                                        "--log=warning",
                                        "--rank=" + std::to_string(rank),
                                        "--threads=" + std::to_string(setting_.bench.threads)};
    if (role == "server") command.push_back("--spill_path=" + JoinPath(run.out, "spill"));
    processes_.push_back(std::make_unique<ChildProcess>(command, JoinPath(run.out, name + ".log")));
  }

  const Setting& setting_;
  std::vector<WorkerRun> runs_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

// Measures the workers' steps. Workers may be a step apart; the first to begin and the last to end
// count. Called on their threads.
class RunWatch {
 public:
  RunWatch(const JobRunOptions& options, MonotonicClock& clock, std::function<void()> kill)
      : options_(options), clock_(clock), kill_(std::move(kill)) {}

  void After(const StepReport& step) {
    const int64_t now_ns = clock_.NowNs();
    int64_t none = 0;
    if (first_step_ns_.compare_exchange_strong(none, now_ns)) first_clock_ = step.clock;
    last_clock_ = step.clock;
    if (step.clock == options_.kill_server_at) {
      killed_ns_ = now_ns;
      kill_();
    }
    none = 0;
    if (step.clock == options_.steady_from) steady_from_ns_.compare_exchange_strong(none, now_ns);
    if (step.clock > options_.steady_from && step.clock <= options_.steady_to) {
      steady_examples_ += step.examples;
      steady_to_ns_ = now_ns;
    }
  }

  bool killed() const { return killed_ns_ != 0; }

  // Fills in the results. Requires: the workers have ended.
  void FillIn(int64_t begin_ns, int64_t ended_ns, JobRun* run) const {
    const auto seconds = [](int64_t from, int64_t to) { return double(to - from) * 1e-9; };
    run->first_clock = first_clock_;
    run->steps = last_clock_;
    if (first_step_ns_ != 0) run->first_step_seconds = seconds(begin_ns, first_step_ns_);
    if (killed()) run->noticed_seconds = seconds(killed_ns_, ended_ns);
    if (steady_to_ns_ > steady_from_ns_) {
      run->steady_examples_per_second =
          double(steady_examples_) / seconds(steady_from_ns_, steady_to_ns_);
    }
  }

 private:
  const JobRunOptions& options_;
  MonotonicClock& clock_;
  const std::function<void()> kill_;
  std::atomic<int64_t> first_step_ns_{0}, steady_from_ns_{0}, steady_to_ns_{0}, killed_ns_{0};
  std::atomic<int64_t> first_clock_{0}, last_clock_{0};
  std::atomic<uint64_t> steady_examples_{0};
};

// Reads the speed between the first and the last steady step in the scheduler's metrics.
Status ReadSteady(FileSystem& files, const JobRunOptions& options, JobRun* run) {
  constexpr uint64_t kBytesMax = 16 << 20;
  HDPS_ASSIGN_OR_RETURN(const std::string text,
                        ReadWholeFile(files, JoinPath(options.out, "metrics.jsonl"), kBytesMax));
  double first_time = 0, last_time = 0, first_examples = 0, last_examples = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.contains("step") || !json.contains("examples")) continue;
    const auto step = json["step"].get<int64_t>();
    if (step < options.steady_from || step > options.steady_to) continue;
    last_time = json["time"].get<double>();
    last_examples = json["examples"].get<double>();
    if (first_time == 0) {
      first_time = last_time;
      first_examples = last_examples;
    }
  }
  if (last_time > first_time) {
    run->steady_examples_per_second = (last_examples - first_examples) / (last_time - first_time);
  }
  return Status();
}

Status ReadSummary(FileSystem& files, const std::string& out, JobRun* run) {
  constexpr uint64_t kBytesMax = 1 << 20;
  HDPS_ASSIGN_OR_RETURN(const std::string text,
                        ReadWholeFile(files, JoinPath(out, "summary.json"), kBytesMax));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return {Code::kCorruption, out + "/summary.json is no JSON"};
  const auto number = [&](const char* field) {
    return json.contains(field) && json[field].is_number() ? json[field].get<double>() : 0;
  };
  run->examples_per_second = number("examples_per_second");
  run->eval_auc = number("eval_auc");
  run->rows = number("rows");
  run->rows_on_disk = number("rows_on_disk");
  run->rows_fetched = number("rows_fetched");
  run->row_bytes = number("row_bytes");
  run->server_bytes_max = number("server_bytes_max");
  run->steps = static_cast<int64_t>(number("steps"));
  run->digest = json.value("digest", std::string());
  if (json.contains("cache") && json["cache"].is_object()) {
    run->cache_hit_rate = json["cache"].value("hit_rate", 0.0);
    run->cache_swaps = json["cache"].value("swaps", 0.0);
  }
  return Status();
}

}  // namespace

Result<JobRun> RunJob(const BenchSetting& bench, FileSystem& files, const JobRunOptions& options) {
  HDPS_ASSIGN_OR_RETURN(Job parsed, ParseJob(options.job, "benchmark", options.overrides));
  Setting setting{bench, files, options, std::make_shared<const Job>(std::move(parsed)), {}, {}};
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(options.out));
  HDPS_RETURN_IF_ERROR(
      WriteFileAtomically(files, JoinPath(options.out, "job.json"), PrintJob(*setting.job)));
  if (options.placement == "inproc") setting.hub = NewInprocHub();
  SchedulerOptions scheduler_options;
  scheduler_options.job = setting.job;
  scheduler_options.out = options.out;
  scheduler_options.num_servers = options.servers;
  scheduler_options.num_workers = options.workers;
  scheduler_options.boot = BootIdentity();
  const bool listens = options.placement == "processes" && options.steady_to > 0;
  if (listens) scheduler_options.report_interval_ms = setting.job->cluster.heartbeat_ms;
  if (!options.keep_last) scheduler_options.resume = Resume::kNever;
  ProgressListener voice;
  voice.notice = [](const std::string&) {};
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerNode> scheduler,
                        SchedulerNode::Make(scheduler_options, voice, files));
  const std::unique_ptr<Transport> scheduler_transport = setting.NewTransport(kSchedulerPeer);
  HDPS_ASSIGN_OR_RETURN(setting.scheduler_address,
                        scheduler_transport->Listen(setting.AddressFor("scheduler")));

  JobRun run;
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t begin_ns = clock->NowNs();
  Members members(setting);
  RunWatch watch(options, *clock, [&members] { members.KillFirst(); });
  const AfterStep after_step = [&watch](const StepReport& step) { watch.After(step); };
  members.Start(after_step);
  const ProcessEnd end = RunNodeLoop(*scheduler, *scheduler_transport, *clock, {});
  const int64_t ended_ns = clock->NowNs();
  members.Join();
  run.wall_seconds = static_cast<double>(clock->NowNs() - begin_ns) * 1e-9;
  watch.FillIn(begin_ns, ended_ns, &run);
  if (watch.killed()) return run;
  HDPS_RETURN_IF_ERROR(StatusOf(end));
  HDPS_RETURN_IF_ERROR(ReadSummary(files, options.out, &run));
  if (listens) HDPS_RETURN_IF_ERROR(ReadSteady(files, options, &run));
  run.steady_times = members.runs()[0].steady_times;
  run.steady_cpu_seconds = members.runs()[0].steady_cpu_seconds;
  int64_t longest_ns = 0;
  for (const WorkerRun& worker : members.runs()) {
    run.times.Add(worker.times);
    run.bytes_sent += worker.traffic.bytes_sent;
    run.bytes_received += worker.traffic.bytes_received;
    longest_ns = std::max(longest_ns, worker.times.total_ns);
  }
  if (longest_ns > 0) {
    run.examples_per_second =
        static_cast<double>(run.times.examples) * 1e9 / static_cast<double>(longest_ns);
  }
  return run;
}

}  // namespace hdps
