// Where a batch enters the graph: pooled embedding rows and numbers.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "worker/model/feature_list.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

class EmbeddingLayer : public Layer {
 public:
  EmbeddingLayer(const LayerSite& site, uint32_t table, std::vector<uint32_t> features)
      : place_(site.place), table_(table), features_(std::move(features)) {
    spec_ = {site.spec.pooling, site.spec.combine, site.job.tables[table].dim};
  }

  void Forward(Pass& pass) override {
    const TablePass& table = pass.tables[table_];
    CollectBags(pass, table_, features_, &bags_);
    pass.ops.LoadBags(bags_, static_cast<uint32_t>(table.keys->unique.size()), &index_);
    pass.ops.Pool(*index_, spec_, table.rows, pass.places[place_].value);
  }

  void Backward(Pass& pass) override {
    TablePass& table = pass.tables[table_];
    const Write write = table.gradients_begun ? Write::kAdd : Write::kOver;
    table.gradients_begun = true;
    pass.ops.PoolBackward(*index_, spec_, pass.places[place_].gradient, write, table.row_gradients);
  }

 private:
  uint32_t place_, table_;
  std::vector<uint32_t> features_;  // Columns of the batch.
  PoolSpec spec_;
  std::vector<Bags> bags_;  // Of the current pass.
  std::unique_ptr<BagIndex> index_;
};

class NumericLayer : public Layer {
 public:
  explicit NumericLayer(uint32_t place) : place_(place) {}
  void Forward(Pass& pass) override {
    pass.ops.UploadRows(pass.batch.numeric, pass.places[place_].value);
  }
  void Backward(Pass&) override { LOG(FATAL) << "numbers have no gradient"; }

 private:
  uint32_t place_;
};

}  // namespace

Result<std::unique_ptr<Layer>> NewEmbeddingLayer(const LayerSite& site) {
  HDPS_RETURN_IF_ERROR(site.ExpectInputs(0));
  const std::vector<TableSpec>& tables = site.job.tables;
  const auto table = std::find_if(tables.begin(), tables.end(), [&](const TableSpec& t) {
    return t.name == site.spec.table && !t.dense;
  });
  if (table == tables.end()) {
    return site.Mistake("table '" + site.spec.table + "' is not among the job's tables");
  }
  std::vector<uint32_t> features = FeatureIndexes(site.job.data, site.spec);
  if (features.empty()) return site.Mistake("the data has no sparse feature for it");
  if (!site.spec.features.empty() && features.size() != site.spec.features.size()) {
    return site.Mistake("a name in 'features' is not a sparse feature of the data");
  }
  const bool side_by_side = site.spec.combine == Combine::kConcat;
  site.self().width =
      side_by_side ? static_cast<uint32_t>(features.size()) * table->dim : table->dim;
  site.self().vector_dim = table->dim;
  site.self().learns = true;
  return std::unique_ptr<Layer>(std::make_unique<EmbeddingLayer>(
      site, static_cast<uint32_t>(table - tables.begin()), std::move(features)));
}

Result<std::unique_ptr<Layer>> NewNumericLayer(const LayerSite& site) {
  HDPS_RETURN_IF_ERROR(site.ExpectInputs(0));
  site.self().width = static_cast<uint32_t>(FeaturesOf(site.job.data).numeric.size());
  if (site.self().width == 0) return site.Mistake("the data has no numeric column");
  return std::unique_ptr<Layer>(std::make_unique<NumericLayer>(site.place));
}

}  // namespace hdps
