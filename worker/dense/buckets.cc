// Fills buckets greedily, in the order of the tensors.
#include "worker/dense/buckets.h"

#include <algorithm>
#include <map>

#include "common/job/spec/parallel_spec.h"

namespace hdps {
namespace {

constexpr uint32_t kAutoMebibytes = 64;

// Adds tensors to the last bucket of a list, or begins the next one.
class Filling {
 public:
  explicit Filling(const FusionSpec& fusion) : fusion_(fusion) {}

  void Add(uint32_t tensor, size_t bytes) {
    if (buckets_.empty() || BeginsNext(bytes)) {
      buckets_.emplace_back();
      bytes_ = 0;
    }
    buckets_.back().push_back(tensor);
    bytes_ += bytes;
    ++count_;
  }

  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  bool BeginsNext(size_t bytes) const {
    if (fusion_.mode == FusionMode::kIndex) {
      return std::ranges::find(fusion_.index, count_) != fusion_.index.end();
    }
    const bool by_size = fusion_.mode == FusionMode::kSize;
    const size_t limit = size_t{by_size ? fusion_.mebibytes : kAutoMebibytes} << 20;
    return bytes_ + bytes > limit;
  }

  const FusionSpec& fusion_;
  std::vector<Bucket> buckets_;
  size_t bytes_ = 0;    // Bytes of the last bucket.
  uint32_t count_ = 0;  // Number of tensors so far.
};

}  // namespace

std::vector<Bucket> BucketsOf(std::span<const FusedTensor> tensors, bool fuse,
                              const FusionSpec& fusion) {
  std::vector<Bucket> buckets;
  std::map<int32_t, Bucket> by_id;
  Filling rest(fusion);
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    if (!fuse || tensors[t].fusion == 0) {
      buckets.push_back({t});
    } else if (tensors[t].fusion > 0) {
      by_id[tensors[t].fusion].push_back(t);
    } else {
      rest.Add(t, tensors[t].bytes);
    }
  }
  for (const auto& [id, bucket] : by_id) buckets.push_back(bucket);
  buckets.insert(buckets.end(), rest.buckets().begin(), rest.buckets().end());
  std::ranges::sort(buckets, {}, [](const Bucket& bucket) { return bucket.back(); });
  return buckets;
}

}  // namespace hdps
