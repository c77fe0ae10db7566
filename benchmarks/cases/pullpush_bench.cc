// Measures rows from the socket to the table and back: real servers in their own processes, and the
// worker's half of the exchange.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/row_cluster.h"
#include "benchmarks/clusters/row_load.h"
#include "benchmarks/yardsticks/row_yardsticks.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/metrics/metric.h"

namespace hdps {
namespace {

constexpr char kBench[] = "pullpush";
constexpr double kZipf = 1.05;
// Requests in flight: one at the server, and one that is made or used. With several MB each, more
// would only push each other out of the caches.
constexpr size_t kWindow = 2;
// Times that each list is requested in a sample; a few milliseconds would only measure how threads
// wake.
constexpr size_t kPasses = 4;

struct Case {
  const char* transport;
  uint32_t servers, workers, dim, batch;
  bool shared =
      // Large sections use shared memory, as on one machine; else sockets, as between two.
      true;
};
std::string NameOf(const Case& c) {
  return std::string(c.transport) + (c.shared ? "_" : "_unshared_") + std::to_string(c.servers) +
         "s_" + std::to_string(c.workers) + "w_dim" + std::to_string(c.dim) + "_batch" +
         std::to_string(c.batch);
}

constexpr Case kCases[] = {
    {"tcp", 1, 1, 16, 4096},        {"ipc", 1, 1, 16, 4096},        {"inproc", 1, 1, 16, 4096},
    {"tcp", 1, 1, 64, 4096},        {"ipc", 1, 1, 64, 4096},        {"inproc", 1, 1, 64, 4096},
    {"tcp", 1, 1, 80, 4096},        {"ipc", 1, 1, 80, 4096},        {"tcp", 1, 1, 16, 1024},
    {"tcp", 2, 1, 16, 4096},        {"tcp", 1, 2, 16, 4096},        {"tcp", 2, 2, 16, 4096},
    {"tcp", 1, 1, 16, 4096, false}, {"tcp", 1, 1, 64, 4096, false}, {"ipc", 1, 1, 64, 4096, false},
};

// Calls `work` for each worker on its own thread. Returns the rows/s of all together, or 0 if one
// failed; appends the rows per second of CPU to `a_core_second`.
double RowsPerSecond(const RowCluster& cluster, std::vector<std::unique_ptr<RowWorker>>& workers,
                     size_t rows_each, std::vector<double>* a_core_second,
                     const std::function<Status(RowWorker&)>& work) {
  std::atomic<bool> failed{false};
  const double cpu_before = cluster.CpuSeconds();
  const double seconds = SecondsOf([&] {
    std::vector<std::unique_ptr<Thread>> threads;
    for (auto& worker : workers) {
      threads.push_back(StartThread("worker", [&failed, &work, one = worker.get()] {
        if (!work(*one).ok()) failed = true;
      }));
    }
    for (const auto& thread : threads) thread->Join();
  });
  const auto rows = static_cast<double>(rows_each * workers.size());
  a_core_second->push_back(rows / (cluster.CpuSeconds() - cpu_before));
  return failed ? 0 : rows / seconds;
}

Status Check(const std::vector<double>& samples, const std::string& name) {
  if (std::find(samples.begin(), samples.end(), 0.0) == samples.end()) return Status();
  return {Code::kUnavailable, "pullpush " + name + ": a request was not answered"};
}

// Reports rows/s beside the yardsticks. `samples`: rows/s of the servers, of the rows alone and of
// the wire alone; `a_core_second`: of the first two.
void ReportBeside(const std::string& name, const std::string& what,
                  std::span<const std::vector<double>> samples,
                  std::span<const std::vector<double>> a_core_second, BenchReport& report) {
  const std::vector<double>&served = samples[0], &rows = samples[1], &wire = samples[2];
  const bool wire_is_less = MedianOf(wire) < MedianOf(rows);
  report.AddBeside(kBench, name, what, "rows/s", served, wire_is_less ? "wire alone" : "rows alone",
                   wire_is_less ? wire : rows);
  std::vector<double> one_after_the_other;
  for (size_t i = 0; i < served.size(); ++i) {
    one_after_the_other.push_back(1 / (1 / rows[i] + 1 / wire[i]));
  }
  report.AddBeside(kBench, name, what, "rows/s", served, "both, one after the other",
                   one_after_the_other);
  report.AddBeside(kBench, name, what + ", a core-second", "rows", a_core_second[0], "rows alone",
                   a_core_second[1]);
  report.Add(kBench, name, what + ", rows alone", "rows/s", rows);
  report.Add(kBench, name, what + ", wire alone", "rows/s", wire);
}

// Figures of a case: the servers, the rows alone, the wire alone.
enum Figure {
  kPull,
  kPullRows,
  kPullWire,
  kPush,
  kPushRows,
  kPushWire,
  kCopied,
  kWritten,
  kFigures
};

// Reports a case; `samples` are rows/s, [kFigures].
void ReportCase(const std::string& name, const std::vector<std::vector<double>>& samples,
                const std::vector<double> (&a_core_second)[kFigures], BenchReport& report) {
  for (const Figure first : {kPull, kPush}) {
    ReportBeside(name, first == kPush ? "push" : "pull", {&samples[first], 3},
                 {&a_core_second[first], 2}, report);
  }
  report.AddBeside(kBench, name, "push", "rows/s", samples[kPush],
                   "rows alone, gradients written and looked at", samples[kWritten]);
  report.AddBeside(kBench, name, "push, a core-second", "rows", a_core_second[kPush],
                   "rows alone, gradients written and looked at", a_core_second[kWritten]);
  report.AddBeside(kBench, name, "pull, copied into another order", "rows/s", samples[kCopied],
                   "pull", samples[kPull]);
}

RowClusterOptions OptionsOf(const Case& c) {
  RowClusterOptions options;
  options.job = RowsJob(c.dim, "adagrad");
  options.servers = c.servers;
  options.workers = c.workers;
  options.transport = c.transport;
  options.shared = c.shared;
  return options;
}

// Measures socket to row and back, beside the rows alone and the wire alone.
Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c, BenchReport& report) {
  const std::string name = NameOf(c);
  PrintProgress(kBench, name);
  const uint64_t rows = setting.quick ? 2'000'000 : 4'000'000;
  const size_t lists_count = setting.quick ? 12 : 24;  // The rows do not fit into a cache.
  HDPS_ASSIGN_OR_RETURN(const auto cluster, RowCluster::Start(setting, files, OptionsOf(c)));
  std::vector<std::unique_ptr<RowWorker>> workers;
  for (uint32_t w = 0; w < c.workers; ++w) {
    HDPS_ASSIGN_OR_RETURN(workers.emplace_back(), RowWorker::Make(*cluster, w));
  }
  const KeyBatches all = AllKeys(rows);
  const KeyBatches unordered = ZipfLists(rows, kZipf, size_t{26} * c.batch, lists_count, 1);
  const KeyBatches lists = ByShard(unordered, cluster->job().cluster.shards);
  HDPS_RETURN_IF_ERROR(workers[0]->PushAll(all, kWindow));  // Creates the rows.
  RowsAlone alone(cluster->job(), setting.threads);
  for (const StepKeys& list : all) alone.PushAll(alone.RequestsFor({list}));
  const std::vector<PushRequest> requests = alone.RequestsFor(lists);
  HDPS_ASSIGN_OR_RETURN(const auto wire, WireAlone::Make(c.transport, setting.scratch, c.shared));

  const size_t keys = CountKeys(lists);
  const size_t rows_a_sample = kPasses * keys;
  const auto rate = [&](double seconds) { return static_cast<double>(rows_a_sample) / seconds; };
  const size_t keys_bytes = keys / lists.size() * sizeof(Key);
  const size_t rows_bytes = keys / lists.size() * c.dim * sizeof(float);
  constexpr size_t kAckBytes = 64;
  const auto exchange = [&](size_t request, size_t reply) {
    bool answered = false;
    const double seconds = SecondsOf(
        [&] { answered = wire->Exchange(request, reply, kPasses * lists.size(), kWindow); });
    return answered ? rate(seconds) : 0;
  };
  const auto pull = [&](RowWorker& worker) { return worker.PullAll(lists, kWindow, kPasses); };
  const auto pull_unordered = [&](RowWorker& worker) {
    return worker.PullAll(unordered, kWindow, kPasses);
  };
  const auto push = [&](RowWorker& worker) { return worker.PushAll(lists, kWindow, kPasses); };
  std::vector<double> a_core_second[kFigures];  // Rows.
  const auto served = [&](Figure figure, const std::function<Status(RowWorker&)>& work) {
    return RowsPerSecond(*cluster, workers, rows_a_sample, &a_core_second[figure], work);
  };
  const auto without_wire = [&](Figure figure, const std::function<void()>& work) {
    const double cpu_before = ProcessCpuSeconds();
    const double seconds = SecondsOf([&] {
      for (size_t pass = 0; pass < kPasses; ++pass) work();
    });
    a_core_second[figure].push_back(rate(ProcessCpuSeconds() - cpu_before));
    return rate(seconds);
  };
  const auto samples = InterleavedSamples(
      setting.repeats,
      {[&] { return served(kPull, pull); },
       [&] { return without_wire(kPullRows, [&] { alone.PullAll(requests); }); },
       [&] { return exchange(keys_bytes, rows_bytes); }, [&] { return served(kPush, push); },
       [&] { return without_wire(kPushRows, [&] { alone.PushAll(requests); }); },
       [&] { return exchange(keys_bytes + rows_bytes, kAckBytes); },
       [&] { return served(kCopied, pull_unordered); },
       [&] { return without_wire(kWritten, [&] { alone.PushAllWritten(requests); }); }});
  for (const auto& each : samples) HDPS_RETURN_IF_ERROR(Check(each, name));
  ReportCase(name, samples, a_core_second, report);
  const TransportCounters sent = workers[0]->counters();
  report.Add(kBench, name, "sent through shared memory", "of the bytes",
             {static_cast<double>(sent.bytes_shared) / static_cast<double>(sent.bytes_sent)});
  return Status();
}

// ---- Round trip.

Status RunRoundTrip(const BenchSetting& setting, FileSystem& files, const std::string& transport,
                    BenchReport& report) {
  const std::string name = "empty_pull_" + transport;
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  constexpr double kMicro = 1e6;
  const size_t count = setting.quick ? 500 : 2000;
  RowClusterOptions options;
  options.job = RowsJob(16, "sgd");
  options.transport = transport;
  HDPS_ASSIGN_OR_RETURN(const auto cluster, RowCluster::Start(setting, files, options));
  HDPS_ASSIGN_OR_RETURN(const auto worker, RowWorker::Make(*cluster, 0));
  std::vector<double> medians, slowest, sockets;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    std::vector<double> micros;
    for (size_t i = 0; i < count; ++i) {
      Status status;
      micros.push_back(kMicro * SecondsOf([&] { status = worker->PullNothing(); }));
      HDPS_RETURN_IF_ERROR(status);
    }
    medians.push_back(MedianOf(micros));
    slowest.push_back(QuantileOf(micros, 0.99));
    HDPS_ASSIGN_OR_RETURN(const double bare, SocketRoundTrip(transport, count));
    sockets.push_back(kMicro * bare);
  }
  report.AddBeside(kBench, name, "round trip", "us", medians,
                   transport == "tcp" ? "bare tcp socket" : "bare unix socket", sockets);
  report.Add(kBench, name, "round trip p99", "us", slowest);
  return Status();
}

// ---- Many small tensors.

// Moves 1,000 rows by one message to a server, and by one message a row with 64 of them in flight.
Status RunSmallTensors(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  const std::string name = "1000_tensors";
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  constexpr uint64_t kTensors = 1000;
  constexpr size_t kInFlight = 64;
  RowClusterOptions options;
  options.job = RowsJob(16, "sgd");
  HDPS_ASSIGN_OR_RETURN(const auto cluster, RowCluster::Start(setting, files, options));
  HDPS_ASSIGN_OR_RETURN(const auto worker, RowWorker::Make(*cluster, 0));
  KeyBatches together(1), apart(kTensors);
  for (Key key = 0; key < kTensors; ++key) {
    together[0].keys.push_back(key);
    apart[key].keys = {key};
  }
  HDPS_RETURN_IF_ERROR(worker->PushAll(together, 1));  // Creates the rows.
  const size_t passes = setting.quick ? 2 : 10, often = 50 * passes;
  Status status;
  const auto rate = [&](size_t times, const std::function<Status()>& work) {
    return static_cast<double>(times * kTensors) / SecondsOf([&] {
             if (status.ok()) status = work();
           });
  };
  const auto samples = InterleavedSamples(
      setting.repeats,
      {[&] { return rate(often, [&] { return worker->PullAll(together, kWindow, often); }); },
       [&] { return rate(passes, [&] { return worker->PullAll(apart, kInFlight, passes); }); },
       [&] { return rate(often, [&] { return worker->PushAll(together, kWindow, often); }); },
       [&] { return rate(passes, [&] { return worker->PushAll(apart, kInFlight, passes); }); }});
  HDPS_RETURN_IF_ERROR(status);
  report.AddBeside(kBench, name, "pull", "rows/s", samples[0], "a message a key", samples[1]);
  report.AddBeside(kBench, name, "push", "rows/s", samples[2], "a message a key", samples[3]);
  return Status();
}

// ---- The load of ps-lite.

struct Grown {
  double pull_rows = 0, push_rows = 0;              // Per second.
  double pull_p50 = 0, pull_p99 = 0, push_p99 = 0;  // ms
  double core_rows = 0;                             // Rows pulled and pushed per second of CPU.
};

// Runs one step after the other on a table that grows from nothing.
Result<Grown> GrowOnce(const BenchSetting& setting, FileSystem& files, uint32_t servers,
                       const KeyBatches& lists) {
  RowClusterOptions options;
  options.job = RowsJob(16, "sgd");
  options.servers = servers;
  HDPS_ASSIGN_OR_RETURN(const auto cluster, RowCluster::Start(setting, files, options));
  HDPS_ASSIGN_OR_RETURN(const auto worker, RowWorker::Make(*cluster, 0));
  // Otherwise the reply of one server would not be read at all, while those of two would.
  worker->ReadRows();
  std::vector<double> pulls, pushes;  // Seconds.
  const double cpu_before = cluster->CpuSeconds();
  for (const StepKeys& list : lists) {
    const KeyBatches one = {list};
    Status status;
    pulls.push_back(SecondsOf([&] { status = worker->PullAll(one, 1); }));
    HDPS_RETURN_IF_ERROR(status);
    pushes.push_back(SecondsOf([&] { status = worker->PushAll(one, 1); }));
    HDPS_RETURN_IF_ERROR(status);
  }
  const auto sum = [](const std::vector<double>& seconds) {
    double all = 0;
    for (const double one : seconds) all += one;
    return all;
  };
  constexpr double kMilli = 1e3;
  const auto rows = static_cast<double>(CountKeys(lists));
  const double core = cluster->CpuSeconds() - cpu_before;
  return Grown{rows / sum(pulls),
               rows / sum(pushes),
               kMilli * MedianOf(pulls),
               kMilli * QuantileOf(pulls, 0.99),
               kMilli * QuantileOf(pushes, 0.99),
               rows / core};
}

Status RunGrowing(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  const std::string names[] = {"ps_lite_load_1s", "ps_lite_load_2s"};
  if (!setting.Wants(names[0]) && !setting.Wants(names[1])) return Status();
  PrintProgress(kBench, "ps_lite_load, 1 and 2 servers in turns");
  constexpr size_t kBatch = 1024;
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(RowsJob(16, "sgd"), "benchmark", {}));
  const KeyBatches lists =
      ByShard(LogUniformLists(kBatch, setting.quick ? 50 : 200, 1), job.cluster.shards);
  constexpr uint32_t kServersMax = 2;
  constexpr size_t kFigureCount = 6;
  std::vector<double> figures[kServersMax][kFigureCount];
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    for (uint32_t s = 0; s < kServersMax; ++s) {
      HDPS_ASSIGN_OR_RETURN(const Grown grown, GrowOnce(setting, files, s + 1, lists));
      const double values[] = {grown.pull_rows, grown.push_rows, grown.pull_p50,
                               grown.pull_p99,  grown.push_p99,  grown.core_rows};
      for (size_t f = 0; f < kFigureCount; ++f) figures[s][f].push_back(values[f]);
    }
  }
  struct Named {
    const char *name, *unit;
  };
  constexpr Named kNamed[kFigureCount] = {
      {"pull", "rows/s"}, {"push", "rows/s"}, {"pull p50", "ms"},
      {"pull p99", "ms"}, {"push p99", "ms"}, {"pull and push, a core-second", "rows"}};
  for (uint32_t s = 0; s < kServersMax; ++s) {
    for (size_t f = 0; f < kFigureCount; ++f) {
      report.AddBeside(kBench, names[s], kNamed[f].name, kNamed[f].unit, figures[s][f],
                       s == 0 ? "" : "one server", s == 0 ? std::vector<double>() : figures[0][f]);
    }
  }
  return Status();
}

}  // namespace

Status RunPullPushBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const Case& c : kCases) {
    if (setting.Wants(NameOf(c))) HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, report));
  }
  for (const char* transport : {"tcp", "ipc", "inproc"}) {
    HDPS_RETURN_IF_ERROR(RunRoundTrip(setting, files, transport, report));
  }
  HDPS_RETURN_IF_ERROR(RunSmallTensors(setting, files, report));
  return RunGrowing(setting, files, report);
}

}  // namespace hdps
