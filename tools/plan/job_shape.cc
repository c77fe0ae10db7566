// Counts products, floats and rows from the job's graph of layers.
#include "tools/plan/job_shape.h"

#include <algorithm>
#include <set>

#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "embedding/memory/optimizer.h"
#include "embedding/memory/row_policy.h"
#include "worker/model/first_layer.h"
#include "worker/model/graph.h"

namespace hdps {

namespace {

// Returns the number of features of an embedding.
uint32_t FeaturesIn(const Job& job, const LayerSpec& embedding) {
  return static_cast<uint32_t>(embedding.features.empty() ? FeaturesOf(job.data).sparse.size()
                                                          : embedding.features.size());
}

// Adds the products of one layer: its matrices, each multiplied with every example.
void AddProducts(const Job& job, const Graph& graph, uint32_t layer, JobShape* shape) {
  const int below =
      job.model.first_layer == FirstLayer::kPlain ? -1 : EmbeddingBelow(job, graph.places, layer);
  for (uint32_t t = graph.first_tensor[layer]; t < graph.first_tensor[layer + 1]; ++t) {
    const DenseTensor& tensor = graph.tensors[t];
    if (tensor.shape.size() != 2) continue;
    Product& product = shape->products.emplace_back();
    product.inputs = tensor.shape[0];
    product.units = static_cast<uint32_t>(tensor.shape[1] * tensor.uses);
    shape->activation_floats += product.units;
    if (below < 0) continue;
    const LayerSpec& embedding = job.model.layers[static_cast<size_t>(below)];
    product.row_features = FeaturesIn(job, embedding);
    for (const TableSpec& table : job.tables) {
      if (table.name == embedding.table) product.row_dim = table.dim;
    }
  }
}

}  // namespace

Result<JobShape> ShapeOf(const Job& job) {
  HDPS_ASSIGN_OR_RETURN(const Graph graph, PlanGraph(job));
  JobShape shape;
  for (uint32_t i = 0; i < graph.places.size(); ++i) AddProducts(job, graph, i, &shape);
  shape.always_on_rows = job.model.first_layer == FirstLayer::kUniqueRows;
  shape.dense_floats = DenseFloats(job);
  if (job.parallel.dense_exchange == DenseExchange::kAllreduce) {
    shape.floats_left_at_servers = DenseFloatsAtServers(job);
  }
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
    row.kept_rows = static_cast<double>(table.vocab_cache_size);
    for (const LayerSpec& layer : job.model.layers) {
      if (!ReadsRows(job.model, layer) || layer.table != table.name) continue;
      const uint32_t features = FeaturesIn(job, layer);
      row.features = std::max(row.features, features);
      shape.embedding_floats += uint64_t{features} * table.dim;
    }
    shape.keys = std::max(shape.keys, row.features);
  }
  return shape;
}

}  // namespace hdps
