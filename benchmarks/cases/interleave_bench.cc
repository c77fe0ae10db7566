// Measures how much of the exchanges within a step is hidden by copies of the model that take
// turns, if a round trip takes as long as the work between two of them.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/far_group.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
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

}  // namespace

Status RunInterleaveBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  if (!setting.Wants("round_trips")) return Status();
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

}  // namespace hdps
