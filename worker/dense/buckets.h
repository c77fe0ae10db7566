// Which tensors travel together in one collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hdps {

struct FusionSpec;

struct FusedTensor {
  size_t bytes = 0;
  int32_t fusion = -1;  // As LayerSpec::fusion.
};

// Tensors of one collective, ascending, as positions among those that were given.
using Bucket = std::vector<uint32_t>;

// The buckets of tensors in the order in which they are ready, each in one; buckets in the order in
// which their last tensors are. Alone are all where fusion is off, and those with id 0; of one
// bucket are those that share another id. Of the rest:
//   auto, size   neighbours, as long as they are not more bytes together than the limit
//   index        those before each index, and those behind the last
std::vector<Bucket> BucketsOf(std::span<const FusedTensor> tensors, bool fuse,
                              const FusionSpec& fusion);

}  // namespace hdps
