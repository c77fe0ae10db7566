// Converts the rows of dense tensors, with optimizer state, between a job's model and the slices
// that one rank holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/model/model.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// A row is a chunk: kDenseChunkFloats weights, then arrays of state of the same length, element by
// element, then values that the whole row shares: the count of its updates, which is that of the
// tensor. The rest of a tensor's last chunk is zero.
//
// Invariant: Cut() of what Join() has written returns what Join() was given.
class TensorSlices {
 public:
  // `own` are the tensors of the rank's model, one for each of `slices`.
  TensorSlices(std::vector<DenseTensor> whole, std::vector<DenseTensor> own,
               std::vector<TensorSlice> slices);

  size_t whole_chunks() const { return ChunksOf(whole_); }
  size_t own_chunks() const { return ChunksOf(own_); }
  // Returns the rank's rows [own_chunks * row_floats] from whole[whole_chunks * row_floats].
  std::vector<float> Cut(uint32_t row_floats, std::span<const float> whole) const;
  // Writes the slices of which the rank is the first holder into `whole`.
  void Join(uint32_t rank, uint32_t row_floats, std::span<const float> own,
            std::span<float> whole) const;

 private:
  static size_t ChunksOf(const std::vector<DenseTensor>& tensors);
  // Calls move(first float in own, first float in whole, count) for pieces of the slice that are
  // contiguous in both; positions are in rows of `row_floats`.
  template <typename Move>
  void ForEachPiece(size_t slice, uint32_t row_floats, const Move& move) const;
  // Calls move(float in own, float in whole) for the floats after the arrays in the slice's first
  // rows.
  template <typename Move>
  void ForEachCount(size_t slice, uint32_t row_floats, const Move& move) const;

  const std::vector<DenseTensor> whole_, own_;
  const std::vector<TensorSlice> slices_;
};

}  // namespace hdps
