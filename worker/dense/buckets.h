// Groups tensors that travel together in one collective.
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

// Tensors of one collective: ascending indices into the tensors given.
using Bucket = std::vector<uint32_t>;

// Assigns each of `tensors`, which stand in the order in which their gradients are ready, to one
// bucket. Buckets come in the order in which their last tensors are ready. A tensor has a bucket to
// itself if fusion is off or its fusion id is 0; tensors that share another id share a bucket. The
// rest (id -1) are grouped by mode:
//   auto, size   consecutive tensors, up to the limit of bytes
//   index        consecutive tensors; a new bucket begins at each index
std::vector<Bucket> BucketsOf(std::span<const FusedTensor> tensors, bool fuse,
                              const FusionSpec& fusion);

}  // namespace hdps
