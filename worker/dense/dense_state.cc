// Cuts the keys into slices of consecutive chunks; one task at a time works on a slice.
#include "worker/dense/dense_state.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/base/shard_map.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/whole_tensors.h"

namespace hdps {
namespace {

constexpr size_t kSlicesMax = 16;  // Enough for the cores that share one worker's dense update.

}  // namespace

HostDenseState::HostDenseState(const TableSpec& spec, TableId id, uint64_t seed,
                               std::vector<Key> keys, std::vector<TensorHome> homes)
    : DenseState(spec.dim, std::move(keys)), ranges_(CutRanges(spec, keys_, homes)) {
  for (size_t s = 0; s < ranges_.size(); ++s) slices_.emplace_back(spec, id, seed);
}

std::vector<HostDenseState::Range> HostDenseState::CutRanges(const TableSpec& spec,
                                                             std::span<const Key> keys,
                                                             const std::vector<TensorHome>& homes) {
  const bool whole_tensors = spec.shard_by == ShardBy::kGroup;
  const auto home_of = [&](size_t k) {
    return homes.empty() ? TensorHome::kEach : homes[keys[k] >> 32];
  };
  std::vector<Range> ranges;
  const size_t wanted = (keys.size() + kSlicesMax - 1) / kSlicesMax;
  for (size_t begin = 0; begin < keys.size();) {
    const TensorHome home = home_of(begin);
    const auto belongs = [&](size_t k) {
      if (home_of(k) != home) return false;
      const bool same_tensor = keys[k - 1] >> 32 == keys[k] >> 32;
      return k < begin + wanted || (whole_tensors && (same_tensor || home == TensorHome::kSplit));
    };
    size_t end = begin + 1;
    while (end < keys.size() && belongs(end)) ++end;
    ranges.push_back({begin, end, home});
    begin = end;
  }
  return ranges;
}

std::span<const Key> HostDenseState::KeysOf(size_t slice) const {
  const Range& range = ranges_[slice];
  return {keys_.data() + range.begin, range.end - range.begin};
}

uint32_t HostDenseState::row_floats() const {
  return slices_.empty() ? dim_ : dim_ + slices_[0].state_floats();
}

void HostDenseState::Store(std::span<const float> rows) {
  CHECK_EQ(rows.size(), keys_.size() * row_floats());
  for (size_t s = 0; s < slices_.size(); ++s) {
    const std::span<const Key> keys = KeysOf(s);
    slices_[s].Store(keys, row_floats(),
                     rows.subspan(ranges_[s].begin * row_floats(), keys.size() * row_floats()));
  }
}

std::vector<float> HostDenseState::Rows() {
  std::vector<float> rows(keys_.size() * row_floats());
  for (size_t s = 0; s < slices_.size(); ++s) {
    const std::span<const Key> keys = KeysOf(s);
    slices_[s].Read(
        keys, row_floats(),
        std::span(rows).subspan(ranges_[s].begin * row_floats(), keys.size() * row_floats()));
  }
  return rows;
}

void HostDenseState::ReadWeights(Executor& executor, std::span<float> flat) {
  CHECK_EQ(flat.size(), keys_.size() * dim_);
  executor.ParallelFor(slices_.size(), [&](size_t s) {
    const std::span<const Key> keys = KeysOf(s);
    slices_[s].Read(keys, dim_, flat.subspan(ranges_[s].begin * dim_, keys.size() * dim_));
  });
}

TableSlice::Gradients HostDenseState::PartOf(size_t slice, std::span<const float> gradients) const {
  TableSlice::Gradients part;
  part.keys = KeysOf(slice);
  part.values = gradients.subspan(ranges_[slice].begin * dim_, part.keys.size() * dim_);
  return part;
}

std::array<SquareSum, kTensorHomes> HostDenseState::Squares(Executor& executor,
                                                            std::span<const float> gradients,
                                                            float scale) {
  CHECK_EQ(gradients.size(), keys_.size() * dim_);
  std::vector<SquareSum> own(slices_.size());
  executor.ParallelFor(slices_.size(), [&](size_t s) {
    const TableSlice::Gradients part = PartOf(s, gradients);
    own[s] = slices_[s].Squares({&part, 1}, scale);
  });
  std::array<SquareSum, kTensorHomes> squares;
  for (size_t s = 0; s < own.size(); ++s) {
    squares[static_cast<size_t>(ranges_[s].home)].Add(own[s]);
  }
  return squares;
}

void HostDenseState::Apply(Executor& executor, std::span<const float> gradients,
                           const Update& update) {
  CHECK_EQ(gradients.size(), keys_.size() * dim_);
  const auto apply = [&](size_t s, const UpdateTerms& terms) {
    const float scale = ranges_[s].home == TensorHome::kOwn ? update.own_scale : update.scale;
    if (scale == 0) return;
    const TableSlice::Gradients part = PartOf(s, gradients);
    slices_[s].Apply({&part, 1}, scale, update.step, terms);
  };
  UpdateTerms alone = update.terms;
  alone.peers = nullptr;
  const bool with_peers = update.terms.peers != nullptr;
  executor.ParallelFor(slices_.size(), [&](size_t s) {
    if (!with_peers || ranges_[s].home != TensorHome::kSplit) apply(s, alone);
  });
  if (!with_peers) return;
  // There is one split range or none; without one, the other ranks still wait for this rank's sums.
  const bool has_split = !ranges_.empty() && ranges_.back().home == TensorHome::kSplit;
  if (has_split) return apply(ranges_.size() - 1, update.terms);
  update.terms.peers->OfTensors({}, {});
}

}  // namespace hdps
