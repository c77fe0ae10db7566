// Converts times between events to the host's clock, by one event at which the host waited.
#include "kernels/cuda/cuda_timeline.cuh"

#include <utility>

namespace hdps {

void CudaTimeline::Watch(MonotonicClock& clock, cudaStream_t compute) {
  spans_.clear();
  open_ = {};
  base_ = std::make_unique<CudaTimedEvent>(compute);
  HDPS_CUDA_CHECK(cudaEventSynchronize(*base_));
  base_ns_ = clock.NowNs();
  clock_ = &clock;
}

void CudaTimeline::Begin(DeviceSpan::Kind kind, cudaStream_t stream) {
  Event& open = open_[static_cast<size_t>(kind)];
  if (clock_ != nullptr && open == nullptr) open = std::make_unique<CudaTimedEvent>(stream);
}

void CudaTimeline::End(DeviceSpan::Kind kind, cudaStream_t stream) {
  Event& open = open_[static_cast<size_t>(kind)];
  if (clock_ == nullptr || open == nullptr) return;
  spans_.push_back({kind, std::move(open), std::make_unique<CudaTimedEvent>(stream)});
}

std::vector<DeviceSpan> CudaTimeline::Take() {
  std::vector<DeviceSpan> taken;
  const auto time_of = [this](cudaEvent_t event) {
    HDPS_CUDA_CHECK(cudaEventSynchronize(event));
    float ms = 0;
    HDPS_CUDA_CHECK(cudaEventElapsedTime(&ms, *base_, event));
    return base_ns_ + static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  };
  for (const Span& span : spans_) {
    taken.push_back({span.kind, time_of(*span.begin), time_of(*span.end)});
  }
  spans_.clear();
  open_ = {};
  clock_ = nullptr;
  return taken;
}

}  // namespace hdps
