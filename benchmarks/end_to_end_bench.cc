// How fast a whole job trains, and where a step's time goes: Criteo's shape, one server, one
// worker.
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "common/executor.h"
#include "common/job.h"
#include "common/monotonic_clock.h"
#include "common/random.h"
#include "common/transport.h"
#include "kernels/dense_ops.h"
#include "scheduler/scheduler_process.h"
#include "server/server_process.h"
#include "worker/data/synthetic_log.h"
#include "worker/train/worker_process.h"

namespace hdps {
namespace {

// 13 numbers + 26 keys of 100,000 values each, dim 16, MLP 1024-512-256-128, batch 4096, one server
// and one worker over tcp.
constexpr char kCase[] = "wide_deep_criteo_shape_";  // And the device.
constexpr size_t kBatch = 4096;
constexpr uint64_t kSteps = 24;
constexpr size_t kInputs = 26 * 16 + 13;
constexpr size_t kLayers[] = {kInputs, 1024, 512, 256, 128, 1};

std::string JobText(const std::string& train, const std::string& device) {
  return R"({
    "name": "end_to_end", "data": {"format": "criteo", "train": [")" +
         train + R"("]},
    "model": {"type": "wide_deep", "embedding_dim": 16, "hidden": [1024, 512, 256, 128],
              "device": ")" +
         device + R"("},
    "train": {"batch_size": 4096, "epochs": 1}
  })";
}

// A member's transport over tcp, as daemons have it.
struct Line {
  PeerId self = NewPeerId();
  std::unique_ptr<Transport> transport;
  Line() { transport = NewZmqTransport({.self = self}); }
};

// One job from join to finish; the worker's times.
Result<StepTimes> TrainOnce(const BenchSetting& setting, FileSystem& files,
                            std::shared_ptr<const Job> job, const std::string& out) {
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.threads);
  SchedulerOptions options;
  options.job = job;
  options.out = out;
  SchedulerVoice voice;
  voice.notice = [](const std::string&) {};
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SchedulerNode> scheduler,
                        SchedulerNode::Make(options, voice, files));
  const std::unique_ptr<Transport> hall = NewZmqTransport({.self = kSchedulerPeer});
  HDPS_ASSIGN_OR_RETURN(const std::string address, hall->Listen("tcp://127.0.0.1:0"));

  Line server_line, worker_line;
  ServerProcessOptions server;
  server.job = job;
  server.self = server_line.self;
  server.scheduler_address = address;
  HDPS_ASSIGN_OR_RETURN(server.own_address, server_line.transport->Listen("tcp://127.0.0.1:0"));
  WorkerProcessOptions worker;
  worker.job = job;
  worker.self = worker_line.self;
  worker.scheduler_address = address;

  WorkerExit worker_exit;
  const auto server_thread = StartThread("server", [&] {
    RunServerProcess(server, *server_line.transport, *clock, files, *executor);
  });
  const auto worker_thread = StartThread("worker", [&] {
    worker_exit = RunWorkerProcess(worker, *worker_line.transport, *clock, files, *executor);
  });
  const SchedulerExit end = RunSchedulerProcess(*scheduler, *hall, *clock, nullptr);
  server_thread->Join();
  worker_thread->Join();
  if (end.status != 0) {
    return Status(end.status == 2 ? Code::kInvalidArgument : Code::kUnavailable, end.reason);
  }
  return worker_exit.times;
}

// The matrices of one layer boundary, on the device.
struct Boundary {
  Boundary(DenseOps& ops, size_t width, size_t next)
      : out(&ops), out_gradient(&ops), weights(&ops), weight_gradient(&ops) {
    const auto fill = [&ops](DeviceArray& array, size_t floats, float value) {
      ops.Upload(std::vector<float>(floats, value), array.Reserve(floats));
    };
    fill(out, kBatch * width, 0.5f);
    fill(out_gradient, kBatch * width, 0.25f);
    fill(weights, width * next, 0.01f);
    fill(weight_gradient, width * next, 0.0f);
  }
  DeviceArray out, out_gradient, weights, weight_gradient;
};

// The products of one step: of each layer its output, its weights' gradient, its input's gradient.
Result<double> ProductsPerSecond(const BenchSetting& setting) {
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.threads);
  std::unique_ptr<DenseOps> ops = NewCpuOps(*executor);
  if (setting.device == "cuda") {
    HDPS_ASSIGN_OR_RETURN(ops, NewCudaOps());
  }
  constexpr size_t kNumLayers = std::size(kLayers) - 1;
  std::vector<std::unique_ptr<Boundary>> at;
  for (size_t l = 0; l <= kNumLayers; ++l) {
    at.push_back(std::make_unique<Boundary>(*ops, kLayers[l], l < kNumLayers ? kLayers[l + 1] : 0));
  }
  const auto view = [](DeviceArray& array, size_t rows, size_t cols) {
    return Matrix{array.Reserve(rows * cols), rows, cols, cols};
  };
  const auto step = [&] {
    for (size_t l = 0; l < kNumLayers; ++l) {
      ops->Gemm({}, view(at[l]->out, kBatch, kLayers[l]),
                view(at[l]->weights, kLayers[l], kLayers[l + 1]),
                view(at[l + 1]->out, kBatch, kLayers[l + 1]));
    }
    for (size_t l = kNumLayers; l-- > 0;) {
      const Matrix gradient = view(at[l + 1]->out_gradient, kBatch, kLayers[l + 1]);
      ops->Gemm({.transpose_a = true}, view(at[l]->out, kBatch, kLayers[l]), gradient,
                view(at[l]->weight_gradient, kLayers[l], kLayers[l + 1]));
      ops->Gemm({.transpose_b = true}, gradient, view(at[l]->weights, kLayers[l], kLayers[l + 1]),
                view(at[l]->out_gradient, kBatch, kLayers[l]));
    }
    float last = 0;  // Waits for the device.
    ops->Download(at[0]->weight_gradient.Reserve(1), {&last, 1});
  };
  step();  // Warms up.
  constexpr int kTimes = 4;
  const double seconds = SecondsOf([&] {
    for (int time = 0; time < kTimes; ++time) step();
  });
  return kTimes * kBatch / seconds;
}

// Milliseconds of each part of a step, in the order in which they are printed. All but the last two
// add up to the first; those belong to the reader's thread, which overlaps the step.
std::vector<std::pair<std::string, double>> PartsOf(const StepTimes& times) {
  const auto ms = [&](int64_t ns) {
    return static_cast<double>(ns) * 1e-6 / static_cast<double>(times.steps);
  };
  const int64_t named = times.read_wait_ns + times.pull_wait_ns + times.compute_ns +
                        times.reduce_dense_ns + times.push_wait_ns;
  return {{"whole step", ms(times.total_ns)}, {"reader wait", ms(times.read_wait_ns)},
          {"pull", ms(times.pull_wait_ns)},   {"compute", ms(times.compute_ns)},
          {"push", ms(times.push_wait_ns)},   {"other", ms(times.total_ns - named)},
          {"reader read", ms(times.read_ns)}, {"reader dedup", ms(times.dedup_ns)}};
}

}  // namespace

Status RunEndToEndBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  const std::string name = kCase + setting.device;
  if (!setting.Wants(name)) return Status();
  SyntheticLogSpec log;
  log.rows = kSteps * kBatch;
  log.eval_rows = 1000;
  log.vocabulary = 100000;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  HDPS_ASSIGN_OR_RETURN(
      Job parsed,
      ParseJob(JobText(JoinPath(setting.scratch, "train.tsv"), setting.device), "end_to_end", {}));
  const auto job = std::make_shared<const Job>(std::move(parsed));
  std::vector<double> speeds, products;
  std::vector<std::pair<std::string, std::vector<double>>> parts;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {  // In turns: noise hits both alike.
    SayProgress("end_to_end", name + ", run " + std::to_string(repeat + 1));
    const std::string out = JoinPath(setting.scratch, "out_" + std::to_string(repeat));
    HDPS_ASSIGN_OR_RETURN(const StepTimes times, TrainOnce(setting, files, job, out));
    if (times.steps == 0) return Status(Code::kUnavailable, "end_to_end: the job made no step");
    HDPS_ASSIGN_OR_RETURN(const double alone, ProductsPerSecond(setting));
    products.push_back(alone);
    speeds.push_back(static_cast<double>(times.examples) * 1e9 /
                     static_cast<double>(times.total_ns));
    const auto of_run = PartsOf(times);
    parts.resize(of_run.size());
    for (size_t p = 0; p < of_run.size(); ++p) {
      parts[p].first = of_run[p].first;
      parts[p].second.push_back(of_run[p].second);
    }
  }
  report.AddBeside("end_to_end", name, "examples", "examples/s", speeds, "matrix products alone",
                   products);
  for (const auto& [part, samples] : parts) {
    report.Add("end_to_end", name, part, "ms", samples);
  }
  return Status();
}

}  // namespace hdps
