// Measures pulls and pushes, and splits the time into costs of a request, a row and a float.
#include <time.h>

#include <algorithm>
#include <memory>

#include "benchmarks/cases/constants/constants.h"
#include "benchmarks/clusters/row_cluster.h"
#include "benchmarks/clusters/row_load.h"
#include "benchmarks/yardsticks/row_yardsticks.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

constexpr double kNano = 1e9, kMicro = 1e6;
constexpr uint64_t kRows = 1'000'000;
constexpr uint32_t kNarrow = 16, kWide = 80, kDense = 1024;
constexpr char kRule[] = "lazy_adam";  // The default optimizer of rows.
constexpr double kRuleStates = 2;      // Floats of state per weight.
constexpr size_t kFewKeys = 4'000, kManyKeys = 40'000, kDenseKeys = 2'000;

double Above0(double value) { return std::max(value, 0.0); }

// Makes lists of exactly `keys` keys, so many that their rows do not stay in the caches.
KeyBatches ListsOf(size_t keys, uint64_t rows) {
  constexpr size_t kLists = 12;
  KeyBatches lists = ZipfLists(rows, 1.05, 12 * keys, kLists, keys);
  for (StepKeys& list : lists) list.keys.resize(std::min(list.keys.size(), keys));
  return lists;
}

// Emulates the effect of a step's layers on the caches between two exchanges: it walks over as many
// bytes.
class OtherWork {
 public:
  explicit OtherWork(int threads)
      : executor_(NewTbbExecutor(threads)), floats_(kPieces * kPieceFloats) {}
  void Do() {
    executor_->ParallelFor(kPieces, [this](size_t piece) {
      float* const from = floats_.data() + piece * kPieceFloats;
      for (size_t i = 0; i < kPieceFloats; ++i) from[i] += 1;
    });
  }

 private:
  static constexpr size_t kPieces = 128, kPieceFloats = size_t{128} << 10;
  const std::unique_ptr<Executor> executor_;
  std::vector<float> floats_;
};

// Median seconds of one list, and the cores that were busy.
struct ExchangeTimes {
  double pull = 0, push = 0;
  double repair = 0;          // If no row has changed.
  double repair_changed = 0;  // If every row has changed.
  double busy_cores = 0;
};

Result<ExchangeTimes> TimeExchanges(RowWorker& worker, const KeyBatches& lists, OtherWork& other) {
  std::vector<double> pulls, pushes, repairs, changed;
  double wall = 0, cpu = 0;
  Status status;
  const auto time = [&](std::vector<double>* to, const std::function<Status()>& work) {
    const double cpu_before = ProcessCpuSeconds();
    to->push_back(SecondsOf([&] {
      const Status done = work();
      if (status.ok()) status = done;
    }));
    wall += to->back();
    cpu += ProcessCpuSeconds() - cpu_before;
  };
  for (size_t i = 0; i < lists.size(); ++i) {
    const KeyBatches now = {lists[i]}, next = {lists[(i + 1) % lists.size()]};
    other.Do();
    time(&pushes, [&] { return worker.PushAll(now, 1); });
    time(&pulls, [&] { return worker.PullAll(next, 1); });
    HDPS_RETURN_IF_ERROR(worker.PullAhead(lists[i]));
    HDPS_RETURN_IF_ERROR(worker.PushAll(now, 1));
    other.Do();
    time(&changed, [&] { return worker.Repair(RowWorker::Changes::kAll); });
    HDPS_RETURN_IF_ERROR(worker.PullAhead(lists[i]));
    other.Do();
    time(&repairs, [&] { return worker.Repair(RowWorker::Changes::kNone); });
    HDPS_RETURN_IF_ERROR(status);
  }
  return ExchangeTimes{MedianOf(pulls), MedianOf(pushes), MedianOf(repairs), MedianOf(changed),
                       cpu / wall};
}

// A server with one table of one dim.
struct Served {
  std::unique_ptr<RowCluster> cluster;
  std::unique_ptr<RowWorker> worker;
};

// A path: memory, sockets with large sections in shared memory, or sockets alone as between
// machines.
struct Path {
  const char* name;
  const char* transport;
  bool shared;
};
constexpr Path kPaths[] = {
    {"inproc", "inproc", true}, {"local", "tcp", true}, {"socket", "tcp", false}};

Result<Served> Serve(const BenchSetting& setting, FileSystem& files, const Path& path, uint32_t dim,
                     uint64_t rows) {
  RowClusterOptions options;
  options.job = RowsJob(dim, kRule, "sync");
  options.transport = path.transport;
  options.shared = path.shared;
  options.processes = false;  // The server's CPU time then counts as this process's.
  Served served;
  HDPS_ASSIGN_OR_RETURN(served.cluster, RowCluster::Start(setting, files, options));
  HDPS_ASSIGN_OR_RETURN(served.worker, RowWorker::Make(*served.cluster, 0));
  HDPS_RETURN_IF_ERROR(served.worker->PushAll(AllKeys(rows), 4));
  return served;
}

double SplitSeconds(const Served& served, const StepKeys& list) {
  const KeysOfTable table = list.OfTable(RowsTable(served.cluster->job()), 1);
  KeySplit split;
  const ShardMap& shards = served.cluster->view()->shards;
  split.Compute(shards, 1, {&table, 1});
  constexpr int kTimes = 5;
  return SecondsOf([&] {
           for (int time = 0; time < kTimes; ++time) split.Compute(shards, 1, {&table, 1});
         }) /
         kTimes;
}

// Cost of a request: a base, and the cost of each row and float.
struct Fit {
  double base, row, a_float;  // Seconds.
};
Fit FitExchange(double few, double many, double wide) {
  const double row_narrow = (many - few) / double(kManyKeys - kFewKeys);
  const double base = Above0(few - row_narrow * double(kFewKeys));
  const double row_wide = (wide - base) / double(kManyKeys);
  const double a_float = Above0((row_wide - row_narrow) / double(kWide - kNarrow));
  return {base, Above0(row_narrow - kNarrow * a_float), a_float};
}

Status MeasureExchange(const BenchSetting& setting, FileSystem& files, const Path& path,
                       ConstantSamples* samples) {
  const KeyBatches dense(8, AllKeys(kDenseKeys)[0]);
  HDPS_ASSIGN_OR_RETURN(const Served narrow, Serve(setting, files, path, kNarrow, kRows));
  // Splits the keys by shard, as in a step.
  const uint32_t shards = narrow.cluster->job().cluster.shards;
  const KeyBatches few = ByShard(ListsOf(kFewKeys, kRows), shards);
  const KeyBatches many = ByShard(ListsOf(kManyKeys, kRows), shards);
  HDPS_ASSIGN_OR_RETURN(const Served wide, Serve(setting, files, path, kWide, kRows));
  HDPS_ASSIGN_OR_RETURN(const Served chunks, Serve(setting, files, path, kDense, kDenseKeys));
  OtherWork other(setting.threads);
  const auto add = [&](const std::string& name, double value) {
    (*samples)[path.name + name].push_back(value);
  };
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    // Splitting keys by server is the reader's work in a run, so it is subtracted.
    const double split = SplitSeconds(narrow, many[0]) / static_cast<double>(kManyKeys);
    HDPS_ASSIGN_OR_RETURN(const ExchangeTimes f, TimeExchanges(*narrow.worker, few, other));
    HDPS_ASSIGN_OR_RETURN(const ExchangeTimes m, TimeExchanges(*narrow.worker, many, other));
    HDPS_ASSIGN_OR_RETURN(const ExchangeTimes w, TimeExchanges(*wide.worker, many, other));
    HDPS_ASSIGN_OR_RETURN(const ExchangeTimes d, TimeExchanges(*chunks.worker, dense, other));
    for (const bool push : {false, true}) {
      const std::string name = push ? "_push." : "_pull.";
      const Fit fit =
          push ? FitExchange(f.push, m.push, w.push) : FitExchange(f.pull, m.pull, w.pull);
      add(name + "base", kMicro * fit.base);
      add(name + "row", kNano * Above0(fit.row - split));
      add(name + "float", kNano * fit.a_float);
      add(name + "dense_float",
          kNano * Above0(((push ? d.push : d.pull) - fit.base) / double(kDenseKeys * kDense)));
    }
    const Fit repair = FitExchange(f.repair, m.repair, w.repair);
    const double narrow_change = (m.repair_changed - m.repair) / double(kManyKeys);
    const double wide_change = (w.repair_changed - w.repair) / double(kManyKeys);
    const double change_float = Above0((wide_change - narrow_change) / double(kWide - kNarrow));
    add("_repair.base", kMicro * repair.base);
    add("_repair.row", kNano * repair.row);
    add("_repair.float", kNano * repair.a_float);
    add("_repair.changed_row", kNano * Above0(narrow_change - kNarrow * change_float));
    add("_repair.changed_float", kNano * change_float);
    (*samples)["reader.split_key"].push_back(kNano * split);
    (*samples)["exchange.busy_cores"].push_back(w.busy_cores);
  }
  return Status();
}

// Core seconds of each request at a server with one core.
struct CoreSeconds {
  double pull = 0, push = 0;
};
CoreSeconds TimeServer(RowsAlone& rows, const std::vector<PushRequest>& requests) {
  const auto each = static_cast<double>(requests.size());
  return {SecondsOf([&] { rows.PullAll(requests); }) / each,
          SecondsOf([&] { rows.PushAll(requests); }) / each};
}

Status MeasureServer(const BenchSetting& setting, ConstantSamples* samples) {
  HDPS_ASSIGN_OR_RETURN(const Job narrow_job, ParseJob(RowsJob(kNarrow, kRule), "narrow", {}));
  HDPS_ASSIGN_OR_RETURN(const Job wide_job, ParseJob(RowsJob(kWide, kRule), "wide", {}));
  HDPS_ASSIGN_OR_RETURN(const Job dense_job, ParseJob(RowsJob(kDense, kRule), "dense", {}));
  RowsAlone narrow(narrow_job, 1), wide(wide_job, 1), dense(dense_job, 1);
  const size_t empty_bytes = narrow.bytes();
  const KeyBatches all = AllKeys(kRows);
  const auto make_rows = [&all](RowsAlone& rows) {
    const auto requests = rows.RequestsFor(all);
    return SecondsOf([&] { rows.PushAll(requests); }) / double(kRows);
  };
  const double made_narrow = make_rows(narrow), made_wide = make_rows(wide);
  constexpr double kStates = 1 + kRuleStates;
  const double row_bytes = static_cast<double>(narrow.bytes() - empty_bytes) / double(kRows);
  (*samples)["server.index_row"].push_back(Above0(row_bytes - kStates * kNarrow * sizeof(float)));
  const KeyBatches many = ListsOf(kManyKeys, kRows);
  const auto narrow_requests = narrow.RequestsFor(many), wide_requests = wide.RequestsFor(many);
  const auto dense_requests = dense.RequestsFor(KeyBatches(6, AllKeys(kDenseKeys)[0]));
  TimeServer(dense, dense_requests);  // Creates the rows.
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const CoreSeconds n = TimeServer(narrow, narrow_requests), w = TimeServer(wide, wide_requests),
                      d = TimeServer(dense, dense_requests);
    const auto add = [&](const std::string& name, double t_narrow, double t_wide, double t_dense) {
      const double a_float = Above0((t_wide - t_narrow) / double(kManyKeys * (kWide - kNarrow)));
      (*samples)["server." + name + "_float"].push_back(kNano * a_float);
      (*samples)["server." + name + "_row"].push_back(
          kNano * Above0(t_narrow / double(kManyKeys) - kNarrow * a_float));
      (*samples)["server.dense_" + name + "_float"].push_back(kNano * t_dense /
                                                              double(kDenseKeys * kDense));
    };
    add("pull", n.pull, w.pull, d.pull);
    add("push", n.push, w.push, d.push);
    // Extra cost of a row that does not exist yet.
    const double more_narrow = Above0(made_narrow - n.push / double(kManyKeys));
    const double more_wide = Above0(made_wide - w.push / double(kManyKeys));
    const double more_float = Above0((more_wide - more_narrow) / double(kWide - kNarrow));
    (*samples)["server.new_float"].push_back(kNano * more_float);
    (*samples)["server.new_row"].push_back(kNano * Above0(more_narrow - kNarrow * more_float));
  }
  return Status();
}

Status MeasureMessages(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  // Sends many at once, because waiting for the next one is not work.
  constexpr int kMessages = 4000, kAtOnce = 100;
  HDPS_ASSIGN_OR_RETURN(const Served served, Serve(setting, files, kPaths[1], kNarrow, 1000));
  HDPS_ASSIGN_OR_RETURN(const auto wire, WireAlone::Make("tcp", setting.scratch, false));
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const double before = ProcessCpuSeconds();
    for (int i = 0; i < kMessages; i += kAtOnce) {
      HDPS_RETURN_IF_ERROR(served.worker->PullNothing(kAtOnce));
    }
    constexpr double kEnds = 2;
    (*samples)["server.message"].push_back(kMicro * (ProcessCpuSeconds() - before) / kMessages /
                                           kEnds);
    constexpr size_t kBytes = 1 << 20, kCount = 100, kWindow = 4;
    bool answered = false;
    const double seconds =
        SecondsOf([&] { answered = wire->Exchange(kBytes, kBytes, kCount, kWindow); });
    if (!answered) return {Code::kUnavailable, "constants: no answer over tcp"};
    (*samples)["wire.byte"].push_back(kNano * seconds / double(2 * kBytes * kCount));
  }
  return Status();
}

}  // namespace

double ProcessCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Status MeasureRows(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  for (const Path& path : kPaths) {
    PrintProgress("constants", std::string("exchanges, ") + path.name);
    HDPS_RETURN_IF_ERROR(MeasureExchange(setting, files, path, samples));
  }
  PrintProgress("constants", "rows of a server");
  HDPS_RETURN_IF_ERROR(MeasureServer(setting, samples));
  return MeasureMessages(setting, files, samples);
}

}  // namespace hdps
