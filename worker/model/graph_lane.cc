// Runs segments of a pass. A segment ends one exchange and begins the next, so that other lanes
// compute between the two.
#include "worker/model/graph_lane.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

GraphLane::GraphLane(const Job& job, DenseOps& ops, Graph graph)
    : job_(job),
      ops_(ops),
      graph_(std::move(graph)),
      activations_(&ops, graph_.places.size()),
      loss_(job, ops),
      dense_gradients_(&ops) {
  for (size_t t = 0; t < job.tables.size(); ++t) {
    table_rows_.push_back(std::make_unique<DeviceArray>(&ops));
    row_gradients_.push_back(std::make_unique<DeviceArray>(&ops));
  }
  for (size_t p = 0; p < graph_.places.size(); ++p) {
    const auto* const layer = dynamic_cast<const ExchangeLayer*>(graph_.layers[p].get());
    if (graph_.places[p].used && layer != nullptr && layer->has_exchange()) exchanges_.push_back(p);
  }
}

ExchangeLayer& GraphLane::ExchangeAt(size_t i) const {
  return *static_cast<ExchangeLayer*>(graph_.layers[exchanges_[i]].get());
}

void GraphLane::Begin(const StepLane& lane, const PassTerms& terms, size_t number) {
  const std::span<const TableInput> tables = lane.tables;
  CHECK_EQ(tables.size(), job_.tables.size());
  tables_.assign(tables.size(), {});
  for (size_t t = 0; t < tables.size(); ++t) {
    if (tables[t].keys == nullptr) continue;
    CHECK_EQ(tables[t].rows.size(), tables[t].keys->unique.size() * job_.tables[t].dim);
    tables_[t].keys = tables[t].keys;
    tables_[t].rows = tables[t].rows;
    if (OnDevice(t)) tables_[t].rows = BringRows(t, tables[t]);
  }
  rows_.assign(graph_.places.size(), lane.batch->num_examples);
  if (!lane.rows.of_layers.empty()) {
    CHECK_EQ(lane.rows.of_layers.size(), rows_.size());
    std::ranges::copy(lane.rows.of_layers, rows_.begin());
  }
  empty_ = std::ranges::all_of(rows_, [](size_t rows) { return rows == 0; });
  activations_.Lay(rows_, graph_.places);
  const Batch& sources = lane.rows.sources == nullptr ? *lane.batch : *lane.rows.sources;
  pass_.emplace(Pass{ops_, *lane.batch, sources, graph_.places, tables_});
  pass_->dense = terms.dense;
  pass_->training = terms.training;
  pass_->tensors_later = terms.tensors_later;
  pass_->exchange = terms.exchange;
  pass_->lane = number;
  for (size_t p = 0; p < graph_.places.size(); ++p) {
    if (graph_.places[p].used && HasRows(p)) graph_.layers[p]->Bring(*pass_);
  }
  loss_.Bring(*lane.batch, terms.training);
  inputs_ = tables;
}

void GraphLane::GatherRows() {
  for (size_t t = 0; t < inputs_.size(); ++t) {
    if (inputs_[t].slab == nullptr) continue;
    ops_.GatherRows(*inputs_[t].slots, *inputs_[t].slab, table_rows_[t]->data());
  }
}

std::span<const float> GraphLane::BringRows(size_t table, const TableInput& input) {
  const RowSpans<const float>& rows = input.rows;
  const std::span<float> there(table_rows_[table]->Reserve(rows.size()), rows.size());
  if (input.slab != nullptr) {
    CHECK_LE(rows.count(), 1u);
    const std::span<const float> outside = rows.empty() ? std::span<const float>() : rows.piece(0);
    ops_.BringOutside(*input.slots, input.slab->dim, outside, there.data());
    return there;
  }
  for (size_t p = 0; p < rows.count(); ++p) {
    ops_.Upload(rows.piece(p), there.data() + rows.begin(p));
  }
  return there;
}

Status GraphLane::ForwardSegment(size_t segment) {
  if (segment == 0) GatherRows();
  if (segment > 0) HDPS_RETURN_IF_ERROR(ExchangeAt(segment - 1).EndForward(*pass_));
  for (size_t p = BeginOf(segment); p < EndOf(segment); ++p) {
    if (graph_.places[p].used && HasRows(p)) graph_.layers[p]->Forward(*pass_);
  }
  if (segment < exchanges_.size()) ExchangeAt(segment).BeginForward(*pass_);
  return {};
}

std::vector<float> GraphLane::FetchLogits() {
  const ConstMatrix from = logits().value;
  std::vector<float> fetched(from.rows * from.cols);
  if (from.stride == from.cols) {
    if (!fetched.empty()) ops_.FetchLater(from.data, fetched);
    ops_.Fetch();
    return fetched;
  }
  for (size_t row = 0; row < from.rows; ++row) {
    ops_.FetchLater(from.data + row * from.stride,
                    std::span(fetched).subspan(row * from.cols, from.cols));
  }
  ops_.Fetch();
  return fetched;
}

void GraphLane::TrainLoss() {
  if (logits().value.rows > 0) loss_.Train(logits().value, logits().gradient);
}

void GraphLane::PrepareGradients(const StepLane& to) {
  dense_to_ = to.dense_gradients;
  pass_->dense_gradients = Fetched() ? dense_gradients_.Reserve(dense_to_.size) : dense_to_.data;
  if (dense_to_.on_device) {  // For parts that no layer writes: see FinishTensors.
    const Matrix all{dense_to_.data, 1, dense_to_.size, dense_to_.size};
    ops_.RunRows(FillElements{empty_ ? -0.0f : 0.0f, all});
  }
  to.result->row_gradients.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t) {
    const size_t keys = tables_[t].keys == nullptr ? 0 : tables_[t].keys->unique.size();
    const size_t floats = keys * job_.tables[t].dim;
    const TableInput& input = to.tables[t];
    const bool placed = !input.gradients.empty();
    CHECK(!placed || (input.slab == nullptr && input.gradients.size() == floats));
    to.result->row_gradients[t].resize(placed ? 0 : floats);
    if (OnDevice(t)) {
      tables_[t].row_gradients = std::span(row_gradients_[t]->Reserve(floats), floats);
    } else if (placed) {
      tables_[t].row_gradients = input.gradients;
    } else {
      tables_[t].row_gradients = to.result->row_gradients[t];
    }
  }
}

Status GraphLane::BackwardSegment(size_t segment, const Model::TensorDone& done) {
  const auto wanted = [this](size_t p) { return graph_.places[p].used && graph_.places[p].learns; };
  if (segment < exchanges_.size()) {
    const size_t p = exchanges_[segment];
    if (wanted(p)) HDPS_RETURN_IF_ERROR(ExchangeAt(segment).EndBackward(*pass_));
    if (!TensorsLater()) FinishTensors(p, done);
  }
  for (size_t p = EndOf(segment); p-- > BeginOf(segment);) {
    if (wanted(p) && HasRows(p)) graph_.layers[p]->Backward(*pass_);
    if (!TensorsLater()) FinishTensors(p, done);
  }
  if (segment > 0 && wanted(exchanges_[segment - 1])) ExchangeAt(segment - 1).BeginBackward(*pass_);
  return {};
}

void GraphLane::FinishBackward(const Model::TensorDone& done) {
  if (!TensorsLater()) return;
  if (pass_->tensors_later) {
    for (size_t p = graph_.places.size(); p-- > 0;) {
      const Place& place = graph_.places[p];
      if (place.used && place.learns && HasRows(p)) graph_.layers[p]->FinishBackward(*pass_);
      if (ops_.on_host()) FinishTensors(p, done);
    }
  }
  if (Fetched()) ops_.FetchLater(dense_gradients_.data(), dense_to_.host());
}

void GraphLane::FinishAllTensors(const Model::TensorDone& done) {
  for (size_t p = graph_.places.size(); p-- > 0;) FinishTensors(p, done);
}

void GraphLane::FinishTensors(size_t place, const Model::TensorDone& done) {
  // A place whose work another place does has no values, but gradients.
  const bool given = graph_.places[place].used && rows_[place] > 0;
  for (uint32_t t = graph_.first_tensor[place + 1]; t-- > graph_.first_tensor[place];) {
    const DenseTensor& tensor = graph_.tensors[t];
    const size_t floats = given ? tensor.size() : 0;
    if (!dense_to_.on_device) {
      std::ranges::fill(dense_to_.host().subspan(tensor.first_chunk * kDenseChunkFloats + floats,
                                                 tensor.num_chunks * kDenseChunkFloats - floats),
                        empty_ ? -0.0f : 0.0f);
    }
    if (done) done(t);
  }
}

void GraphLane::FetchRowGradients(const StepLane& to) {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const TableInput& input = to.tables[t];
    RowSpans<float> gradients = input.gradients;
    if (gradients.empty()) gradients = to.result->row_gradients[t];
    float* const there = !OnDevice(t) ? nullptr : row_gradients_[t]->data();
    for (size_t p = 0; p < gradients.count(); ++p) {
      const std::span<float> here = gradients.piece(p);
      if (!tables_[t].gradients_begun) {  // No used layer reads the table.
        std::ranges::fill(here, 0.0f);
        if (there != nullptr) ops_.FillZero(there + gradients.begin(p), here.size());
      } else if (there != nullptr && input.slab == nullptr) {
        ops_.FetchLater(there + gradients.begin(p), here);
      } else if (there != nullptr) {
        ops_.FetchOutside(*input.slots, input.slab->dim, there, here);
      }
    }
  }
}

}  // namespace hdps
