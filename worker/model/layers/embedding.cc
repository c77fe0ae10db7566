// Pools rows of a table.
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/table_spec.h"
#include "worker/model/feature_list.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

class EmbeddingLayer : public Layer {
 public:
  explicit EmbeddingLayer(const LayerSite& site)
      : place_(site.place), features_(FeatureIndexes(site.job.data, site.spec)) {
    while (site.job.tables[table_].name != site.spec.table) ++table_;
    spec_ = {site.spec.pooling, site.spec.combine, site.job.tables[table_].dim};
  }

  void Bring(Pass& pass) override {
    CollectBags(pass, table_, features_, &bags_);
    const size_t rows = pass.tables[table_].keys->unique.size();
    pass.ops.LoadBags(bags_, static_cast<uint32_t>(rows), &index_);
  }

  void Forward(Pass& pass) override {
    const TablePass& table = pass.tables[table_];
    const Place& self = pass.places[place_];
    if (self.value_in_bf16) {
      pass.ops.Pool(*index_, spec_, table.rows, self.value16);
    } else {
      pass.ops.Pool(*index_, spec_, table.rows, self.value);
    }
  }

  void Backward(Pass& pass) override {
    TablePass& table = pass.tables[table_];
    const Write write = table.gradients_begun ? Write::kAdd : Write::kOver;
    table.gradients_begun = true;
    const Place& self = pass.places[place_];
    if (self.gradient_in_bf16) {
      pass.ops.PoolBackward(*index_, spec_, self.gradient16, write, table.row_gradients);
    } else {
      pass.ops.PoolBackward(*index_, spec_, self.gradient, write, table.row_gradients);
    }
  }

 private:
  uint32_t place_, table_ = 0;
  std::vector<uint32_t> features_;  // Columns of the batch.
  PoolSpec spec_;
  std::vector<Bags> bags_;  // Bags of the current pass.
  std::unique_ptr<BagIndex> index_;
};

}  // namespace

std::unique_ptr<Layer> NewEmbedding(const LayerSite& site) {
  return std::make_unique<EmbeddingLayer>(site);
}

}  // namespace hdps
