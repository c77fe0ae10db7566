// One copy of the graph on its way through a pass, in the segments between layers that meet.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "worker/model/graph.h"
#include "worker/model/layer.h"
#include "worker/model/loss.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// What all lanes of a pass have in common.
struct PassTerms {
  const float* dense = nullptr;  // [dense_floats], on the device.
  bool training = false;
  bool tensors_later = false;
  StepExchange* exchange = nullptr;
};

// A copy has layers and memory of its own; the flat array of parameters is everybody's.
//
// Invariant: a pass is ForwardSegment(0), ..., ForwardSegment(segments() - 1), then, in a step,
// BackwardSegment from the last to 0, and FinishBackward. Between a lane's segments others may run.
class GraphLane {
 public:
  // All of them outlive it; the graph was built with the ops.
  GraphLane(const Job& job, DenseOps& ops, Graph graph);

  const Graph& graph() const { return graph_; }
  size_t segments() const { return meetings_.size() + 1; }
  // The losses of the pass: trained behind its forward segments, summed behind its last fetches.
  void TrainLoss();
  double LossSum() const { return loss_.Sum(); }
  double Score(std::vector<float>* scores) { return loss_.Score(logits().value, scores); }
  const float* row_gradients_on_device(size_t table) const { return row_gradients_[table]->data(); }

  // Begins a pass, which is lane `number` of its step.
  void Begin(const StepLane& lane, const PassTerms& terms, size_t number);
  // Ends the exchange before the segment, runs its layers, and begins the exchange behind it. All
  // layers where the pass meets nobody are segment 0.
  Status ForwardSegment(size_t segment);
  // Where gradients go: those of rows into the result itself where the device allows.
  void PrepareGradients(const StepLane& to);
  // `done`, which may be empty, is told of the tensors whose gradients stand then.
  Status BackwardSegment(size_t segment, const Model::TensorDone& done);
  // Row gradients go down to the host, where they are behind EndFetches().
  void FetchRowGradients(const StepLane& to);
  // What BackwardSegment has left of dense gradients.
  void FinishBackward(const Model::TensorDone& done);
  // Of a device, behind the last fetches: all gradients of tensors stand.
  void FinishAllTensors(const Model::TensorDone& done);

 private:
  Place& logits() { return graph_.places.back(); }
  bool HasRows(size_t place) const { return graph_.places[place].value.rows > 0; }
  // The first place of a segment and the one behind its last, but for the layers that meet.
  size_t BeginOf(size_t segment) const { return segment == 0 ? 0 : meetings_[segment - 1] + 1; }
  size_t EndOf(size_t segment) const {
    return segment == meetings_.size() ? graph_.places.size() : meetings_[segment];
  }
  MeetingLayer& Meeting(size_t i) const;
  // The gradients of a place's tensors stand: zeros for what nothing was computed for.
  void FinishTensors(size_t place, const Model::TensorDone& done);
  // The rows of a table are brought to another device.
  bool OnDevice(size_t table) const { return !ops_.on_host() && !graph_.tables_on_host[table]; }
  // Gradients of tensors travel from the device to the host.
  bool Fetched() const { return !ops_.on_host() && !dense_to_.on_device; }
  bool TensorsLater() const { return pass_->tensors_later || !ops_.on_host(); }
  // The rows of a table on another device.
  std::span<const float> BringRows(size_t table, const TableInput& input);
  // Those of slabs: behind all that the lanes upload, which travels in one copy.
  void GatherRows();

  const Job& job_;
  DenseOps& ops_;
  Graph graph_;
  std::vector<size_t> meetings_;  // Places of layers that meet, ascending.
  Activations activations_;
  ModelLoss loss_;
  std::vector<std::unique_ptr<DeviceArray>> table_rows_, row_gradients_;  // [tables]
  DeviceArray dense_gradients_;  // [dense_floats]; unused, as those, where spans are.
  // Of the current pass.
  DenseGradients dense_to_;   // [dense_floats]: where its dense gradients are wanted.
  std::vector<size_t> rows_;  // [places]
  bool empty_ = false;        // No place has rows.
  std::span<const TableInput> inputs_;
  std::vector<TablePass> tables_;
  std::optional<Pass> pass_;
};

}  // namespace hdps
