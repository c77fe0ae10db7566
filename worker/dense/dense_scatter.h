// Gradients to the workers that update them, and their weights to all: collectives of an optimizer
// that is split over the workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/dtype.h"
#include "common/base/square_sum.h"
#include "common/base/status.h"
#include "embedding/memory/whole_tensors.h"
#include "worker/collective/collective.h"
#include "worker/dense/dense_plan.h"
#include "worker/dense/dense_shards.h"
#include "worker/model/model.h"

namespace hdps {

// The groups of a split optimizer, as one rank sees them.
struct ShardGroups {
  Collective* all = nullptr;
  Collective* places = nullptr;    // Those that share tensors with this rank, by place.
  Collective* replicas = nullptr;  // Those that have the same parts; null: this one alone.
};

// Invariant: what ranks exchange lies rank by rank, in each by tensor, in each in order.
class DenseScatter : public TensorPeers {
 public:
  // All outlive it. `wire`: of gradients.
  DenseScatter(const std::vector<DenseTensor>& tensors, const DenseShards& shards,
               const ShardGroups& groups, DType wire);

  // The sums over all ranks of what this rank updates of the bucket's tensors, from `gradients`
  // [dense floats], to their places in `own` [floats of OwnKeys()].
  Status Reduce(const DenseBucket& bucket, std::span<const float> gradients, std::span<float> own);
  // Of these split tensors: what each rank has in its `own` weights, to all ranks' [dense floats].
  Status Gather(std::span<const uint32_t> split, std::span<const float> own,
                std::span<float> weights);
  // Squares of tensors that are not split, and of the own parts of those that are: of all.
  Result<SquareSum> SquaresOfAll(const SquareSum& whole, const SquareSum& parts);

  std::vector<TensorSums> OfTensors(std::span<const Key> keys,
                                    std::span<const TensorSums> own) override;
  // What went wrong in OfTensors since it was last asked.
  Status TakeFailure();

 private:
  Status ReduceScatter(std::span<const size_t> counts);
  Status CollectPart(const DenseBucket& bucket);

  const std::vector<DenseTensor>& tensors_;
  const DenseShards& shards_;
  const ShardGroups groups_;
  const DType wire_;
  Status failure_;
  // Of the call at hand.
  std::vector<float> packed_, mine_, part_;
  std::vector<uint16_t> packed_halves_, mine_halves_;
};

}  // namespace hdps
