// Builds the job's model to read its tensors, and counts.
#include "tools/job_shape.h"

#include <algorithm>
#include <memory>
#include <set>

#include "common/executor.h"
#include "embedding/optimizer.h"
#include "embedding/row_policy.h"
#include "worker/model/model.h"

namespace hdps {

Result<JobShape> ShapeOf(const Job& job) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Job on_cpu = job;
  on_cpu.model.device = "cpu";
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, NewModel(on_cpu, *executor));
  JobShape shape;
  for (const DenseTensor& tensor : model->tensors()) {
    if (tensor.shape.size() != 2) continue;
    shape.products.push_back({tensor.shape[0], tensor.shape[1]});
    shape.activation_floats += tensor.shape[1];
  }
  shape.dense_floats = model->dense_floats();
  const size_t all = FeaturesOf(job.data).sparse.size();
  std::set<std::string> used;
  for (const TableSpec& table : job.tables) {
    const uint32_t state = StateFloats(table.optimizer, table.dim);
    if (table.dense) {
      shape.dense_state_floats = shape.dense_floats / table.dim * state;
      continue;
    }
    JobShape::Table& row = shape.tables.emplace_back();
    row.name = table.name;
    row.dim = table.dim;
    row.state_floats = state;
    row.row_bytes = RowBytes(table);
    for (const LayerSpec& layer : job.model.layers) {
      if (layer.kind != LayerKind::kEmbedding || layer.table != table.name) continue;
      const auto features =
          static_cast<uint32_t>(layer.features.empty() ? all : layer.features.size());
      row.features = std::max(row.features, features);
      shape.embedding_floats += uint64_t{features} * table.dim;
    }
    shape.keys = std::max(shape.keys, row.features);
  }
  return shape;
}

}  // namespace hdps
