// Updates all rows at once, by the rule of the servers.
#include <glog/logging.h>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/schedule.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/optimizer.h"
#include "kernels/host/slab_update.h"
#include "worker/dense/dense_state.h"

namespace hdps {

DeviceDenseState::DeviceDenseState(const TableSpec& spec, Model& model,
                                   std::span<const uint32_t> tensors)
    : DenseState(spec.dim, DenseKeys(model.tensors(), tensors)),
      spec_(spec),
      model_(model),
      holds_(model.tensors().size()),
      runs_(RunsOf(model.tensors(), tensors)),
      memory_(&model.ops()),
      rows_{nullptr, spec.dim, StateFloats(spec.optimizer, spec.dim)} {
  CHECK(model.DenseOnDevice() != nullptr);
  for (const uint32_t t : tensors) holds_[t] = true;
  rows_.data = memory_.Reserve(keys_.size() * rows_.row_floats());
}

void DeviceDenseState::GiveWeightsToModel() {
  uint32_t row = 0;
  for (const FloatRun& run : runs_) {
    const size_t n = run.size / dim_;
    model_.ops().Copy(Write::kOver, {rows_.Row(row), n, dim_, rows_.row_floats()},
                      {model_.DenseOnDevice() + run.begin, n, dim_, dim_});
    row += static_cast<uint32_t>(n);
  }
}

void DeviceDenseState::Store(std::span<const float> rows) {
  CHECK_EQ(rows.size(), keys_.size() * row_floats());
  model_.ops().Upload(rows, rows_.data);
  GiveWeightsToModel();
}

std::vector<float> DeviceDenseState::Rows() {
  std::vector<float> rows(keys_.size() * row_floats());
  model_.ops().Download(rows_.data, rows);
  return rows;
}

void DeviceDenseState::Apply(float* gradients, const Update& update) {
  const GradientTerms terms(spec_, update.terms);
  const OptimizerSpec rule =
      OptimizerAt(spec_, update.step, update.terms.rate, update.terms.steps_before);
  size_t first = 0;  // The run's first row.
  for (const FloatRun& run : runs_) {
    const std::span<const Key> keys = std::span(keys_).subspan(first, run.size / dim_);
    ForEachRule(spec_, rule, keys, [&](const OptimizerSpec& of_rows, size_t begin, size_t count) {
      RowSlab rows = rows_;
      rows.data = rows_.Row(static_cast<uint32_t>(first + begin));
      RowUpdate row_update{of_rows, update.step, 1, update.scale, {}};
      if (!IsAveraged(spec_, keys[begin])) row_update.finish = terms.finish();
      model_.ops().UpdateFirstRows(row_update, count, gradients + run.begin + begin * dim_, rows);
    });
    first += keys.size();
  }
  GiveWeightsToModel();
}

}  // namespace hdps
