// When the device copied and when it computed: events around both, in the host's clock.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <memory>
#include <vector>

#include "common/platform/monotonic_clock.h"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/device_span.h"

namespace hdps {

// An event that knows when the device came to it.
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

// Of one device, for one thread; does nothing until Watch().
//
// A span of computing lasts from the first that is put on the stream behind a copy, or behind what
// the host waited for, to the last before the next: gaps between kernels are in it.
//
// Invariant: of each kind one span is open at most.
class CudaTimeline {
 public:
  // From here on; `clock` outlives it.
  void Watch(MonotonicClock& clock, cudaStream_t compute);
  // What is put on `stream` from here on belongs to a span of this kind; where one is open, to it.
  void Begin(DeviceSpan::Kind kind, cudaStream_t stream);
  // What has been put there is all of it.
  void End(DeviceSpan::Kind kind, cudaStream_t stream);
  // Waits for the device; the spans that have ended, in their order. Ends the watch.
  std::vector<DeviceSpan> Take();

 private:
  using Event = std::unique_ptr<CudaTimedEvent>;
  struct Span {
    DeviceSpan::Kind kind;
    Event begin, end;
  };

  MonotonicClock* clock_ = nullptr;  // Null: nobody watches.
  int64_t base_ns_ = 0;              // When the device came to base_, by the host's clock.
  Event base_;
  std::array<Event, 3> open_;  // By kind: where the span that is open began.
  std::vector<Span> spans_;
};

}  // namespace hdps
