// Copies between the flat array of all dense tensors and the packed ones of the servers.
#include "worker/dense/dense_at_servers.h"

#include <algorithm>

#include "common/job/spec/table_spec.h"

namespace hdps {

DenseAtServers::DenseAtServers(const Job& job, const std::vector<DenseTensor>& tensors) {
  const std::vector<bool> held = HeldByServers(job, tensors);
  std::vector<uint32_t> members;
  for (uint32_t t = 0; t < tensors.size(); ++t) {
    if (held[t]) members.push_back(t);
  }
  keys_ = DenseKeys(tensors, members);
  runs_ = RunsOf(tensors, members);
  all_ = members.size() == tensors.size();
  if (all_) return;
  weights_.resize(keys_.size() * kDenseChunkFloats);
  gradients_.resize(weights_.size());
}

std::span<float> DenseAtServers::PlaceIn(std::span<float> flat) {
  return all_ ? flat : std::span(weights_);
}

void DenseAtServers::Unpack(std::span<float> flat) const {
  if (all_) return;
  auto from = weights_.begin();
  for (const FloatRun& run : runs_) {
    const auto size = static_cast<ptrdiff_t>(run.size);
    std::copy(from, from + size, flat.begin() + static_cast<ptrdiff_t>(run.begin));
    from += size;
  }
}

std::span<float> DenseAtServers::Pack(std::span<float> gradients) {
  if (all_) return gradients;
  auto to = gradients_.begin();
  for (const FloatRun& run : runs_) {
    to = std::ranges::copy(gradients.subspan(run.begin, run.size), to).out;
  }
  return gradients_;
}

}  // namespace hdps
