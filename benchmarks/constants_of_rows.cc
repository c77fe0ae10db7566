// Times of pulls and pushes, taken apart into what a request, a row and a float of it cost.
#include <time.h>

#include <algorithm>
#include <memory>

#include "benchmarks/constants.h"
#include "benchmarks/row_cluster.h"
#include "benchmarks/row_load.h"
#include "benchmarks/row_yardsticks.h"

namespace hdps {
namespace {

constexpr double kNano = 1e9, kMicro = 1e6;
constexpr uint64_t kRows = 1'000'000;
constexpr uint32_t kNarrow = 16, kWide = 80, kDense = 1024;
constexpr size_t kFewKeys = 2'000, kManyKeys = 20'000, kDenseKeys = 1'100;

double Above0(double value) { return std::max(value, 0.0); }

// Lists of exactly so many keys; so many lists that their rows do not stay in the caches.
KeyBatches ListsOf(size_t keys, uint64_t rows) {
  constexpr size_t kLists = 40;
  KeyBatches lists = ZipfLists(rows, 1.05, 12 * keys, kLists, keys);
  for (std::vector<Key>& list : lists) list.resize(std::min(list.size(), keys));
  return lists;
}

// Median seconds of a list, one after the other.
Result<double> SecondsOfEach(RowWorker& worker, const KeyBatches& lists, bool push) {
  std::vector<double> seconds;
  for (const std::vector<Key>& list : lists) {
    const KeyBatches one = {list};
    Status status;
    seconds.push_back(
        SecondsOf([&] { status = push ? worker.PushAll(one, 1) : worker.PullAll(one, 1); }));
    HDPS_RETURN_IF_ERROR(status);
  }
  return MedianOf(seconds);
}

// One table of one dim, served.
struct Served {
  std::unique_ptr<RowCluster> cluster;
  std::unique_ptr<RowWorker> worker;
};

Result<Served> Serve(const BenchSetting& setting, FileSystem& files, const std::string& transport,
                     uint32_t dim, uint64_t rows) {
  RowClusterOptions options;
  options.job = RowsJob(dim, "adagrad");
  options.transport = transport;
  options.processes = false;  // So that its CPU is this process'.
  Served served;
  HDPS_ASSIGN_OR_RETURN(served.cluster, RowCluster::Start(setting, files, options));
  HDPS_ASSIGN_OR_RETURN(served.worker, RowWorker::Make(*served.cluster, 0));
  HDPS_RETURN_IF_ERROR(served.worker->PushAll(AllKeys(rows), 4));
  return served;
}

// Splitting keys by server is the reader's work in a run, so it is taken off.
double SplitSeconds(const Served& served, const std::vector<Key>& keys) {
  KeysOfTable table;
  table.table = RowsTable(served.cluster->job());
  table.row_floats = 1;
  table.keys = keys;
  KeySplit split;
  const ShardMap& shards = served.cluster->view()->shards;
  split.Compute(shards, 1, {&table, 1});
  constexpr int kTimes = 5;
  return SecondsOf([&] {
           for (int time = 0; time < kTimes; ++time) split.Compute(shards, 1, {&table, 1});
         }) /
         kTimes;
}

Status MeasureExchange(const BenchSetting& setting, FileSystem& files, const std::string& transport,
                       ConstantSamples* samples) {
  const KeyBatches dense(12, AllKeys(kDenseKeys)[0]);
  HDPS_ASSIGN_OR_RETURN(const Served narrow, Serve(setting, files, transport, kNarrow, kRows));
  const uint32_t shards = narrow.cluster->job().cluster.shards;  // As steps know their keys.
  const KeyBatches few = ByShard(ListsOf(kFewKeys, kRows), shards);
  const KeyBatches many = ByShard(ListsOf(kManyKeys, kRows), shards);
  HDPS_ASSIGN_OR_RETURN(const Served wide, Serve(setting, files, transport, kWide, kRows));
  HDPS_ASSIGN_OR_RETURN(const Served chunks, Serve(setting, files, transport, kDense, kDenseKeys));
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const double split = SplitSeconds(narrow, many[0]) / static_cast<double>(kManyKeys);
    for (const bool push : {false, true}) {
      const std::string name = transport + (push ? "_push." : "_pull.");
      HDPS_ASSIGN_OR_RETURN(const double t_few, SecondsOfEach(*narrow.worker, few, push));
      HDPS_ASSIGN_OR_RETURN(const double t_many, SecondsOfEach(*narrow.worker, many, push));
      const double cpu_before = ProcessCpuSeconds();
      double t_wide = 0;
      Status status;
      const double wall = SecondsOf([&] {
        const Result<double> result = SecondsOfEach(*wide.worker, many, push);
        status = result.status();
        if (result.ok()) t_wide = *result;
      });
      HDPS_RETURN_IF_ERROR(status);
      const double busy = (ProcessCpuSeconds() - cpu_before) / wall;
      HDPS_ASSIGN_OR_RETURN(const double t_dense, SecondsOfEach(*chunks.worker, dense, push));
      const double row_narrow = (t_many - t_few) / double(kManyKeys - kFewKeys);
      const double base = Above0(t_few - row_narrow * double(kFewKeys));
      const double row_wide = (t_wide - base) / double(kManyKeys);
      const double a_float = Above0((row_wide - row_narrow) / double(kWide - kNarrow));
      const double a_row = Above0(row_narrow - kNarrow * a_float - split);
      (*samples)[name + "base"].push_back(kMicro * base);
      (*samples)[name + "row"].push_back(kNano * a_row);
      (*samples)[name + "float"].push_back(kNano * a_float);
      (*samples)[name + "dense_float"].push_back(
          kNano * Above0((t_dense - base) / double(kDenseKeys * kDense)));
      (*samples)["exchange.busy_cores"].push_back(busy);
    }
  }
  return Status();
}

// Core seconds of each request, by a server that has one.
struct CoreSeconds {
  double pull = 0, push = 0;
};
CoreSeconds TimeServer(RowsAlone& rows, const std::vector<PushRequest>& requests) {
  const auto each = static_cast<double>(requests.size());
  return {SecondsOf([&] { rows.PullAll(requests); }) / each,
          SecondsOf([&] { rows.PushAll(requests); }) / each};
}

Status MeasureServer(const BenchSetting& setting, ConstantSamples* samples) {
  HDPS_ASSIGN_OR_RETURN(const Job narrow_job, ParseJob(RowsJob(kNarrow, "adagrad"), "narrow", {}));
  HDPS_ASSIGN_OR_RETURN(const Job wide_job, ParseJob(RowsJob(kWide, "adagrad"), "wide", {}));
  HDPS_ASSIGN_OR_RETURN(const Job dense_job, ParseJob(RowsJob(kDense, "adagrad"), "dense", {}));
  RowsAlone narrow(narrow_job, 1), wide(wide_job, 1), dense(dense_job, 1);
  const size_t empty_bytes = narrow.bytes();
  for (const std::vector<Key>& list : AllKeys(kRows)) {
    narrow.PushAll(narrow.RequestsFor({list}));
    wide.PushAll(wide.RequestsFor({list}));
  }
  constexpr double kStates = 2;  // Adagrad: a float of state beside each weight.
  const double row_bytes = static_cast<double>(narrow.bytes() - empty_bytes) / double(kRows);
  (*samples)["server.index_row"].push_back(Above0(row_bytes - kStates * kNarrow * sizeof(float)));
  const KeyBatches many = ListsOf(kManyKeys, kRows);
  const auto narrow_requests = narrow.RequestsFor(many), wide_requests = wide.RequestsFor(many);
  const auto dense_requests = dense.RequestsFor(KeyBatches(6, AllKeys(kDenseKeys)[0]));
  TimeServer(dense, dense_requests);  // Makes the rows.
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
  }
  return Status();
}

Status MeasureMessages(const BenchSetting& setting, FileSystem& files, ConstantSamples* samples) {
  constexpr int kMessages = 500;
  HDPS_ASSIGN_OR_RETURN(const Served served, Serve(setting, files, "tcp", kNarrow, 1000));
  HDPS_ASSIGN_OR_RETURN(const auto wire, WireAlone::Make("tcp", setting.scratch));
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const double before = ProcessCpuSeconds();
    for (int i = 0; i < kMessages; ++i) HDPS_RETURN_IF_ERROR(served.worker->PullNothing());
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
  for (const char* transport : {"inproc", "tcp"}) {
    SayProgress("constants", std::string("exchanges, ") + transport);
    HDPS_RETURN_IF_ERROR(MeasureExchange(setting, files, transport, samples));
  }
  SayProgress("constants", "rows of a server");
  HDPS_RETURN_IF_ERROR(MeasureServer(setting, samples));
  return MeasureMessages(setting, files, samples);
}

}  // namespace hdps
