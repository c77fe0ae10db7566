// Collectives of an optimizer that is split over the workers: gradients go to the workers that
// update them, and the updated weights to all.
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

// The groups of a split optimizer as one rank sees them.
struct ShardGroups {
  Collective* all = nullptr;
  Collective* places = nullptr;    // The ranks that share tensors with this rank, by place.
  Collective* replicas = nullptr;  // The ranks that hold the same parts; null: only this one does.
};

// Reduces and gathers split tensors.
//
// Invariant: exchanged data is ordered by rank, then by tensor, then by chunk.
class DenseScatter : public TensorPeers {
 public:
  // Requires: all arguments outlive it. `wire`: number format of gradients.
  DenseScatter(const std::vector<DenseTensor>& tensors, const DenseShards& shards,
               const ShardGroups& groups, DType wire);

  // Sums `gradients` [dense floats] of the bucket's tensors over all ranks, and writes what this
  // rank updates to its place in `own` [floats of OwnKeys()].
  Status Reduce(const DenseBucket& bucket, std::span<const float> gradients, std::span<float> own);
  // Gathers the split tensors: every rank's part of `own` weights, to `weights` [dense floats] on
  // all ranks.
  Status Gather(std::span<const uint32_t> split, std::span<const float> own,
                std::span<float> weights);
  // Returns the squares of all tensors, from those of whole tensors and of this rank's parts of
  // split ones.
  Result<SquareSum> SquaresOfAll(const SquareSum& whole, const SquareSum& parts);

  std::vector<TensorSums> OfTensors(std::span<const Key> keys,
                                    std::span<const TensorSums> own) override;
  // Returns the error of OfTensors() since the last call, if any.
  Status TakeFailure();

 private:
  Status ReduceScatter(std::span<const size_t> counts);
  Status CollectPart(const DenseBucket& bucket);

  const std::vector<DenseTensor>& tensors_;
  const DenseShards& shards_;
  const ShardGroups groups_;
  const DType wire_;
  Status failure_;
  // The current call.
  std::vector<float> packed_, mine_, part_;
  std::vector<uint16_t> packed_halves_, mine_halves_;
};

}  // namespace hdps
