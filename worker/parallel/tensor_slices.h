// The rows of dense tensors, with the state of their optimizer, between a job's model and the
// slices that one rank has of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/model/model.h"
#include "worker/parallel/rank_graph.h"

namespace hdps {

// Rows are chunks as everywhere: kDenseChunkFloats weights, then arrays of state as long, element
// by element, then what all of a row have in common: the count of its updates, which is that of the
// tensor. What fills up a tensor's last chunk is zero.
//
// Invariant: Cut of what Join has written is what it was given.
class TensorSlices {
 public:
  // `own` are the tensors of the rank's model, one for each of `slices`.
  TensorSlices(std::vector<DenseTensor> whole, std::vector<DenseTensor> own,
               std::vector<TensorSlice> slices);

  size_t whole_chunks() const { return ChunksOf(whole_); }
  size_t own_chunks() const { return ChunksOf(own_); }
  // whole[whole_chunks * row_floats] -> the rank's, [own_chunks * row_floats].
  std::vector<float> Cut(uint32_t row_floats, std::span<const float> whole) const;
  // Writes into `whole` what the rank speaks for: slices of which it is the first holder.
  void Join(uint32_t rank, uint32_t row_floats, std::span<const float> own,
            std::span<float> whole) const;

 private:
  static size_t ChunksOf(const std::vector<DenseTensor>& tensors);
  // Calls move(first float of own, of whole, count) for pieces of the slice that are neighbours in
  // both; positions are in rows of `row_floats`.
  template <typename Move>
  void ForEachPiece(size_t slice, uint32_t row_floats, const Move& move) const;
  // Calls move(of own, of whole) for the floats behind the arrays of the slice's first rows.
  template <typename Move>
  void ForEachCount(size_t slice, uint32_t row_floats, const Move& move) const;

  const std::vector<DenseTensor> whole_, own_;
  const std::vector<TensorSlice> slices_;
};

}  // namespace hdps
