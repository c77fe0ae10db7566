// One copy of the graph during a pass, in segments between the layers that exchange values.
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

// Parameters of a pass that all its lanes share.
struct PassTerms {
  const float* dense = nullptr;  // [dense_floats], on the device.
  bool training = false;
  bool tensors_later = false;
  StepExchange* exchange = nullptr;
};

// A copy of the graph with layers and memory of its own; all copies share the flat array of
// parameters.
//
// Invariant: a pass is ForwardSegment(0), ..., ForwardSegment(segments() - 1) and then, in a step,
// BackwardSegment from the last to 0, and FinishBackward. Other lanes may run between the segments
// of a lane.
class GraphLane {
 public:
  // Requires: all arguments outlive it; the graph was built with `ops`.
  GraphLane(const Job& job, DenseOps& ops, Graph graph);

  const Graph& graph() const { return graph_; }
  size_t segments() const { return exchanges_.size() + 1; }
  // The loss of the pass: TrainLoss() follows the forward segments, LossSum() the last fetches.
  void TrainLoss();
  double LossSum() const { return loss_.Sum(); }
  double Score(std::vector<float>* scores) { return loss_.Score(logits().value, scores); }
  std::vector<float> FetchLogits();  // [rows, width of the last place], to the host.
  const float* row_gradients_on_device(size_t table) const { return row_gradients_[table]->data(); }

  // Begins a pass as lane `number` of its step.
  void Begin(const StepLane& lane, const PassTerms& terms, size_t number);
  // Ends the exchange before the segment, runs its layers, and begins the exchange after it. If the
  // pass has no exchange, segment 0 has all layers.
  Status ForwardSegment(size_t segment);
  // Sets the destination of gradients; those of rows go straight into the result if the device
  // allows.
  void PrepareGradients(const StepLane& to);
  // `done`, which may be empty, is called for each tensor whose gradient is complete.
  Status BackwardSegment(size_t segment, const Model::TensorDone& done);
  // Fetches row gradients to the host; they are there after EndFetches().
  void FetchRowGradients(const StepLane& to);
  // Computes the dense gradients that BackwardSegment has left out.
  void FinishBackward(const Model::TensorDone& done);
  // Reports all tensors as complete; called after the last fetches from a device.
  void FinishAllTensors(const Model::TensorDone& done);

 private:
  Place& logits() { return graph_.places.back(); }
  bool HasRows(size_t place) const { return graph_.places[place].value.rows > 0; }
  // The places of a segment, without the layers that exchange values.
  size_t BeginOf(size_t segment) const { return segment == 0 ? 0 : exchanges_[segment - 1] + 1; }
  size_t EndOf(size_t segment) const {
    return segment == exchanges_.size() ? graph_.places.size() : exchanges_[segment];
  }
  ExchangeLayer& ExchangeAt(size_t i) const;
  // Completes the gradients of a place's tensors: zeros where nothing was computed.
  void FinishTensors(size_t place, const Model::TensorDone& done);
  // Is true if the table's rows are copied to another device.
  bool OnDevice(size_t table) const { return !ops_.on_host() && !graph_.tables_on_host[table]; }
  // Is true if gradients of tensors are fetched from the device to the host.
  bool Fetched() const { return !ops_.on_host() && !dense_to_.on_device; }
  bool TensorsLater() const { return pass_->tensors_later || !ops_.on_host(); }
  // Copies the rows of a table to another device and returns them there.
  std::span<const float> BringRows(size_t table, const TableInput& input);
  // Gathers rows from slabs; runs after the uploads of all lanes, which travel in one copy.
  void GatherRows();

  const Job& job_;
  DenseOps& ops_;
  Graph graph_;
  std::vector<size_t> exchanges_;  // Places of layers that exchange values, ascending.
  Activations activations_;
  ModelLoss loss_;
  std::vector<std::unique_ptr<DeviceArray>> table_rows_, row_gradients_;  // [tables]
  // [dense_floats]; unused, like the above, if gradients go straight to their destination.
  DeviceArray dense_gradients_;
  // The current pass.
  DenseGradients dense_to_;   // [dense_floats]: destination of dense gradients.
  std::vector<size_t> rows_;  // [places]
  bool empty_ = false;        // No place has rows.
  std::span<const TableInput> inputs_;
  std::vector<TablePass> tables_;
  std::optional<Pass> pass_;
};

}  // namespace hdps
