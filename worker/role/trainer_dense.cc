// A trainer's dense rows at the servers, and under allreduce the state that it keeps of them.
#include <glog/logging.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/platform/failpoint.h"
#include "worker/exchange/row_transfer.h"
#include "worker/role/trainer.h"

namespace hdps {

std::vector<KeysOfTable> Trainer::DenseOnly(uint32_t row_floats,
                                            const std::vector<Key>& keys) const {
  return {{dense_table(), dense_spec().shard_by, row_floats, keys, std::nullopt, true}};
}

Status Trainer::StoreDenseRows(uint32_t row_floats, const std::vector<Key>& keys,
                               std::span<const float> rows) {
  return StoreRows(channel_, DenseOnly(row_floats, keys), clock_, std::vector{rows});
}

Status Trainer::PullDense(PullMode mode, uint32_t row_floats, const std::vector<Key>& keys,
                          std::span<float> rows) {
  return ReadRows(channel_, DenseOnly(row_floats, keys), clock_, mode, std::vector{rows});
}

void Trainer::TellTraffic() {
  if (model_->ops().on_host()) return;
  const DeviceTraffic all = model_->ops().traffic();
  const DeviceGraphs graphs = model_->ops().graphs();
  LOG(INFO) << "over the bus: " << all.up_bytes - told_.up_bytes << " bytes up in "
            << all.up_copies - told_.up_copies << " copies, " << all.down_bytes - told_.down_bytes
            << " bytes down in " << all.down_copies - told_.down_copies
            << " copies; since the start " << graphs.launched << " graphs launched, "
            << graphs.built << " of them built";
  told_ = all;
}

bool Trainer::DenseOnDevice() {
  return allreduce() && !own_model().ops().on_host() && WhyDenseOnHost(*job_).empty();
}

Status Trainer::LoadDenseState() {
  if (dense_state_ != nullptr) return Status();
  const DenseShards& shards = ShardsOfView();
  std::vector<TensorHome> homes;
  const std::vector<DenseTensor>& tensors = own_model().tensors();
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    const bool own = own_job().model.layers[tensors[t].layer].layerwise_parallel;
    const RankGraph* const cut = rank_model_ == nullptr ? nullptr : &rank_model_->graph();
    const bool copy = cut != nullptr && cut->tensors[t].first_holder != cut->rank;
    homes.push_back(own               ? TensorHome::kOwn
                    : copy            ? TensorHome::kCopy
                    : shards.split(t) ? TensorHome::kSplit
                                      : TensorHome::kEach);
  }
  std::unique_ptr<DenseState> state;
  if (DenseOnDevice()) {
    state = std::make_unique<DeviceDenseState>(own_job().tables.back(), own_model());
  } else {
    state = std::make_unique<HostDenseState>(own_job().tables.back(), dense_table(), job_->seed,
                                             shards.OwnKeys(), std::move(homes));
  }
  // Slices of a cut model are not chunks: the whole tensors are read for them.
  const uint32_t row_floats = state->row_floats();
  const std::vector<Key>& keys = rank_model_ == nullptr ? state->keys() : dense_keys_;
  std::vector<float> rows(keys.size() * row_floats);
  HDPS_RETURN_IF_ERROR(PullDense(PullMode::kWithState, row_floats, keys, rows));
  state->Store(rank_model_ == nullptr ? rows : rank_model_->CutRows(row_floats, rows));
  if (state->on_device()) {
    dense_state_ = std::move(state);
    return Status();
  }
  std::vector<float> weights(own_model().dense_floats());
  if (shards.any()) {
    HDPS_RETURN_IF_ERROR(PullDense(PullMode::kRead, dense_spec().dim, dense_keys_, weights));
  } else {
    state->ReadWeights(executor_, weights);
  }
  own_model().SetDense(weights);
  dense_state_ = std::move(state);
  return Status();
}

Status Trainer::StoreDense() {
  // Slices are put together when the steps are over, which takes all ranks.
  if (!allreduce() || dense_state_ == nullptr || rank_model_ != nullptr) return Status();
  HDPS_FAILPOINT_OR_RETURN("worker.dense.before_store");
  const DenseShards& shards = ShardsOfView();
  const std::vector<Key> stored = shards.StoredKeys();
  if (stored.empty()) return Status();
  const uint32_t row_floats = dense_state_->row_floats();
  const std::vector<float> rows = dense_state_->Rows();
  // Those that are stored are all of the keys, or the last of them.
  CHECK_LE(stored.size(), dense_state_->keys().size());
  return StoreDenseRows(row_floats, stored, std::span(rows).last(stored.size() * row_floats));
}

}  // namespace hdps
