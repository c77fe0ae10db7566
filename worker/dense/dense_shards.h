// Assigns the chunks of dense tensors to workers if the optimizer is split over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/parallel/layout.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// Splits the update of dense tensors over the ranks. Ranks are divided into groups of `places`
// consecutive ranks; the ranks of a group share every split tensor, and the groups are copies of
// each other. A tensor's chunks are cut into one piece for each rank, which reduces its gradient.
// The pieces of the ranks at the same place in all groups are adjacent: together they are the part
// that this place updates.
//
// Invariant: the pieces of a tensor cover its chunks, each once; the ranks' shares of all split
// tensors together differ by one chunk at most.
class DenseShards {
 public:
  // The view of one rank of `size`. Nothing is split if there is one rank or one place.
  // `elsewhere` [tensors]: those that servers or this worker's device update, of which the rank has
  // no chunk here; empty: none.
  DenseShards(const Job& job, const std::vector<DenseTensor>& tensors, uint32_t rank, uint32_t size,
              const std::vector<bool>& elsewhere = {});
  // Splits nothing.
  explicit DenseShards(const std::vector<DenseTensor>& tensors);

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  uint32_t places() const { return places_; }
  uint32_t group() const { return rank_ / places_; }
  uint32_t place() const { return rank_ % places_; }
  bool any() const { return any_; }
  // Is true if OwnKeys() are all chunks in order: nothing is split or elsewhere.
  bool all_here() const { return all_here_; }
  bool split(uint32_t tensor) const { return tensors_[tensor].split; }

  // For a split tensor's chunks: PieceOf() is what a rank reduces, PartOf() what the ranks at a
  // place update.
  Cut PieceOf(uint32_t tensor, uint32_t rank) const;
  Cut PartOf(uint32_t tensor, uint32_t place) const;

  // The chunks that this rank updates: whole tensors first, then parts of split ones, each in
  // order. OwnOf() gives a tensor's chunks, OwnAt() where they begin in the rank's list.
  Cut OwnOf(uint32_t tensor) const;
  size_t OwnAt(uint32_t tensor) const { return tensors_[tensor].own_at; }  // In chunks.
  std::vector<Key> OwnKeys() const;
  // Returns the keys of OwnKeys() that this rank stores in a checkpoint; all ranks together store
  // every chunk once. For layerwise_parallel tensors rank 0 stores its own.
  std::vector<Key> StoredKeys() const;

 private:
  struct Tensor {
    size_t chunks = 0;
    bool split = false, elsewhere = false;
    // First of the pieces, counted in a circle, that are one chunk longer.
    size_t first_longer = 0;
    size_t own_at = 0;
  };
  // Returns piece number `index` in the order of the chunks, which belongs to rank (index / groups)
  // + places * (index % groups).
  Cut PieceAt(const Tensor& tensor, size_t index) const;
  std::vector<uint32_t> OwnOrder() const;  // Whole tensors, then split ones.
  // Finds the tensors to split.
  void SplitOptimizer(const Job& job, const std::vector<DenseTensor>& tensors);

  uint32_t rank_ = 0, size_ = 1, places_ = 1, groups_ = 1;
  bool any_ = false, all_here_ = true;
  std::vector<Tensor> tensors_;
};

}  // namespace hdps
