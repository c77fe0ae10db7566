// Who updates which chunks of the dense tensors, where the optimizer is split over the workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/parallel/layout.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// Ranks are cut into groups of `places` neighbours; those of one group share every split tensor,
// and the groups are copies of each other. A tensor's chunks are cut into a piece for each rank,
// which reduces its gradient; the pieces of the ranks at one place of all groups lie side by side,
// and are that place's part, which they update.
//
// Invariant: the pieces of a tensor are its chunks, each once; what ranks have of all split tensors
// together differs by one chunk at most.
class DenseShards {
 public:
  // Of one rank of `size`; one rank, or places of one rank, split nothing.
  DenseShards(const Job& job, const std::vector<DenseTensor>& tensors, uint32_t rank,
              uint32_t size);
  // Nothing is split.
  explicit DenseShards(const std::vector<DenseTensor>& tensors);

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  uint32_t places() const { return places_; }
  uint32_t group() const { return rank_ / places_; }
  uint32_t place() const { return rank_ % places_; }
  bool any() const { return any_; }
  bool split(uint32_t tensor) const { return tensors_[tensor].split; }

  // Of a split tensor's chunks: what a rank reduces, and what the ranks at a place update.
  Cut PieceOf(uint32_t tensor, uint32_t rank) const;
  Cut PartOf(uint32_t tensor, uint32_t place) const;

  // What this rank updates: whole tensors, then parts of split ones, each in order. Of each tensor,
  // chunks of it and where they are among all that this rank has.
  Cut OwnOf(uint32_t tensor) const;
  size_t OwnAt(uint32_t tensor) const { return tensors_[tensor].own_at; }  // In chunks.
  std::vector<Key> OwnKeys() const;
  // Of those: what this rank stores in a checkpoint, so that all ranks together store every chunk
  // once. Own tensors (layerwise_parallel) are those of rank 0.
  std::vector<Key> StoredKeys() const;

 private:
  struct Tensor {
    size_t chunks = 0;
    bool split = false;
    size_t first_longer =
        0;  // Of its pieces: from this one on, in a circle, they are a chunk longer.
    size_t own_at = 0;
  };
  // Piece `index` in the order of the chunks: that of rank (index / groups) + places * (index %
  // groups).
  Cut PieceAt(const Tensor& tensor, size_t index) const;
  std::vector<uint32_t> OwnOrder() const;  // Tensors that are not split, and those that are.

  uint32_t rank_ = 0, size_ = 1, places_ = 1, groups_ = 1;
  bool any_ = false;
  std::vector<Tensor> tensors_;
};

}  // namespace hdps
