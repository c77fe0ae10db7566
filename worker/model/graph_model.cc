// Runs a model as a graph of layers on one device: forward in the order of the job, backward
// reversed, and the lanes of a step in turns.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/telemetry/span_recorder.h"
#include "worker/model/describe.h"
#include "worker/model/graph.h"
#include "worker/model/graph_lane.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

// Reports one segment of a lane to the exchange's watch.
class LaneSpan {
 public:
  LaneSpan(StepExchange* exchange, size_t lane, const char* what, size_t segment)
      : span_(
            exchange == nullptr ? nullptr : exchange->recorder(),
            [lane] { return "lane " + std::to_string(lane); },
            [what, segment] { return std::string(what) + " " + std::to_string(segment); }) {}

 private:
  const RecordedSpan span_;
};

// The devices that compute a model.
struct DeviceOps {
  std::unique_ptr<DenseOps> main;
  // For layers that are not on the main device; null if there are none.
  std::unique_ptr<DenseOps> host;
};

class GraphModel : public Model {
 public:
  GraphModel(const Job& job, DeviceOps ops, Graph graph)
      : job_(job),
        numeric_columns_(FeaturesOf(job.data).numeric.size()),
        sparse_columns_(FeaturesOf(job.data).sparse.size()),
        ops_(std::move(ops.main)),
        host_ops_(std::move(ops.host)),
        dense_(ops_.get()) {
    lanes_.push_back(std::make_unique<GraphLane>(job_, *ops_, std::move(graph)));
  }

  const std::vector<DenseTensor>& tensors() const override { return graph().tensors; }

  void SetDense(std::span<const float> flat) override {
    CHECK_EQ(flat.size(), dense_floats());
    ops_->Upload(flat, dense_.Reserve(flat.size()));
  }

  std::span<float> DenseInPlace() override {
    if (!ops_->on_host()) return {};
    return {dense_.Reserve(dense_floats()), dense_floats()};
  }

  float* DenseOnDevice() override {
    return ops_->on_host() ? nullptr : dense_.Reserve(dense_floats());
  }

  Status CheckBatch(const Batch& batch) const override;
  bool has_exchange() const override { return lanes_[0]->segments() > 1; }
  using Model::Step;
  Status Step(std::span<const StepLane> lanes, StepExchange* exchange, const RowsDone& rows_done,
              const TensorDone& tensor_done) override;
  using Model::Predict;
  Result<double> Predict(const Batch& batch, std::span<const TableInput> tables,
                         StepExchange* exchange, const PassRows& rows,
                         std::vector<float>* probabilities) override;
  std::vector<float> Logits(size_t lane) override { return lanes_[lane]->FetchLogits(); }
  const float* RowGradientsOnDevice(uint32_t table, size_t lane) const override {
    return ops_->on_host() ? nullptr : lanes_[lane]->row_gradients_on_device(table);
  }
  DenseOps& ops() override { return *ops_; }
  std::string Describe() const override { return DescribeGraph(job_, graph(), ops_->device()); }

 private:
  const Graph& graph() const { return lanes_[0]->graph(); }
  // Checks the labels of one task.
  Status CheckLabels(const Batch& batch, size_t task, const TaskSpec& spec) const;
  void SetRowsAlike(bool alike) {
    ops_->SetRowsAlike(alike);
    if (host_ops_ != nullptr) host_ops_->SetRowsAlike(alike);
  }
  // Makes copies of the graph until there are `count` lanes.
  void EnsureLanes(size_t count);
  // Computes a step of lanes whose passes have begun.
  Status Compute(std::span<const StepLane> lanes, StepExchange* exchange, const RowsDone& rows_done,
                 const TensorDone& tensor_done);
  // Run the first `count` lanes.
  Status Forward(size_t count, StepExchange* exchange);
  Status Backward(size_t count, StepExchange* exchange, const TensorDone& tensor_done);
  void TakeLosses(std::span<const StepLane> lanes);
  void FinishOnDevice(std::span<const StepLane> lanes, const RowsDone& rows_done,
                      const TensorDone& tensor_done);

  const Job job_;
  const size_t numeric_columns_, sparse_columns_;
  const std::unique_ptr<DenseOps> ops_, host_ops_;  // The second may be null: see DeviceOps.
  DeviceArray dense_;                               // [dense_floats]
  std::vector<std::unique_ptr<GraphLane>> lanes_;   // One, and those that steps have needed.
};

Status GraphModel::CheckBatch(const Batch& batch) const {
  const auto mistake = [](const std::string& what) {
    return Status(Code::kInvalidArgument, "batch: " + what);
  };
  const std::vector<TaskSpec> tasks = TasksOf(job_.model);
  if (batch.num_labels != tasks.size() ||
      batch.labels.size() != size_t{batch.num_examples} * tasks.size()) {
    return mistake(std::to_string(batch.labels.size()) + " labels for " +
                   std::to_string(batch.num_examples) + " examples of " +
                   std::to_string(tasks.size()) + (tasks.size() == 1 ? " task" : " tasks"));
  }
  const bool weights = batch.weights.empty() || batch.weights.size() == batch.num_examples;
  const bool no_groups = batch.groups.empty() && tasks[0].loss != LossKind::kBpr;
  if (!weights || (!no_groups && batch.groups.size() != batch.num_examples)) {
    return mistake(std::to_string(batch.weights.size()) + " weights and " +
                   std::to_string(batch.groups.size()) + " groups for " +
                   std::to_string(batch.num_examples) + " examples");
  }
  if (batch.num_numeric != numeric_columns_ ||
      batch.numeric.size() != size_t{batch.num_numeric} * batch.num_examples) {
    return mistake(std::to_string(batch.num_numeric) + " numeric columns, the job's data has " +
                   std::to_string(numeric_columns_));
  }
  if (batch.sparse.size() != sparse_columns_) {
    return mistake(std::to_string(batch.sparse.size()) + " sparse features, the job's data has " +
                   std::to_string(sparse_columns_));
  }
  for (size_t t = 0; t < tasks.size(); ++t) HDPS_RETURN_IF_ERROR(CheckLabels(batch, t, tasks[t]));
  return {};
}

Status GraphModel::CheckLabels(const Batch& batch, size_t task, const TaskSpec& spec) const {
  const bool softmax = spec.loss == LossKind::kSoftmax, any = spec.loss == LossKind::kSquared;
  const float top = softmax ? static_cast<float>(graph().places.back().width - 1) : 1.0f;
  for (size_t at = task; at < batch.labels.size(); at += batch.num_labels) {
    const float label = batch.labels[at];
    if (any && std::isfinite(label)) continue;
    if (!any && label >= 0.0f && label <= top && (!softmax || std::floor(label) == label)) continue;
    return Status(Code::kInvalidArgument,
                  "batch: row " + std::to_string(at / batch.num_labels) + " (step begins at row " +
                      std::to_string(batch.first_row) + " of the epoch): label " +
                      std::to_string(label) + ", must be " +
                      (any       ? "a finite number"
                       : softmax ? "a class number in 0.." + std::to_string(static_cast<int>(top))
                                 : "in 0..1"));
  }
  return {};
}

void GraphModel::EnsureLanes(size_t count) {
  while (lanes_.size() < count) {
    Result<Graph> graph = BuildGraph(job_, *ops_, host_ops_.get());
    CHECK(graph.ok()) << graph.status().message();  // The first graph was built from the same job.
    lanes_.push_back(std::make_unique<GraphLane>(job_, *ops_, *std::move(graph)));
  }
}

Status GraphModel::Forward(size_t count, StepExchange* exchange) {
  for (size_t segment = 0; segment < lanes_[0]->segments(); ++segment) {
    for (size_t i = 0; i < count; ++i) {
      const LaneSpan span(exchange, i, "forward", segment);
      HDPS_RETURN_IF_ERROR(lanes_[i]->ForwardSegment(segment));
    }
  }
  return {};
}

Status GraphModel::Backward(size_t count, StepExchange* exchange, const TensorDone& tensor_done) {
  for (size_t segment = lanes_[0]->segments(); segment-- > 0;) {
    for (size_t i = 0; i < count; ++i) {
      const LaneSpan span(exchange, i, "backward", segment);
      HDPS_RETURN_IF_ERROR(
          lanes_[i]->BackwardSegment(segment, i + 1 == count ? tensor_done : nullptr));
    }
  }
  return {};
}

Status GraphModel::Step(std::span<const StepLane> lanes, StepExchange* exchange,
                        const RowsDone& rows_done, const TensorDone& tensor_done) {
  CHECK_EQ(dense_.size() >= dense_floats(), true) << "SetDense comes before the first pass";
  CHECK(lanes.size() == 1 || exchange != nullptr);
  EnsureLanes(lanes.size());
  const PassTerms terms{dense_.data(), true, rows_done != nullptr, exchange};
  for (size_t i = 0; i < lanes.size(); ++i) {
    CHECK_EQ(lanes[i].dense_gradients.size, dense_floats());
    lanes_[i]->Begin(lanes[i], terms, i);
  }
  ops_->BeginStep();
  const Status status = Compute(lanes, exchange, rows_done, tensor_done);
  ops_->EndStep();
  return status;
}

Status GraphModel::Compute(std::span<const StepLane> lanes, StepExchange* exchange,
                           const RowsDone& rows_done, const TensorDone& tensor_done) {
  HDPS_RETURN_IF_ERROR(Forward(lanes.size(), exchange));
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes_[i]->TrainLoss();
    lanes_[i]->PrepareGradients(lanes[i]);
  }
  if (ops_->on_host()) TakeLosses(lanes);
  HDPS_RETURN_IF_ERROR(Backward(lanes.size(), exchange, tensor_done));
  for (size_t i = 0; i < lanes.size(); ++i) lanes_[i]->FetchRowGradients(lanes[i]);
  ops_->StartFetches();
  if (ops_->on_host() && rows_done != nullptr) rows_done();
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes_[i]->FinishBackward(i + 1 == lanes.size() ? tensor_done : nullptr);
  }
  if (!ops_->on_host()) FinishOnDevice(lanes, rows_done, tensor_done);
  return {};
}

void GraphModel::TakeLosses(std::span<const StepLane> lanes) {
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i].result->loss_sum = lanes_[i]->LossSum();
}

// Finishes a step on a device, which computes the gradients of tensors while losses and row
// gradients travel.
void GraphModel::FinishOnDevice(std::span<const StepLane> lanes, const RowsDone& rows_done,
                                const TensorDone& tensor_done) {
  ops_->EndFetches();
  TakeLosses(lanes);
  if (rows_done != nullptr) rows_done();
  ops_->Fetch();
  for (size_t i = 0; i < lanes.size(); ++i) {
    lanes_[i]->FinishAllTensors(i + 1 == lanes.size() ? tensor_done : nullptr);
  }
}

Result<double> GraphModel::Predict(const Batch& batch, std::span<const TableInput> tables,
                                   StepExchange* exchange, const PassRows& rows,
                                   std::vector<float>* probabilities) {
  CHECK_EQ(dense_.size() >= dense_floats(), true) << "SetDense comes before the first pass";
  const StepLane lane{&batch, tables, nullptr, {}, rows};
  lanes_[0]->Begin(lane, {.dense = dense_.data(), .exchange = exchange}, 0);
  SetRowsAlike(true);
  const Status forward = Forward(1, exchange);
  SetRowsAlike(false);
  HDPS_RETURN_IF_ERROR(forward);
  return lanes_[0]->Score(probabilities);
}

// Makes the CPU's ops; logs once per process what a job that asks for bf16 or tf32 gets.
std::unique_ptr<DenseOps> OpsOfCpu(const ModelSpec& model, Executor& executor) {
  if (model.precision == Precision::kTf32) {
    LOG_FIRST_N(WARNING, 1) << "model.precision: tf32 is of GPUs; this CPU multiplies in fp32";
  }
  if (model.precision != Precision::kBf16) return NewCpuOps(executor);
  const Bf16Products bf16 = Bf16ProductsOfThisMachine();
  if (bf16 == Bf16Products::kNone) {
    LOG_FIRST_N(WARNING, 1) << "model.precision: bf16: this CPU, or HDPS_MAX_VECTOR_WIDTH, has "
                               "neither AMX nor AVX512-BF16; dense layers multiply in fp32";
  } else {
    LOG_FIRST_N(INFO, 1) << "dense layers multiply in bf16 by " << Bf16ProductsName(bf16);
  }
  return NewCpuOps(executor, bf16);
}

Result<std::unique_ptr<DenseOps>> ChooseOps(const ModelSpec& model, Executor& executor,
                                            uint32_t worker) {
  const std::string& device = model.device;
  if (device != "auto" && device != "cpu" && device != "cuda") {
    return Status(Code::kInvalidArgument,
                  "model.device: '" + device + "' is not a device; use auto, cpu or cuda");
  }
  if (device == "cpu") return OpsOfCpu(model, executor);
  Result<std::unique_ptr<DenseOps>> cuda = NewCudaOps({&executor, worker, model.precision});
  if (cuda.ok()) return cuda;
  if (device == "auto") return OpsOfCpu(model, executor);
  return Status(Code::kInvalidArgument,
                "model.device: cuda: " + cuda.status().message() + "; use cpu or auto");
}

}  // namespace

void Model::Step(const Batch& batch, std::span<const TableInput> tables, StepResult* result,
                 const DenseGradients& dense_gradients, const RowsDone& rows_done,
                 const TensorDone& tensor_done) {
  const StepLane lane{&batch, tables, result, dense_gradients};
  CHECK(Step({&lane, 1}, nullptr, rows_done, tensor_done).ok()) << "only an exchange fails";
}

double Model::Predict(const Batch& batch, std::span<const TableInput> tables,
                      std::vector<float>* probabilities) {
  return *Predict(batch, tables, nullptr, {}, probabilities);
}

Result<std::unique_ptr<Model>> NewModel(const Job& job, Executor& executor, uint32_t worker) {
  DeviceOps ops;
  HDPS_ASSIGN_OR_RETURN(ops.main, ChooseOps(job.model, executor, worker));
  const auto asks_for = [&job](const char* device) {
    return std::ranges::find(job.model.layers, device, &LayerSpec::device);
  };
  if (const auto layer = asks_for("cuda"); ops.main->on_host() && layer != job.model.layers.end()) {
    return Status(Code::kInvalidArgument, "model.layers: \"" + layer->name +
                                              "\": device cuda: the model is on the CPU; use auto, "
                                              "or a machine with a GPU and model.device cuda");
  }
  if (!ops.main->on_host() && asks_for("cpu") != job.model.layers.end()) {
    ops.host = NewCpuOps(executor);
  }
  HDPS_ASSIGN_OR_RETURN(Graph graph, BuildGraph(job, *ops.main, ops.host.get()));
  return std::unique_ptr<Model>(
      std::make_unique<GraphModel>(job, std::move(ops), std::move(graph)));
}

}  // namespace hdps
