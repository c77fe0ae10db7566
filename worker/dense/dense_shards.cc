// Deals out chunks so that the ranks' shares differ by one chunk at most.
#include "worker/dense/dense_shards.h"

#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"

namespace hdps {

DenseShards::DenseShards(const std::vector<DenseTensor>& tensors) {
  size_t at = 0;
  for (const DenseTensor& tensor : tensors) {
    tensors_.push_back({.chunks = tensor.num_chunks, .split = false, .own_at = at});
    at += tensor.num_chunks;
  }
}

DenseShards::DenseShards(const Job& job, const std::vector<DenseTensor>& tensors, uint32_t rank,
                         uint32_t size, const std::vector<bool>& elsewhere)
    : DenseShards(tensors) {
  rank_ = rank;
  size_ = size;
  for (size_t t = 0; t < elsewhere.size(); ++t) {
    tensors_[t].elsewhere = elsewhere[t];
    if (elsewhere[t]) all_here_ = false;
  }
  SplitOptimizer(job, tensors);
  size_t at = 0;
  for (const uint32_t t : OwnOrder()) {
    tensors_[t].own_at = at;
    at += OwnOf(t).size;
  }
}

void DenseShards::SplitOptimizer(const Job& job, const std::vector<DenseTensor>& tensors) {
  const OptimizerShardSpec& spec = job.parallel.optimizer;
  if (!spec.enabled || size_ == 1) return;
  const auto wanted = static_cast<uint32_t>(spec.weight_shard_size);
  places_ = spec.weight_shard_size > 0 && size_ % wanted == 0 ? wanted : size_;
  groups_ = size_ / places_;
  if (places_ == 1) return;
  size_t longer = 0;
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    Tensor& tensor = tensors_[t];
    const size_t bytes = tensors[t].size() * sizeof(float);
    tensor.split = bytes >= size_t{spec.threshold_kib} * 1024 &&
                   !job.model.layers[tensors[t].layer].layerwise_parallel && !tensor.elsewhere;
    if (!tensor.split) continue;
    any_ = true;
    all_here_ = false;
    tensor.first_longer = longer;
    longer = (longer + tensor.chunks % size_) % size_;
  }
}

std::vector<uint32_t> DenseShards::OwnOrder() const {
  std::vector<uint32_t> order;
  for (const bool of_split : {false, true}) {
    for (uint32_t t = 0; t < tensors_.size(); ++t) {
      if (split(t) == of_split) order.push_back(t);
    }
  }
  return order;
}

Cut DenseShards::PieceAt(const Tensor& tensor, size_t index) const {
  const size_t each = tensor.chunks / size_, more = tensor.chunks % size_;
  const auto is_longer = [&](size_t i) { return (i + size_ - tensor.first_longer) % size_ < more; };
  Cut piece = {index * each, each + (is_longer(index) ? 1 : 0)};
  for (size_t i = 0; i < index; ++i) piece.begin += is_longer(i) ? 1 : 0;
  return piece;
}

Cut DenseShards::PieceOf(uint32_t tensor, uint32_t rank) const {
  return PieceAt(tensors_[tensor], size_t{rank % places_} * groups_ + rank / places_);
}

Cut DenseShards::PartOf(uint32_t tensor, uint32_t place) const {
  const Cut first = PieceAt(tensors_[tensor], size_t{place} * groups_);
  const Cut last = PieceAt(tensors_[tensor], size_t{place + 1} * groups_ - 1);
  return {first.begin, last.end() - first.begin};
}

Cut DenseShards::OwnOf(uint32_t tensor) const {
  if (tensors_[tensor].elsewhere) return {};
  return split(tensor) ? PartOf(tensor, place()) : Cut{0, tensors_[tensor].chunks};
}

std::vector<Key> DenseShards::OwnKeys() const {
  std::vector<Key> keys;
  for (const uint32_t t : OwnOrder()) {
    const Cut own = OwnOf(t);
    for (size_t c = own.begin; c < own.end(); ++c) keys.push_back(Key{t} << 32 | c);
  }
  return keys;
}

std::vector<Key> DenseShards::StoredKeys() const {
  std::vector<Key> keys;
  for (const Key key : OwnKeys()) {
    const bool of_split = split(static_cast<uint32_t>(key >> 32));
    if (of_split ? group() == 0 : rank_ == 0) keys.push_back(key);
  }
  return keys;
}

}  // namespace hdps
