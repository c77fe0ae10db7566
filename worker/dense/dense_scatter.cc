// Packs what goes to each rank, and unpacks what comes from it.
#include "worker/dense/dense_scatter.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "common/job/spec/table_spec.h"
#include "kernels/host/half_floats.h"

namespace hdps {
namespace {

constexpr size_t kChunk = kDenseChunkFloats;

std::span<const std::byte> BytesOf(std::span<const float> floats) { return std::as_bytes(floats); }

std::vector<size_t> InBytes(const std::vector<size_t>& floats) {
  std::vector<size_t> bytes;
  for (const size_t count : floats) bytes.push_back(count * sizeof(float));
  return bytes;
}

size_t SumOfAll(const std::vector<size_t>& counts) {
  size_t sum = 0;
  for (const size_t count : counts) sum += count;
  return sum;
}

}  // namespace

DenseScatter::DenseScatter(const std::vector<DenseTensor>& tensors, const DenseShards& shards,
                           const ShardGroups& groups, DType wire)
    : tensors_(tensors), shards_(shards), groups_(groups), wire_(wire) {}

Status DenseScatter::Reduce(const DenseBucket& bucket, std::span<const float> gradients,
                            std::span<float> own) {
  packed_.clear();
  std::vector<size_t> counts;
  for (uint32_t r = 0; r < shards_.size(); ++r) {
    const size_t before = packed_.size();
    for (const uint32_t t : bucket.tensors) {
      const Cut piece = shards_.PieceOf(t, r);
      const float* const from = gradients.data() + (tensors_[t].first_chunk + piece.begin) * kChunk;
      packed_.insert(packed_.end(), from, from + piece.size * kChunk);
    }
    counts.push_back(packed_.size() - before);
  }
  mine_.resize(counts[shards_.rank()]);
  HDPS_RETURN_IF_ERROR(ReduceScatter(counts));
  HDPS_RETURN_IF_ERROR(CollectPart(bucket));
  // part_ holds, group by group, that group's pieces of each tensor.
  const float* at = part_.data();
  for (uint32_t g = 0; g < shards_.size() / shards_.places(); ++g) {
    const uint32_t rank = g * shards_.places() + shards_.place();
    for (const uint32_t t : bucket.tensors) {
      const Cut piece = shards_.PieceOf(t, rank);
      const size_t offset = shards_.OwnAt(t) + (piece.begin - shards_.OwnOf(t).begin);
      std::copy_n(at, piece.size * kChunk, own.data() + offset * kChunk);
      at += piece.size * kChunk;
    }
  }
  return Status();
}

Status DenseScatter::ReduceScatter(std::span<const size_t> counts) {
  if (wire_ == DType::kFp32) {
    return groups_.all->ReduceScatter(SumOf(std::span(packed_)), counts, mine_.data());
  }
  const VectorWidth width = WidestVectors();
  packed_halves_.resize(packed_.size());
  mine_halves_.resize(mine_.size());
  auto* const mine = reinterpret_cast<std::byte*>(mine_halves_.data());
  NarrowFloats(width, wire_, packed_, reinterpret_cast<std::byte*>(packed_halves_.data()));
  const Reduction sum = wire_ == DType::kFp16 ? Reduction::kSumFp16 : Reduction::kSumBf16;
  const ReducedValues values = {sum, packed_halves_.data(), packed_halves_.size()};
  HDPS_RETURN_IF_ERROR(groups_.all->ReduceScatter(values, counts, mine));
  WidenFloats(width, wire_, mine, mine_);
  return Status();
}

// Sets part_ to mine_ of all replicas.
Status DenseScatter::CollectPart(const DenseBucket& bucket) {
  if (groups_.replicas == nullptr) {
    std::swap(part_, mine_);
    return Status();
  }
  std::vector<size_t> counts;
  for (uint32_t g = 0; g < groups_.replicas->size(); ++g) {
    size_t& count = counts.emplace_back(0);
    for (const uint32_t t : bucket.tensors) {
      count += shards_.PieceOf(t, g * shards_.places() + shards_.place()).size * kChunk;
    }
  }
  part_.resize(SumOfAll(counts));
  return groups_.replicas->AllGather(BytesOf(mine_), InBytes(counts),
                                     std::as_writable_bytes(std::span(part_)));
}

Status DenseScatter::Gather(std::span<const uint32_t> split, std::span<const float> own,
                            std::span<float> weights) {
  mine_.clear();
  for (const uint32_t t : split) {
    const float* const from = own.data() + shards_.OwnAt(t) * kChunk;
    mine_.insert(mine_.end(), from, from + shards_.OwnOf(t).size * kChunk);
  }
  std::vector<size_t> counts;
  for (uint32_t place = 0; place < shards_.places(); ++place) {
    size_t& count = counts.emplace_back(0);
    for (const uint32_t t : split) count += shards_.PartOf(t, place).size * kChunk;
  }
  packed_.resize(SumOfAll(counts));
  HDPS_RETURN_IF_ERROR(groups_.places->AllGather(BytesOf(mine_), InBytes(counts),
                                                 std::as_writable_bytes(std::span(packed_))));
  const float* at = packed_.data();
  for (uint32_t place = 0; place < shards_.places(); ++place) {
    for (const uint32_t t : split) {
      const Cut part = shards_.PartOf(t, place);
      std::copy_n(at, part.size * kChunk,
                  weights.data() + (tensors_[t].first_chunk + part.begin) * kChunk);
      at += part.size * kChunk;
    }
  }
  return Status();
}

Result<SquareSum> DenseScatter::SquaresOfAll(const SquareSum& whole, const SquareSum& parts) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<uint64_t>> of_places,
                        GatherLists<uint64_t>(*groups_.places, parts.words));
  SquareSum all = whole;
  for (const std::vector<uint64_t>& words : of_places) {
    SquareSum one;
    std::ranges::copy(words, one.words.begin());
    all.Add(one);
  }
  return all;
}

std::vector<TensorSums> DenseScatter::OfTensors(std::span<const Key> keys,
                                                std::span<const TensorSums> own) {
  struct OfChunk {
    uint64_t key;
    uint64_t weights, direction;  // Bits of doubles.
  };
  std::vector<OfChunk> mine;
  for (size_t k = 0; k < keys.size(); ++k) {
    mine.push_back({keys[k], std::bit_cast<uint64_t>(own[k].weights),
                    std::bit_cast<uint64_t>(own[k].direction)});
  }
  std::vector<TensorSums> sums(keys.size());
  const auto of_places = GatherLists<OfChunk>(*groups_.places, mine);
  if (!of_places.ok()) {
    failure_ = of_places.status();
    return sums;
  }
  // Places hold their parts in the order of the chunks.
  std::map<uint64_t, TensorSums> of_tensor;
  for (const std::vector<OfChunk>& chunks : *of_places) {
    for (const OfChunk& chunk : chunks) {
      TensorSums& sum = of_tensor[chunk.key >> 32];
      sum.weights += std::bit_cast<double>(chunk.weights);
      sum.direction += std::bit_cast<double>(chunk.direction);
    }
  }
  for (size_t k = 0; k < keys.size(); ++k) sums[k] = of_tensor[keys[k] >> 32];
  return sums;
}

Status DenseScatter::TakeFailure() { return std::exchange(failure_, Status()); }

}  // namespace hdps
