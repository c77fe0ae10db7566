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

DeviceDenseState::DeviceDenseState(const TableSpec& spec, Model& model)
    : DenseState(spec.dim, DenseKeys(model.tensors())),
      spec_(spec),
      model_(model),
      memory_(&model.ops()),
      rows_{nullptr, spec.dim, StateFloats(spec.optimizer, spec.dim)} {
  CHECK(model.DenseOnDevice() != nullptr);
  rows_.data = memory_.Reserve(keys_.size() * rows_.row_floats());
}

void DeviceDenseState::GiveWeightsToModel() {
  const size_t n = keys_.size();
  model_.ops().Copy(Write::kOver, {rows_.data, n, dim_, rows_.row_floats()},
                    {model_.DenseOnDevice(), n, dim_, dim_});
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

void DeviceDenseState::ReadWeights(Executor&, std::span<float> flat) {
  CHECK_EQ(flat.size(), keys_.size() * dim_);
  model_.ops().Download(model_.DenseOnDevice(), flat);
}

std::array<SquareSum, kTensorHomes> DeviceDenseState::Squares(Executor&, std::span<const float>,
                                                              float) {
  LOG(FATAL) << "WhyDenseOnHost() keeps jobs that clip by the norm off the device";
  return {};
}

void DeviceDenseState::Apply(Executor&, const DenseGradients& gradients, const Update& update) {
  CHECK(gradients.on_device);
  CHECK_EQ(gradients.size, keys_.size() * dim_);
  const GradientTerms terms(spec_, update.terms);
  const OptimizerSpec rule = OptimizerAt(spec_, update.step, update.terms.rate);
  ForEachRule(spec_, rule, keys_, [&](const OptimizerSpec& of_rows, size_t begin, size_t count) {
    RowSlab rows = rows_;
    rows.data = rows_.Row(static_cast<uint32_t>(begin));
    RowUpdate row_update{of_rows, update.step, 1, update.scale, {}};
    if (!IsAveraged(spec_, keys_[begin])) row_update.finish = terms.finish();
    model_.ops().UpdateFirstRows(row_update, count, gradients.data + begin * dim_, rows);
  });
  GiveWeightsToModel();
}

}  // namespace hdps
