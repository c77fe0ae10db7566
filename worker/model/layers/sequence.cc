// Gives the rows of one feature's keys, in order.
#include <glog/logging.h>

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/pooling.h"
#include "common/job/spec/table_spec.h"
#include "worker/model/feature_list.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Reads the sequences as features: for the device, position p of all sequences is one more feature,
// whose bags hold one key or none.
class SequenceLayer : public Layer {
 public:
  explicit SequenceLayer(const LayerSite& site)
      : place_(site.place),
        name_(site.spec.name),
        feature_(FeatureIndexes(site.job.data, site.spec).at(0)),
        positions_(site.self().width / site.self().vector_dim) {
    while (site.job.tables[table_].name != site.spec.table) ++table_;
    spec_ = {Pooling::kSum, Combine::kConcat, site.job.tables[table_].dim};
  }

  void Bring(Pass& pass) override {
    const std::vector<Bags> bags = SpreadOut(pass);
    const size_t rows = pass.tables[table_].keys->unique.size();
    pass.ops.LoadBags(bags, static_cast<uint32_t>(rows), &index_);
  }

  void Forward(Pass& pass) override {
    pass.ops.Pool(*index_, spec_, pass.tables[table_].rows, pass.places[place_].value);
  }

  void Backward(Pass& pass) override {
    TablePass& table = pass.tables[table_];
    const Write write = table.gradients_begun ? Write::kAdd : Write::kOver;
    table.gradients_begun = true;
    pass.ops.PoolBackward(*index_, spec_, pass.places[place_].gradient, write, table.row_gradients);
  }

 private:
  // The keys of one position, in one bag per example.
  struct Position {
    std::vector<uint32_t> offsets, row_index;
    std::vector<float> weights;
  };

  // Fills positions_, to which the bags refer.
  std::vector<Bags> SpreadOut(const Pass& pass) {
    const SparseColumn& column = pass.sources.sparse[feature_];
    const std::vector<uint32_t>& row_index = pass.tables[table_].keys->row_index[feature_];
    for (Position& position : positions_) {
      position.offsets.assign(1, 0);
      position.row_index.clear();
      position.weights.clear();
    }
    for (uint32_t i = 0; i < pass.sources.num_examples; ++i) {
      const uint32_t begin = column.offsets[i], end = column.offsets[i + 1];
      const auto count = std::min<size_t>(end - begin, positions_.size());
      if (count < end - begin) TellOfCut(end - begin);
      // If there are more keys than positions, the last ones are used.
      const size_t first = end - count;
      for (size_t p = 0; p < positions_.size(); ++p) {
        Position& position = positions_[p];
        if (p < count) {
          position.row_index.push_back(row_index[first + p]);
          if (!column.weights.empty()) position.weights.push_back(column.weights[first + p]);
        }
        position.offsets.push_back(static_cast<uint32_t>(position.row_index.size()));
      }
    }
    std::vector<Bags> bags;
    for (const Position& position : positions_) {
      bags.push_back({position.offsets, position.row_index, position.weights});
    }
    return bags;
  }

  void TellOfCut(size_t keys) {
    if (told_) return;
    told_ = true;
    LOG(WARNING) << "layer \"" << name_ << "\": an example has " << keys
                 << " keys, of which the last " << positions_.size()
                 << " count (its length); this is told once";
  }

  uint32_t place_, table_ = 0;
  const std::string name_;
  uint32_t feature_;  // Column of the batch.
  PoolSpec spec_;
  std::vector<Position> positions_;  // [length], of the current pass.
  std::unique_ptr<BagIndex> index_;
  bool told_ = false;
};

}  // namespace

std::unique_ptr<Layer> NewSequence(const LayerSite& site) {
  return std::make_unique<SequenceLayer>(site);
}

}  // namespace hdps
