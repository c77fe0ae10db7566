// Copies the rows of a slice in runs that do not cross the end of a chunk.
#include "worker/parallel/tensor_slices.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/spec/table_spec.h"

namespace hdps {

TensorSlices::TensorSlices(std::vector<DenseTensor> whole, std::vector<DenseTensor> own,
                           std::vector<TensorSlice> slices)
    : whole_(std::move(whole)), own_(std::move(own)), slices_(std::move(slices)) {
  CHECK_EQ(own_.size(), slices_.size());
  for (size_t i = 0; i < slices_.size(); ++i) {
    CHECK_EQ(own_[i].size(), slices_[i].rows.size * slices_[i].columns.size) << own_[i].name;
  }
}

size_t TensorSlices::ChunksOf(const std::vector<DenseTensor>& tensors) {
  return tensors.empty() ? 0 : tensors.back().first_chunk + tensors.back().num_chunks;
}

template <typename Move>
void TensorSlices::ForEachPiece(size_t slice, uint32_t row_floats, const Move& move) const {
  constexpr size_t kChunk = kDenseChunkFloats;
  const TensorSlice& of = slices_[slice];
  const DenseTensor &own = own_[slice], &whole = whole_[of.whole];
  const size_t rows = whole.shape.size() > 1 ? whole.shape[0] : 1;
  const size_t columns = whole.size() / rows;
  const auto at = [row_floats](const DenseTensor& tensor, size_t element) {
    return (tensor.first_chunk + element / kChunk) * row_floats + element % kChunk;
  };
  for (size_t r = 0; r < of.rows.size; ++r) {
    size_t from = r * of.columns.size;
    size_t to = of.row_order.IndexOf(of.rows.begin + r, rows) * columns + of.columns.begin;
    for (size_t left = of.columns.size; left > 0;) {
      const size_t count = std::min({left, kChunk - from % kChunk, kChunk - to % kChunk});
      for (size_t array = 0; array < row_floats / kChunk; ++array) {
        move(at(own, from) + array * kChunk, at(whole, to) + array * kChunk, count);
      }
      from += count;
      to += count;
      left -= count;
    }
  }
}

template <typename Move>
void TensorSlices::ForEachCount(size_t slice, uint32_t row_floats, const Move& move) const {
  const size_t arrays_end = row_floats / kDenseChunkFloats * kDenseChunkFloats;
  for (size_t at = arrays_end; at < row_floats; ++at) {
    move(own_[slice].first_chunk * row_floats + at,
         whole_[slices_[slice].whole].first_chunk * row_floats + at);
  }
}

std::vector<float> TensorSlices::Cut(uint32_t row_floats, std::span<const float> whole) const {
  CHECK_EQ(whole.size(), whole_chunks() * row_floats);
  std::vector<float> own(own_chunks() * row_floats, 0.0f);
  for (size_t i = 0; i < slices_.size(); ++i) {
    ForEachPiece(i, row_floats, [&](size_t to, size_t from, size_t count) {
      std::copy_n(whole.data() + from, count, own.data() + to);
    });
    ForEachCount(i, row_floats, [&](size_t to, size_t from) {
      for (size_t c = 0; c < own_[i].num_chunks; ++c) own[to + c * row_floats] = whole[from];
    });
  }
  return own;
}

void TensorSlices::Join(uint32_t rank, uint32_t row_floats, std::span<const float> own,
                        std::span<float> whole) const {
  CHECK_EQ(own.size(), own_chunks() * row_floats);
  CHECK_EQ(whole.size(), whole_chunks() * row_floats);
  for (size_t i = 0; i < slices_.size(); ++i) {
    if (slices_[i].first_holder != rank) continue;
    ForEachPiece(i, row_floats, [&](size_t from, size_t to, size_t count) {
      std::copy_n(own.data() + from, count, whole.data() + to);
    });
    const size_t chunks = whole_[slices_[i].whole].num_chunks;
    ForEachCount(i, row_floats, [&](size_t from, size_t to) {
      for (size_t c = 0; c < chunks; ++c) whole[to + c * row_floats] = own[from];
    });
  }
}

}  // namespace hdps
