// Records when the device copied and computed, by events around both, in the host's clock.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <memory>
#include <vector>

#include "common/platform/monotonic_clock.h"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/device_span.h"

namespace hdps {

// An event that records the time at which the device reached it.
class CudaTimedEvent {
 public:
  explicit CudaTimedEvent(cudaStream_t stream) {
    HDPS_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDefault));
    HDPS_CUDA_CHECK(cudaEventRecord(event_, stream));
  }
  ~CudaTimedEvent() { cudaEventDestroy(event_); }
  CudaTimedEvent(const CudaTimedEvent&) = delete;
  CudaTimedEvent& operator=(const CudaTimedEvent&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Records the spans of one device, for one thread; does nothing until Watch().
//
// A computing span lasts from the first work on the stream after a copy, or after a wait of the
// host, to the last work before the next one. Gaps between kernels are part of it.
//
// Invariant: at most one span of each kind is open.
class CudaTimeline {
 public:
  // Starts recording; `clock` must outlive it.
  void Watch(MonotonicClock& clock, cudaStream_t compute);
  // Opens a span of this kind for the work put on `stream` from now on, unless one is open.
  void Begin(DeviceSpan::Kind kind, cudaStream_t stream);
  // Closes the span after the work put on `stream` so far.
  void End(DeviceSpan::Kind kind, cudaStream_t stream);
  // Waits for the device and returns the closed spans in order. Stops recording.
  std::vector<DeviceSpan> Take();

 private:
  using Event = std::unique_ptr<CudaTimedEvent>;
  struct Span {
    DeviceSpan::Kind kind;
    Event begin, end;
  };

  MonotonicClock* clock_ = nullptr;  // Null: not recording.
  int64_t base_ns_ = 0;              // Time by the host's clock at which the device reached base_.
  Event base_;
  std::array<Event, 3> open_;  // Begin of the open span of each kind.
  std::vector<Span> spans_;
};

}  // namespace hdps
