// Computes the parts of a step one after another, which needs memory for one part, or all at once
// as lanes, which needs memory for all but lets them wait for their exchanges together.
#include "worker/step/step_compute.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/telemetry/span_recorder.h"
#include "worker/step/progressive_scores.h"

namespace hdps {
StepCompute::StepCompute(const Job& job, Model& model, MonotonicClock& clock)
    : job_(job), model_(model), clock_(clock), group_dense_(model.ops()) {
  row_gradients_.resize(job.tables.size());
  group_rows_.resize(job.tables.size());
  set_groups({});
}

void StepCompute::set_groups(std::span<Collective* const> groups) {
  exchange_.reset();  // Its threads may use the old groups.
  group_ = groups.empty() ? nullptr : groups.front();
  if (model_.has_exchange()) exchange_ = std::make_unique<LaneExchange>(groups, clock_);
  set_recorder(recorder_);
}

void StepCompute::set_recorder(SpanRecorder* recorder) {
  recorder_ = recorder;
  if (exchange_ != nullptr) exchange_->set_recorder(recorder);
}

StepCompute::PartMemory& StepCompute::MemoryOf(size_t lane) {
  while (memory_.size() <= lane) {
    PartMemory& memory = *memory_.emplace_back(std::make_unique<PartMemory>(model_.ops()));
    memory.rows.resize(job_.tables.size());
  }
  return *memory_[lane];
}

const float* StepCompute::KeptGradients(const PreparedStep& step, TableId table) const {
  if (step.parts.empty()) return nullptr;
  if (!KeepsOnDevice()) return row_gradients_[table.value].data();
  if (step.parts.parts().size() > 1) return kept_[table.value]->step.data();
  return model_.RowGradientsOnDevice(table.value, 0);
}

void StepCompute::PointAtKeptRows(const PreparedStep& step, size_t part, PartMemory* memory) {
  const std::vector<HotGroup>& groups = cache_->rows().groups();
  memory->kept.resize(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    SlabSlots* slots = &cache_->rows().loaded(g);
    if (step.parts.parts().size() > 1) {
      KeptKeys& kept = memory->kept[g];
      const TableId any = groups[g].tables.front();
      model_.ops().LoadSlots(step.parts.SlotsOfPart(part, any, step.hot[g].slots, &kept.slots),
                             &kept.loaded);
      model_.ops().LoadSlots(step.parts.PositionsOfPart(part, any), &kept.positions);
      slots = kept.loaded.get();
    }
    for (const TableId table : groups[g].tables) {
      memory->inputs[table.value].slab = cache_->rows().slab(table);
      memory->inputs[table.value].slots = slots;
    }
  }
}

void StepCompute::AddKeptGradients(const StepParts& parts, size_t part, size_t lane) {
  DenseOps& ops = model_.ops();
  kept_.resize(job_.tables.size());
  const std::vector<HotGroup>& groups = cache_->rows().groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const TableId table : groups[g].tables) {
      const uint32_t dim = job_.tables[table.value].dim;
      const size_t keys = parts.KeysOf(table).size();
      std::unique_ptr<KeptSum>& sum = kept_[table.value];
      if (sum == nullptr) sum = std::make_unique<KeptSum>(ops);
      const bool begins = parts.BeginsGroup(part), ends = parts.EndsGroup(part);
      const auto all = [&](DeviceArray& array) {
        return Matrix{array.Reserve(keys * dim), keys, dim, dim};
      };
      if (part == 0) ops.RunRows(FillElements{-0.0f, all(sum->step)});
      const bool whole = begins && ends;
      if (!whole && begins) ops.RunRows(FillElements{-0.0f, all(sum->group)});
      ops.ScatterRows(Write::kAdd, *memory_[lane]->kept[g].positions,
                      model_.RowGradientsOnDevice(table.value, lane), 1.0f,
                      {all(whole ? sum->step : sum->group).data, dim, 0});
      if (!whole && ends) ops.Copy(Write::kAdd, all(sum->group), all(sum->step));
    }
  }
}

void StepCompute::FillInputs(WindowStep& step, size_t part, const PushPlan& push,
                             PartMemory* memory) {
  const StepParts& parts = step.prepared->parts;
  std::vector<TableInput>& inputs = memory->inputs;
  inputs.assign(job_.tables.size(), {});
  for (uint32_t t = 0, i = 0; t < inputs.size(); ++t) {
    inputs[t].keys = parts.SetOf(part, {t});
    if (inputs[t].keys == nullptr) continue;
    inputs[t].gradients = push.place(i++);
    inputs[t].rows =
        parts.RowsOfPart(part, {t}, job_.tables[t].dim, step.rows->RowsOf({t}), &memory->rows[t]);
  }
  if (KeepsOnDevice()) PointAtKeptRows(*step.prepared, part, memory);
}

StepLane StepCompute::LaneOf(const Batch& batch, bool first, const DenseGradients& of_step,
                             PartMemory* memory) const {
  return {&batch, memory->inputs, &memory->result, first ? of_step : memory->dense.Like(of_step)};
}

void StepCompute::AddTensor(const DenseTensor& tensor, const DenseGradients& part,
                            const DenseGradients& sum) {
  const size_t first = tensor.first_chunk * kDenseChunkFloats;
  const size_t count = tensor.num_chunks * kDenseChunkFloats;
  if (sum.on_device) {
    model_.ops().Copy(Write::kAdd, {part.data + first, 1, count, count},
                      {sum.data + first, 1, count, count});
  } else {
    AddGradients(part.host().subspan(first, count), sum.host().subspan(first, count));
  }
}

Result<ComputedStep> StepCompute::Run(WindowStep& step, const StepTerms& terms,
                                      const Model::RowsDone& rows_done,
                                      const TensorDone& tensor_done) {
  computed_ = {.loss_sum = 0, .pause = terms.pause};
  for (const StepParts::Part& part : step.prepared->parts.parts()) {
    HDPS_RETURN_IF_ERROR(model_.CheckBatch(part.batch));
  }
  if (exchange_ == nullptr) {
    HDPS_RETURN_IF_ERROR(RunParts(step, terms, rows_done, tensor_done));
  } else {
    HDPS_RETURN_IF_ERROR(exchange_->EndStep(RunLanes(step, terms, rows_done, tensor_done)));
  }
  return computed_;
}

Status StepCompute::RunParts(WindowStep& step, const StepTerms& terms,
                             const Model::RowsDone& rows_done, const TensorDone& tensor_done) {
  const StepParts& parts = step.prepared->parts;
  const size_t count = parts.parts().size();
  // All parts share one memory; only their dense gradients are separate.
  PartMemory& memory = MemoryOf(0);
  for (size_t part = 0; part < count; ++part) {
    const uint32_t piece = parts.parts()[part].piece;
    if (part == 0 || parts.parts()[part - 1].piece != piece) {
      HDPS_RETURN_IF_ERROR(terms.need_piece(piece));
    }
    FillInputs(step, part, terms.push, &memory);
    const bool begins = parts.BeginsGroup(part), ends = parts.EndsGroup(part);
    const bool first_group = parts.parts()[part].group == parts.parts()[0].group;
    StepLane lane = LaneOf(parts.parts()[part].batch, part == 0, terms.dense_gradients, &memory);
    const DenseGradients own = lane.dense_gradients;
    const bool last = part + 1 == count;
    bool taken = false;
    const auto loss_so_far = [&] {
      return computed_.loss_sum + (taken ? 0 : memory.result.loss_sum);
    };
    if (part > 0 && begins && !ends) {
      lane.dense_gradients = group_dense_.Like(terms.dense_gradients);
    }
    const Model::TensorDone done = [&](uint32_t t) {
      const DenseTensor& tensor = model_.tensors()[t];
      const DenseGradients of_group =
          first_group ? terms.dense_gradients : group_dense_.Like(terms.dense_gradients);
      if (!begins) AddTensor(tensor, own, of_group);
      if (ends && !first_group) AddTensor(tensor, begins ? own : of_group, terms.dense_gradients);
      if (!last || tensor_done == nullptr) return;
      tensor_done(t, std::isfinite(loss_so_far()));
    };
    const bool ends_piece = !last && parts.parts()[part + 1].piece != piece;
    // Row gradients are complete before those of the dense weights, and leave meanwhile.
    const Model::RowsDone leave = [&] {
      if (!std::isfinite(loss_so_far())) return;
      TakePart(*step.prepared, part, 0);
      taken = true;
      last ? rows_done() : terms.piece_done(piece);
    };
    const bool leaves = last ? rows_done != nullptr : ends_piece;
    const RecordedSpan span(
        recorder_, [part] { return "lane " + std::to_string(part); },
        [] { return std::string("forward and backward"); });
    HDPS_RETURN_IF_ERROR(model_.Step({&lane, 1}, nullptr, leaves ? leave : nullptr, done));
    KeepScores(parts.parts()[part].batch, 0);
    if (!taken) TakePart(*step.prepared, part, 0);
  }
  return {};
}

Status StepCompute::RunLanes(WindowStep& step, const StepTerms& terms,
                             const Model::RowsDone& rows_done, const TensorDone& tensor_done) {
  const std::vector<StepParts::Part>& parts = step.prepared->parts.parts();
  const size_t count = size_t{job_.train.micro_batches} * job_.parallel.interleave_num;
  std::vector<StepLane> lanes;
  std::vector<uint32_t> groups;
  for (size_t i = 0; i < count; ++i) {
    PartMemory& memory = MemoryOf(i);
    memory.inputs.assign(job_.tables.size(), {});
    const bool has_part = i < parts.size();
    if (has_part) HDPS_RETURN_IF_ERROR(terms.need_piece(parts[i].piece));
    if (has_part) FillInputs(step, i, terms.push, &memory);
    lanes.push_back(
        LaneOf(has_part ? parts[i].batch : no_examples_, i == 0, terms.dense_gradients, &memory));
    groups.push_back(has_part ? parts[i].group : job_.train.micro_batches);
  }
  if (rank_ != nullptr) HDPS_RETURN_IF_ERROR(SetLayerRows(step.prepared->parts, &lanes));
  exchange_->BeginStep(groups);
  // All workers must pause after the same step: one that paused alone would leave the others
  // waiting for it in the middle of the next step.
  any_pause_ = terms.pause ? 1 : 0;
  const StepExchange::Ticket asked = exchange_->Start(0, [this](Collective* group) {
    const std::array lists = {OrOf(std::span(&any_pause_, 1))};
    return group == nullptr ? Status() : group->AllReduce(lists);
  });
  const Model::TensorDone done = [&](uint32_t tensor) {
    AddLanes(step.prepared->parts, model_.tensors()[tensor], terms.dense_gradients);
    if (tensor_done == nullptr) return;
    double loss_sum = 0;
    for (size_t i = 0; i < parts.size(); ++i) loss_sum += memory_[i]->result.loss_sum;
    tensor_done(tensor, std::isfinite(loss_sum));
  };
  bool taken = false;
  const Model::RowsDone leave = [&] {
    if (!std::isfinite(memory_[0]->result.loss_sum)) return;
    TakePart(*step.prepared, 0, 0);
    taken = true;
    rows_done();
  };
  HDPS_RETURN_IF_ERROR(
      model_.Step(lanes, exchange_.get(), rows_done == nullptr ? nullptr : leave, done));
  HDPS_RETURN_IF_ERROR(exchange_->Wait(asked));
  computed_.pause = any_pause_ != 0;
  for (size_t part = taken ? 1 : 0; part < parts.size(); ++part) {
    TakePart(*step.prepared, part, part);
  }
  for (size_t part = 0; part < parts.size(); ++part) KeepScores(parts[part].batch, part);
  return {};
}

Status StepCompute::SetLayerRows(const StepParts& parts, std::vector<StepLane>* lanes) {
  std::vector<uint32_t> examples;
  for (const StepLane& lane : *lanes) examples.push_back(lane.batch->num_examples);
  HDPS_RETURN_IF_ERROR(rank_->BeginStep(*group_, examples));
  for (size_t i = 0; i < lanes->size(); ++i) {
    const Batch& sources = i < parts.parts().size() ? parts.parts()[i].sources() : no_examples_;
    (*lanes)[i].rows = {&sources, rank_->RowsOfLayers(i)};
  }
  return {};
}

void StepCompute::AddLanes(const StepParts& parts, const DenseTensor& tensor,
                           const DenseGradients& of_step) {
  DenseGradients of_group = of_step;
  for (size_t i = 0; i < parts.parts().size(); ++i) {
    const bool begins = parts.BeginsGroup(i);
    if (begins && i > 0) of_group = memory_[i]->dense.Like(of_step);
    if (!begins) AddTensor(tensor, memory_[i]->dense.Like(of_step), of_group);
    if (parts.EndsGroup(i) && of_group.data != of_step.data) AddTensor(tensor, of_group, of_step);
  }
  // With a model cut across workers, a lane may hold only rows of other workers.
  const size_t lanes = rank_ == nullptr ? 0 : exchange_->lanes();
  for (size_t i = std::max<size_t>(1, parts.parts().size()); i < lanes; ++i) {
    AddTensor(tensor, memory_[i]->dense.Like(of_step), of_step);
  }
}

void StepCompute::TakePart(const PreparedStep& step, size_t part, size_t lane) {
  const StepParts& parts = step.parts;
  PartMemory* const memory = memory_[lane].get();
  computed_.loss_sum += LossOf(step, part, memory->result.loss_sum);
  if (parts.parts().size() == 1) {
    std::swap(row_gradients_, memory->result.row_gradients);
    return;
  }
  if (KeepsOnDevice()) AddKeptGradients(parts, part, lane);
  row_gradients_.resize(job_.tables.size());
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    if (memory->inputs[t].keys == nullptr) continue;
    const uint32_t dim = job_.tables[t].dim;
    row_gradients_[t].resize(parts.KeysOf({t}).size() * dim);
    parts.AddRowGradients(part, {t}, dim, memory->result.row_gradients[t], &group_rows_[t],
                          row_gradients_[t]);
  }
}

void StepCompute::KeepScores(const Batch& batch, size_t lane) {
  if (scores_ != nullptr) scores_->Add(batch, model_.Logits(lane));
}

double StepCompute::LossOf(const PreparedStep& step, size_t part, double loss_sum) const {
  if (!job_.parallel.loss_sum || loss_sum == 0) return loss_sum;
  // The mean of this value over the step's examples equals the sum of the copies' means.
  const StepParts::Part& own = step.parts.parts()[part];
  uint64_t of_group = 0;
  for (const StepParts::Part& other : step.parts.parts()) {
    if (other.group == own.group) of_group += other.batch.num_examples;
  }
  return loss_sum * (static_cast<double>(of_group) / own.batch.num_examples);
}

}  // namespace hdps
