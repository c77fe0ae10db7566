// Measures how much of the exchanges of a step is hidden by copies of the model that take turns: of
// exchanges between layers, if a round trip takes as long as the work between two of them, and of
// pulls and pushes over a slow link.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/far_group.h"
#include "benchmarks/clusters/job_run.h"
#include "benchmarks/clusters/slow_link.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tools/synthetic/synthetic_log.h"
#include "worker/model/layer.h"
#include "worker/model/step_parts.h"
#include "worker/step/lane_exchange.h"

namespace hdps {
namespace {

constexpr char kBench[] = "interleave";
constexpr int64_t kRoundTripMs = 5;
constexpr uint32_t kExchanges = 3;  // Forward, and as many backward.
constexpr uint32_t kNumbers = 32, kUnits = 256;
constexpr uint32_t kCopies[] = {1, 2, 4};  // The first is the yardstick of the others.

// Gives what it gets, once every worker has given.
class EchoLayer : public ExchangeLayer {
 public:
  explicit EchoLayer(uint32_t place) : place_(place) {}

  void BeginForward(Pass& pass) override { Begin(pass); }
  Status EndForward(Pass& pass) override {
    HDPS_RETURN_IF_ERROR(pass.exchange->Wait(ticket_));
    const Place& self = pass.places[place_];
    pass.ops.Copy(Write::kOver, pass.places[self.inputs[0]].value, self.value);
    return {};
  }
  void BeginBackward(Pass& pass) override { Begin(pass); }
  Status EndBackward(Pass& pass) override {
    HDPS_RETURN_IF_ERROR(pass.exchange->Wait(ticket_));
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    pass.ops.Copy(input.NextGradient(), self.gradient, input.gradient);
    return {};
  }

 private:
  void Begin(Pass& pass) {
    ticket_ = pass.exchange->Start(pass.lane, [](Collective* group) {
      return group == nullptr ? Status() : group->Barrier();
    });
  }

  const uint32_t place_;
  StepExchange::Ticket ticket_ = 0;
};

LayerRecord Echo() {
  LayerRecord record;
  record.kind = "echo";
  record.gives = "its input, once every worker has given its own";
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    return question.LikeInput();
  };
  record.make = [](const LayerSite& site) { return std::make_unique<EchoLayer>(site.place); };
  return record;
}

Result<Job> EchoJob() {
  JobRegistry registry = BuiltInRegistry();
  HDPS_RETURN_IF_ERROR(registry.layers.Add(Echo()));
  std::string columns = R"({"name": "y", "type": "label"})";
  for (uint32_t i = 0; i < kNumbers; ++i) {
    columns += R"(, {"name": "x)" + std::to_string(i) + R"(", "type": "numeric"})";
  }
  std::string layers = R"({"name": "echo0", "kind": "numeric"})";
  for (uint32_t i = 1; i <= kExchanges; ++i) {
    const std::string number = std::to_string(i);
    layers += R"(, {"name": "deep)" + number + R"(", "inputs": ["echo)" + std::to_string(i - 1) +
              R"("], "units": )" + std::to_string(kUnits) + R"(, "activation": "relu"},
              {"name": "echo)" +
              number + R"(", "kind": "echo", "inputs": ["deep)" + number + R"("]})";
  }
  layers += R"(, {"name": "last", "inputs": ["echo)" + std::to_string(kExchanges) +
            R"("], "units": )" + std::to_string(kUnits) + R"(, "activation": "relu"},
            {"name": "logit", "inputs": ["last"], "units": 1})";
  return ParseJob(R"({"data": {"train": ["none"], "columns": [)" + columns +
                      R"(]}, "model": {"type": "graph", "device": "cpu", "layers": [)" + layers +
                      "]}}",
                  "interleave", {}, registry);
}

Batch BatchOf(uint32_t examples) {
  Random random(1);
  Batch batch;
  batch.num_examples = examples;
  batch.num_numeric = kNumbers;
  for (uint32_t i = 0; i < examples; ++i) {
    batch.labels.push_back(static_cast<float>(random.Below(2)));
    for (uint32_t j = 0; j < kNumbers; ++j) {
      batch.numeric.push_back(static_cast<float>(random.Normal()));
    }
  }
  return batch;
}

// Copies of a model on one batch.
class CopiesAtWork {
 public:
  CopiesAtWork(Job job, Executor& executor, MonotonicClock& clock)
      : job_(std::move(job)), clock_(clock), finder_(job_) {
    model_ = *NewModel(job_, executor);
    model_->SetDense(model_->InitialDense(1));
    for (size_t i = 0; i < kCopies[std::size(kCopies) - 1]; ++i) {
      groups_.push_back(std::make_unique<FarGroup>(kRoundTripMs));
    }
  }

  // Returns the milliseconds of a step, the mean over `steps`; `far`: with the round trips.
  Result<double> StepMs(uint32_t examples, uint32_t copies, bool far, int steps) {
    StepParts parts;
    parts.Assign(BatchOf(examples), PartCount{1, copies}, finder_);
    std::vector<StepResult> results(copies);
    std::vector<std::vector<float>> dense(copies, std::vector<float>(model_->dense_floats()));
    const std::vector<TableInput> tables(job_.tables.size());
    std::vector<StepLane> lanes;
    std::vector<Collective*> groups;
    for (uint32_t i = 0; i < copies; ++i) {
      lanes.push_back({&parts.parts()[i].batch, tables, &results[i], dense[i]});
      if (far) groups.push_back(groups_[i].get());
    }
    LaneExchange exchange(groups, clock_);
    int64_t begin = 0;
    for (int step = -1; step < steps; ++step) {  // The first step allocates memory.
      if (step == 0) begin = clock_.NowNs();
      exchange.BeginStep(std::vector<uint32_t>(copies, 0));
      HDPS_RETURN_IF_ERROR(exchange.EndStep(model_->Step(lanes, &exchange, nullptr, nullptr)));
    }
    return static_cast<double>(clock_.NowNs() - begin) * 1e-6 / steps;
  }

 private:
  const Job job_;
  MonotonicClock& clock_;
  KeyFinder finder_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<FarGroup>> groups_;
};

Status MeasureRoundTrips(const BenchSetting& setting, BenchReport& report) {
  HDPS_ASSIGN_OR_RETURN(Job job, EchoJob());
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.threads);
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  CopiesAtWork work(std::move(job), *executor, *clock);
  const int steps = setting.quick ? 5 : 20;
  // Examples whose computation takes as long as all round trips.
  uint32_t examples = 512;
  for (int round = 0; round < 3; ++round) {
    HDPS_ASSIGN_OR_RETURN(const double ms, work.StepMs(examples, 1, false, steps));
    examples =
        std::max(64u, static_cast<uint32_t>(examples * 2.0 * kExchanges * kRoundTripMs / ms));
  }
  std::vector<double> compute_ms;
  std::vector<std::vector<double>> step_ms(std::size(kCopies)), rates(std::size(kCopies));
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, "run " + std::to_string(repeat + 1));
    HDPS_ASSIGN_OR_RETURN(compute_ms.emplace_back(), work.StepMs(examples, 1, false, steps));
    for (size_t c = 0; c < std::size(kCopies); ++c) {
      HDPS_ASSIGN_OR_RETURN(const double ms, work.StepMs(examples, kCopies[c], true, steps));
      step_ms[c].push_back(ms);
      rates[c].push_back(1e3 * examples / ms);
    }
  }
  report.Add(kBench, "round_trips", "compute alone, 1 copy", "ms", compute_ms);
  for (size_t c = 0; c < std::size(kCopies); ++c) {
    const std::string copies = std::to_string(kCopies[c]) + (c == 0 ? " copy" : " copies");
    report.Add(kBench, "round_trips", "step, " + copies, "ms", step_ms[c]);
    if (c == 0) continue;
    report.AddBeside(kBench, "round_trips", "examples, " + copies, "examples/s", rates[c], "1 copy",
                     rates[0]);
  }
  return Status();
}

// ---- Pulls and pushes.

constexpr uint32_t kBatch = 2048;
constexpr int64_t kFirstSteps = 4;  // Not counted: they make rows and allocate memory.

// Links over which a step's rows and gradients together take as long as computing, or each do.
struct LinkCase {
  const char* name;
  double times_compute;  // Transfers and round trip, as a multiple of computing.
};
constexpr LinkCase kLinks[] = {{"rows_as_compute", 1}, {"rows_each_as_compute", 2}};

// Returns a job with 26 keys per example, each uniform over 20,000 values, so that few keys are of
// several copies. The dense layers are the worker's own (allreduce): only rows go over the link.
JobRunOptions RowsJob(const std::string& scratch, uint32_t copies, const std::string& run) {
  JobRunOptions options;
  options.job = R"({"name": "copies",
    "data": {"format": "criteo", "train": [")" +
                JoinPath(scratch, "train.tsv") + R"("]},
    "model": {"type": "wide_deep", "embedding_dim": 32, "hidden": [1024, 512], "device": "cpu"},
    "parallel": {"dense_exchange": "allreduce"},
    "train": {"batch_size": )" +
                std::to_string(kBatch) + R"(, "epochs": 1, "eval_each_epoch": false}})";
  options.overrides = {"parallel.interleave_num=" + std::to_string(copies)};
  options.out = JoinPath(scratch, run);
  options.steady_from = kFirstSteps;
  return options;
}

double MsOf(const JobRun& run, int64_t StepTimes::*ns) {
  const StepTimes& times = run.steady_times;
  return static_cast<double>(times.*ns) * 1e-6 / static_cast<double>(times.steps);
}

Status MeasureRows(const BenchSetting& setting, FileSystem& files, const LinkCase& of,
                   BenchReport& report) {
  SyntheticLogSpec log;
  const int64_t steps = setting.quick ? 8 : 20;
  log.rows = uint64_t{kBatch} * static_cast<uint64_t>(steps);
  log.eval_rows = 0;
  log.vocabulary = 20'000;
  log.zipf = 0;
  HDPS_RETURN_IF_ERROR(WriteSyntheticLog(files, setting.scratch, log).status());
  int runs = 0;
  const auto run = [&](uint32_t copies, SlowLink& link) {
    JobRunOptions options = RowsJob(setting.scratch, copies, of.name + std::to_string(runs++));
    options.server_link = &link;
    options.steady_to = steps - 1;
    return RunJob(setting, files, options);
  };
  std::vector<double> compute_ms, pulled;
  std::vector<std::vector<double>> step_ms(std::size(kCopies)), rates(std::size(kCopies)),
      busy_ms(std::size(kCopies));
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, std::string(of.name) + ", run " + std::to_string(repeat + 1));
    SlowLink free;
    HDPS_ASSIGN_OR_RETURN(const JobRun plain, run(1, free));
    compute_ms.push_back(MsOf(plain, &StepTimes::compute_ns));
    pulled.push_back(static_cast<double>(free.bytes_pulled) /
                     static_cast<double>(plain.times.steps));
    for (size_t c = 0; c < std::size(kCopies); ++c) {
      SlowLink link;
      link.pushes_too = true;
      link.round_trip_ns = kRoundTripMs * 1'000'000;
      // A step pushes as many bytes as it pulls.
      const double transfers_ms = of.times_compute * compute_ms.back() - kRoundTripMs;
      link.ns_per_byte = std::max(transfers_ms, 0.0) * 1e6 / (2 * pulled.back());
      HDPS_ASSIGN_OR_RETURN(const JobRun slow, run(kCopies[c], link));
      step_ms[c].push_back(MsOf(slow, &StepTimes::total_ns));
      rates[c].push_back(1e3 * kBatch / step_ms[c].back());
      busy_ms[c].push_back(MsOf(slow, &StepTimes::compute_ns));
    }
  }
  report.Add(kBench, of.name, "compute without delay, 1 copy", "ms", compute_ms);
  for (size_t c = 0; c < std::size(kCopies); ++c) {
    const std::string copies = std::to_string(kCopies[c]) + (c == 0 ? " copy" : " copies");
    report.Add(kBench, of.name, "step, " + copies, "ms", step_ms[c]);
    report.Add(kBench, of.name, "compute, " + copies, "ms", busy_ms[c]);
    if (c == 0) continue;
    report.AddBeside(kBench, of.name, "examples, " + copies, "examples/s", rates[c], "1 copy",
                     rates[0]);
  }
  return Status();
}

}  // namespace

Status RunInterleaveBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  if (setting.Wants("round_trips")) HDPS_RETURN_IF_ERROR(MeasureRoundTrips(setting, report));
  for (const LinkCase& link : kLinks) {
    if (setting.Wants(link.name)) {
      HDPS_RETURN_IF_ERROR(MeasureRows(setting, files, link, report));
    }
  }
  return Status();
}

}  // namespace hdps
