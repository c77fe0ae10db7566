// Builds the job's model to read its tensors, and counts.
#include "tools/plan/job_shape.h"

#include <algorithm>
#include <memory>
#include <set>

#include "common/platform/executor.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_policy.h"
#include "worker/model/model.h"

namespace hdps {

namespace {

// The embedding that a dense layer may multiply once a distinct row: its input, or the widest of
// those that are joined into it. Null: none.
const LayerSpec* EmbeddingBelow(const Job& job, const LayerSpec& dense) {
  const auto layer = [&job](const std::string& name) {
    return &*std::find_if(job.model.layers.begin(), job.model.layers.end(),
                          [&name](const LayerSpec& spec) { return spec.name == name; });
  };
  const LayerSpec* const input = layer(dense.inputs.front());
  if (input->kind == LayerKind::kEmbedding) return input;
  if (input->kind != LayerKind::kConcat) return nullptr;
  const LayerSpec* widest = nullptr;
  size_t most = 0;
  for (const std::string& name : input->inputs) {
    const LayerSpec* const below = layer(name);
    if (below->kind != LayerKind::kEmbedding || below->combine != Combine::kConcat) continue;
    const size_t features =
        below->features.empty() ? FeaturesOf(job.data).sparse.size() : below->features.size();
    if (features > most) widest = below;
    most = std::max(most, features);
  }
  return widest;
}

// As the model itself says it: "layer deep1 kind=... first_layer=auto".
bool SaysOnRows(const std::string& description, const std::string& layer) {
  const size_t begin = description.find("layer " + layer + " ");
  if (begin == std::string::npos) return false;
  return description.substr(begin, description.find('\n', begin) - begin).find(" first_layer=") !=
         std::string::npos;
}

}  // namespace

Result<JobShape> ShapeOf(const Job& job) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Job on_cpu = job;
  on_cpu.model.device = "cpu";
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, NewModel(on_cpu, *executor));
  JobShape shape;
  const std::string description = model->Describe();
  for (const DenseTensor& tensor : model->tensors()) {
    if (tensor.shape.size() != 2) continue;
    Product& product = shape.products.emplace_back();
    product.inputs = tensor.shape[0];
    product.units = tensor.shape[1];
    shape.activation_floats += tensor.shape[1];
    for (const LayerSpec& layer : job.model.layers) {
      if (layer.name + ".weight" != tensor.name || !SaysOnRows(description, layer.name)) continue;
      const LayerSpec* const below = EmbeddingBelow(job, layer);
      if (below == nullptr) continue;
      const size_t features =
          below->features.empty() ? FeaturesOf(job.data).sparse.size() : below->features.size();
      product.row_features = static_cast<uint32_t>(features);
      for (const TableSpec& table : job.tables) {
        if (table.name == below->table) product.row_dim = table.dim;
      }
    }
  }
  shape.always_on_rows = job.model.first_layer == FirstLayer::kUniqueRows;
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
