// Implements the CUDA Runtime API as work on streams.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda_on_cpu/engine.h"

namespace cuda_on_cpu {
namespace {

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;  // Error of a kernel that was not started.

// The direction of a copy, from its addresses.
enum class Way { kUp, kDown, kWithin };
Way WayOf(const void* to, const void* from) {
  return !OnDevice(from) ? Way::kUp : !OnDevice(to) ? Way::kDown : Way::kWithin;
}

void Count(Way way, size_t bytes) {
  Counters& counters = Engine::Get().counters;
  if (way == Way::kUp) counters.up_bytes += bytes, ++counters.up_copies;
  if (way == Way::kDown) counters.down_bytes += bytes, ++counters.down_copies;
}

}  // namespace

int CurrentDevice() { return current_device; }

void Launch(cudaStream_t stream, dim3 grid, unsigned block, std::function<void()> thread,
            std::function<void()> check) {
  if (block == 0 || block > 1024) Fail("a block of " + std::to_string(block) + " threads");
  if (grid.x == 0 || grid.y == 0 || grid.y > 65535) Fail("a grid without blocks, or too large");
  if (stream == nullptr && ForbiddenInCapture() != cudaSuccess) {
    last_error = cudaErrorStreamCaptureImplicit;
    return;
  }
  const Work work = [=] {
    ++Engine::Get().counters.kernels;
    RunGrid(grid, block, thread);
    return true;
  };
  Engine::Get().Add(stream, Node{cudaGraphNodeTypeKernel, work, std::move(check)});
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorGraphExecUpdateFailure:
      return "the graph update was not performed because it included changes which violated "
             "constraints specific to instantiated graph update";
  }
  return "unknown error";
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  const auto lock = Engine::Get().Lock();
  *count = Engine::Get().devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return last_error = cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || device >= count) return last_error = cudaErrorInvalidDevice;
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", device);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = Engine::Get().NewStream(true);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = Engine::Get().NewStream((flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream != nullptr) Engine::Get().EndStream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  auto lock = Engine::Get().Lock();
  if (stream == nullptr) {
    Engine::Get().WorkOff(lock, true);
  } else {
    Engine::Get().WorkUntil(lock, stream, [stream] { return stream->work.empty(); });
  }
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  auto lock = Engine::Get().Lock();
  if (stream->work.empty()) return cudaSuccess;
  Engine::Get().WorkABit(lock, stream);
  return stream->work.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  auto lock = Engine::Get().Lock();
  Engine::Get().WorkOff(lock, false);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new Event();
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return cudaSuccess;
  auto lock = Engine::Get().Lock();  // Work that uses the event may be left.
  Engine::Get().WorkUntil(lock, event->stream, [event] { return event->done == event->recorded; });
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream == nullptr) Fail("events on the legacy stream are not modelled");
  event->captured = stream->capture != nullptr;
  if (event->captured) return cudaSuccess;
  uint64_t number = 0;
  {
    const auto lock = Engine::Get().Lock();
    number = ++event->recorded;
    event->stream = stream;
  }
  Engine::Get().Add(stream, [event, number] {
    event->done = std::max(event->done, number);
    event->done_ns = std::chrono::steady_clock::now().time_since_epoch().count();
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  if (event->captured) return cudaErrorCapturedEvent;
  auto lock = Engine::Get().Lock();
  const uint64_t number = event->recorded;
  Engine::Get().WorkUntil(lock, event->stream, [=] { return event->done >= number; });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  const auto lock = Engine::Get().Lock();
  for (const cudaEvent_t event : {begin, end}) {
    if (!event->timed || event->recorded == 0) return cudaErrorInvalidValue;
    if (event->done < event->recorded) return cudaErrorNotReady;
  }
  *ms = static_cast<float>(end->done_ns - begin->done_ns) * 1e-6f;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->captured) Fail("forks of a capture are not modelled");
  if (stream->capture != nullptr) {
    return event->recorded == 0 ? cudaSuccess : Invalidate(stream, cudaErrorStreamCaptureIsolation);
  }
  uint64_t number = 0;
  {
    const auto lock = Engine::Get().Lock();
    number = event->recorded;
  }
  if (number > 0) Engine::Get().Add(stream, [=] { return event->done >= number; });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const Way way = WayOf(to, from);
  const void* const host = way == Way::kUp ? from : to;
  const bool late = way == Way::kWithin || Pinned(host);
  if (!late || stream == nullptr) {
    if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  }
  // Pageable memory is read at once, and is written when the call returns.
  std::shared_ptr<std::vector<char>> read;
  if (way == Way::kUp && !late) {
    const auto* const first = static_cast<const char*>(from);
    read = std::make_shared<std::vector<char>>(first, first + bytes);
  }
  const Work work = [=] {
    std::memcpy(to, read != nullptr ? read->data() : from, bytes);
    Count(way, bytes);
    return true;
  };
  const auto check = [=] {
    if (way != Way::kUp) CheckArgument(&from, sizeof(from));
    if (way != Way::kDown) CheckArgument(&to, sizeof(to));
  };
  Engine::Get().Add(stream, Node{cudaGraphNodeTypeMemcpy, work, check});
  return way == Way::kDown && !late ? cudaStreamSynchronize(stream) : cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = ForbiddenInCapture(); error != cudaSuccess) return error;
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return cudaMemset2DAsync(to, bytes, value, bytes, 1, stream);
}
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  const auto check = [=] { CheckArgument(&to, sizeof(to)); };
  check();
  const Work work = [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memset(static_cast<char*>(to) + row * pitch, value, width);
    }
    return true;
  };
  Engine::Get().Add(stream, Node{cudaGraphNodeTypeMemset, work, check});
  return cudaSuccess;
}
