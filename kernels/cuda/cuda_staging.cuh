// Copies between host and device: many pieces, gathered in pinned memory, one copy each way a step.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/platform/executor.h"
#include "kernels/cuda/cuda_capture.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_memory.cuh"
#include "kernels/cuda/cuda_timeline.cuh"
#include "kernels/dense_ops.h"

namespace hdps {

// Number of pieces in one kernel argument, which is limited to 4 KiB.
inline constexpr uint32_t kPiecesALaunch = 64;

// Rows of 4-byte words that are contiguous in the arena and `stride` words apart on the device.
struct StagedPiece {
  uint32_t* words;  // Address on the device; a fetch only reads it.
  uint64_t at;      // Position of the first word in the arena.
  uint32_t row_words, rows, stride;
};
struct StagedPieces {
  StagedPiece pieces[kPiecesALaunch];
};

// Pinned host memory, which copies access while the host goes on computing.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  // Returns at least `bytes`; keeps the first `kept`. Requires: no stream is using it.
  std::byte* Reserve(size_t bytes, size_t kept);
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Copies between the host and one stream of a device, `compute`; used by one thread.
//
// Invariant: uploads are in place for all work put on `compute` after the next Flush(). A fetch
// reads what was there when StartFetches() was called, whatever is put on `compute` later. Copies
// have streams of their own, so both directions run beside kernels. Within a step computing work is
// captured, from a Flush() until something is fetched or sent.
class CudaStaging {
 public:
  // `executor`, which may be null, copies large pieces within the host's memory. `timeline` is told
  // of copies, and that computing ends with them.
  CudaStaging(cudaStream_t compute, CudaCapture& capture, Executor* executor,
              CudaTimeline& timeline)
      : compute_(compute), capture_(capture), executor_(executor), timeline_(timeline) {}
  CudaStaging(const CudaStaging&) = delete;
  CudaStaging& operator=(const CudaStaging&) = delete;

  // All sizes are whole words of 4 bytes; `from` may be reused at once.
  void Upload(const void* from, size_t bytes, void* to) { UploadRows(from, bytes, 1, to, bytes); }
  void UploadRows(const void* from, size_t row_bytes, size_t rows, void* to, size_t stride_bytes);
  // Returns memory in which the bytes for `to` may be written until the next call.
  void* Place(size_t bytes, void* to) { return AddPiece(bytes, 1, to, bytes); }
  template <typename T>
  T* Place(size_t count, CudaArray<T>* to) {
    if (count > to->size()) Flush();  // Sends what goes to its old memory.
    return static_cast<T*>(Place(count * sizeof(T), to->Reserve(count)));
  }
  // Runs body(0) ... body(count - 1) on the threads that copy within the host's memory.
  void ForEach(size_t count, const std::function<void(size_t)>& body) const;
  // Sends pending uploads; computing work follows on `compute`.
  void Flush() {
    if (!up_pieces_.empty()) SendUp();
    capture_.Begin();
  }
  // Drops uploads that have not been sent.
  void Drop() {
    up_pieces_.clear();
    up_bytes_ = 0;
  }

  // Returns device memory for data to be fetched, valid until the fetch has ended.
  template <typename T>
  T* Space(size_t count) {
    return reinterpret_cast<T*>(SpaceOf(count * sizeof(T)));
  }
  // Called in EndFetches() with the fetched words.
  using Take = std::function<void(const std::byte*)>;
  void FetchLater(const void* from, size_t bytes, Take take);
  void FetchLater(const void* from, size_t bytes, void* to);
  void StartFetches();
  void EndFetches();

  CudaCapture& capture() const { return capture_; }
  const DeviceTraffic& traffic() const { return traffic_; }

 private:
  // One of two arenas, so that the host fills one while the other is being copied.
  struct UpArena {
    explicit UpArena(CudaCapture& capture) : device(capture) {}
    PinnedMemory host;
    CudaArray<uint32_t> device;
    CudaEvent read;  // Recorded when its host memory may be filled again.
    CudaEvent used;  // Recorded when its device memory may be filled again.
  };
  struct Fetch {
    const void* from;
    size_t bytes;
    Take take;
  };

  std::byte* AddPiece(size_t row_bytes, size_t rows, void* to, size_t stride_bytes);
  // Returns whether a pending upload goes to one of these bytes.
  bool Awaited(const std::byte* begin, const std::byte* end) const;
  void SendUp();
  uint32_t* SpaceOf(size_t bytes);
  void CopyOnHost(const std::byte* from, size_t bytes, std::byte* to);

  const cudaStream_t compute_;
  CudaCapture& capture_;
  Executor* const executor_;
  CudaTimeline& timeline_;
  std::array<UpArena, 2> up_{UpArena(capture_), UpArena(capture_)};
  size_t filling_ = 0;  // Index of the arena being filled.
  size_t up_bytes_ = 0;
  std::vector<StagedPiece> up_pieces_;

  PinnedMemory down_host_;
  CudaArray<uint32_t> down_device_{capture_};
  std::vector<std::unique_ptr<CudaArray<uint32_t>>> spaces_;
  size_t spaces_used_ = 0;
  CudaEvent packed_, arrived_;
  std::vector<Fetch> fetches_, started_;
  DeviceTraffic traffic_;
  CudaStream up_stream_, down_stream_;  // Destroyed before the memory that they use.
};

}  // namespace hdps
