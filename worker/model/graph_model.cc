// A model as a graph of layers on one device: forward in the order of the job, backward reversed.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/model/describe.h"
#include "worker/model/graph.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

class GraphModel : public Model {
 public:
  GraphModel(const Job& job, std::unique_ptr<DenseOps> ops, Graph graph)
      : job_(job),
        numeric_columns_(FeaturesOf(job.data).numeric.size()),
        sparse_columns_(FeaturesOf(job.data).sparse.size()),
        ops_(std::move(ops)),
        graph_(std::move(graph)),
        activations_(ops_.get(), graph_.places.size()),
        loss_(job, *ops_),
        dense_(ops_.get()),
        dense_gradients_(ops_.get()) {
    for (size_t t = 0; t < job.tables.size(); ++t) {
      rows_.push_back(std::make_unique<DeviceArray>(ops_.get()));
      row_gradients_.push_back(std::make_unique<DeviceArray>(ops_.get()));
    }
  }

  const std::vector<DenseTensor>& tensors() const override { return graph_.tensors; }

  void SetDense(std::span<const float> flat) override {
    CHECK_EQ(flat.size(), dense_floats());
    ops_->Upload(flat, dense_.Reserve(flat.size()));
  }

  std::span<float> DenseInPlace() override {
    if (!ops_->on_host()) return {};
    return {dense_.Reserve(dense_floats()), dense_floats()};
  }

  Status CheckBatch(const Batch& batch) const override;
  void Step(const Batch& batch, std::span<const TableInput> tables, StepResult* result,
            std::span<float> dense_gradients, const RowsDone& rows_done,
            const TensorDone& tensor_done) override;
  double Predict(const Batch& batch, std::span<const TableInput> tables,
                 std::vector<float>* probabilities) override;
  const float* RowGradientsOnDevice(uint32_t table) const override {
    return ops_->on_host() ? nullptr : row_gradients_[table]->data();
  }
  DenseOps& ops() override { return *ops_; }
  std::string Describe() const override { return DescribeGraph(job_, graph_, ops_->device()); }

 private:
  // The labels of one task.
  Status CheckLabels(const Batch& batch, size_t task, const TaskSpec& spec) const;
  // Lays out the pass over `batch` and runs it forward.
  Pass Forward(const Batch& batch, std::span<const TableInput> tables, bool training);
  // The rows of a table on another device.
  std::span<const float> BringRows(size_t table, const TableInput& input);
  void Backward(Pass& pass, const TensorDone& tensor_done);
  void FinishBackward(Pass& pass, const TensorDone& tensor_done);
  // Where the rows' gradients go: into the result itself where the device allows.
  void PrepareRowGradients(std::span<const TableInput> tables, StepResult* result);
  void FinishRowGradients(std::span<const TableInput> tables, StepResult* result);
  // The gradients of the tensors of a place stand: zeros for what nothing was computed for.
  void FinishTensors(size_t place, std::span<float> gradients, const TensorDone& tensor_done);

  const Job job_;
  const size_t numeric_columns_, sparse_columns_;
  const std::unique_ptr<DenseOps> ops_;
  Graph graph_;
  Activations activations_;
  ModelLoss loss_;
  DeviceArray dense_, dense_gradients_;  // [dense_floats]; gradients unused where spans are.
  std::vector<std::unique_ptr<DeviceArray>> rows_, row_gradients_;  // [tables]; likewise.
  std::vector<TablePass> tables_;                                   // Of the current pass.
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
  const float top = softmax ? static_cast<float>(graph_.places.back().width - 1) : 1.0f;
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

Pass GraphModel::Forward(const Batch& batch, std::span<const TableInput> tables, bool training) {
  CHECK_EQ(tables.size(), job_.tables.size());
  CHECK_EQ(dense_.size() >= dense_floats(), true) << "SetDense comes before the first pass";
  tables_.assign(tables.size(), {});
  for (size_t t = 0; t < tables.size(); ++t) {
    if (tables[t].keys == nullptr) continue;
    CHECK_EQ(tables[t].rows.size(), tables[t].keys->unique.size() * job_.tables[t].dim);
    tables_[t].keys = tables[t].keys;
    tables_[t].rows = tables[t].rows;
    if (!ops_->on_host()) tables_[t].rows = BringRows(t, tables[t]);
  }
  activations_.Lay(batch.num_examples, graph_.places);
  Pass pass{*ops_, batch, graph_.places, tables_};
  pass.dense = dense_.data();
  pass.training = training;
  for (size_t p = 0; p < graph_.places.size(); ++p) {
    if (graph_.places[p].used) graph_.layers[p]->Forward(pass);
  }
  return pass;
}

std::span<const float> GraphModel::BringRows(size_t table, const TableInput& input) {
  const RowSpans<const float>& rows = input.rows;
  const std::span<float> there(rows_[table]->Reserve(rows.size()), rows.size());
  if (input.slab != nullptr) {
    CHECK_LE(rows.count(), 1u);
    const std::span<const float> outside = rows.empty() ? std::span<const float>() : rows.piece(0);
    ops_->GatherRows(*input.slab, input.slots, outside, there.data());
    return there;
  }
  for (size_t p = 0; p < rows.count(); ++p) {
    ops_->Upload(rows.piece(p), there.data() + rows.begin(p));
  }
  return there;
}

void GraphModel::Backward(Pass& pass, const TensorDone& tensor_done) {
  const bool told = !pass.tensors_later && ops_->on_host();
  const std::span<float> gradients(pass.dense_gradients, dense_floats());
  for (size_t p = graph_.places.size(); p-- > 0;) {
    const Place& place = graph_.places[p];
    if (place.used && place.learns) graph_.layers[p]->Backward(pass);
    if (told) FinishTensors(p, gradients, tensor_done);
  }
}

void GraphModel::FinishBackward(Pass& pass, const TensorDone& tensor_done) {
  const std::span<float> gradients(pass.dense_gradients, dense_floats());
  for (size_t p = graph_.places.size(); p-- > 0;) {
    const Place& place = graph_.places[p];
    if (place.used && place.learns) graph_.layers[p]->FinishBackward(pass);
    if (ops_->on_host()) FinishTensors(p, gradients, tensor_done);
  }
}

void GraphModel::PrepareRowGradients(std::span<const TableInput> tables, StepResult* result) {
  result->row_gradients.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const size_t keys = tables_[t].keys == nullptr ? 0 : tables_[t].keys->unique.size();
    const size_t floats = keys * job_.tables[t].dim;
    const bool placed = !tables[t].gradients.empty();
    CHECK(!placed || (tables[t].slab == nullptr && tables[t].gradients.size() == floats));
    result->row_gradients[t].resize(placed ? 0 : floats);
    if (!ops_->on_host()) {
      tables_[t].row_gradients = std::span(row_gradients_[t]->Reserve(floats), floats);
    } else if (placed) {
      tables_[t].row_gradients = tables[t].gradients;
    } else {
      tables_[t].row_gradients = result->row_gradients[t];
    }
  }
}

void GraphModel::FinishRowGradients(std::span<const TableInput> tables, StepResult* result) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const TableInput& input = tables[t];
    RowSpans<float> gradients = input.gradients;
    if (gradients.empty()) gradients = result->row_gradients[t];
    float* const there = ops_->on_host() ? nullptr : row_gradients_[t]->data();
    for (size_t p = 0; p < gradients.count(); ++p) {
      const std::span<float> here = gradients.piece(p);
      if (!tables_[t].gradients_begun) {  // No used layer reads the table.
        std::ranges::fill(here, 0.0f);
        if (there != nullptr) ops_->FillZero(there + gradients.begin(p), here.size());
      } else if (there != nullptr && (input.slab == nullptr || input.all_gradients)) {
        ops_->Download(there + gradients.begin(p), here);
      } else if (there != nullptr) {
        ops_->DownloadOutside(input.slots, input.slab->dim, there, here);
      }
    }
  }
}

void GraphModel::FinishTensors(size_t place, std::span<float> gradients,
                               const TensorDone& tensor_done) {
  for (uint32_t t = graph_.first_tensor[place + 1]; t-- > graph_.first_tensor[place];) {
    const DenseTensor& tensor = graph_.tensors[t];
    const size_t given = graph_.places[place].used ? tensor.size() : 0;
    std::ranges::fill(gradients.subspan(tensor.first_chunk * kDenseChunkFloats + given,
                                        tensor.num_chunks * kDenseChunkFloats - given),
                      0.0f);
    if (tensor_done) tensor_done(t);
  }
}

void GraphModel::Step(const Batch& batch, std::span<const TableInput> tables, StepResult* result,
                      std::span<float> dense_gradients, const RowsDone& rows_done,
                      const TensorDone& tensor_done) {
  CHECK_EQ(dense_gradients.size(), dense_floats());
  Pass pass = Forward(batch, tables, true);
  Place& logits = graph_.places.back();
  result->loss_sum = loss_.Train(batch, logits.value, logits.gradient);
  PrepareRowGradients(tables, result);
  pass.dense_gradients =
      ops_->on_host() ? dense_gradients.data() : dense_gradients_.Reserve(dense_gradients.size());
  pass.tensors_later = rows_done != nullptr;
  Backward(pass, tensor_done);
  FinishRowGradients(tables, result);
  if (pass.tensors_later) {
    rows_done();
    FinishBackward(pass, tensor_done);
  }
  if (ops_->on_host()) return;
  ops_->Download(dense_gradients_.data(), dense_gradients);
  for (size_t p = graph_.places.size(); p-- > 0;) FinishTensors(p, dense_gradients, tensor_done);
}

double GraphModel::Predict(const Batch& batch, std::span<const TableInput> tables,
                           std::vector<float>* probabilities) {
  Forward(batch, tables, false);
  const Place& logits = graph_.places.back();
  return loss_.Score(batch, logits.value, probabilities);
}

Result<std::unique_ptr<DenseOps>> ChooseOps(const std::string& device, Executor& executor) {
  if (device != "auto" && device != "cpu" && device != "cuda") {
    return Status(Code::kInvalidArgument,
                  "model.device: '" + device + "' is not a device; use auto, cpu or cuda");
  }
  if (device == "cpu") return NewCpuOps(executor);
  Result<std::unique_ptr<DenseOps>> cuda = NewCudaOps();
  if (cuda.ok()) return cuda;
  if (device == "auto") return NewCpuOps(executor);
  return Status(Code::kInvalidArgument,
                "model.device: cuda: " + cuda.status().message() + "; use cpu or auto");
}

}  // namespace

Result<std::unique_ptr<Model>> NewModel(const Job& job, Executor& executor) {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<DenseOps> ops, ChooseOps(job.model.device, executor));
  HDPS_ASSIGN_OR_RETURN(Graph graph, BuildGraph(job, *ops));
  return std::unique_ptr<Model>(
      std::make_unique<GraphModel>(job, std::move(ops), std::move(graph)));
}

}  // namespace hdps
