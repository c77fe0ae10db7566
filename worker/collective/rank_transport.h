// How bytes go from rank to rank; what collectives are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/collective.h"

namespace hdps {

// Bytes in the transport's own memory space that go to a rank, or come from it.
struct RankMove {
  uint32_t peer = 0;
  std::byte* data = nullptr;
  size_t size = 0;
};

// Memory of a transport that a collective uses while a call lasts.
enum class Scratch : uint8_t { kStaged, kParts };
inline constexpr size_t kScratchKinds = 2;

// The ranks of a job as one of them sees it. All memory is of the transport's own space, where
// nothing else is said. After a failure it is of no more use.
//
// Belongs to one thread, but for Abort().
class RankTransport {
 public:
  virtual ~RankTransport() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  virtual const char* name() const = 0;
  virtual MemorySpace space() const = 0;

  // At least so many bytes, aligned for any value. What was there before is gone.
  virtual Result<std::byte*> Reserve(Scratch scratch, size_t bytes) = 0;
  // Between its own space and any.
  virtual Status CopyIn(std::byte* to, const void* from, MemorySpace from_space, size_t size) = 0;
  virtual Status CopyOut(void* to, MemorySpace to_space, const std::byte* from, size_t size) = 0;
  // Messages between two ranks arrive in the order in which they were sent; none is empty, and no
  // rank moves bytes to itself.
  virtual Status Exchange(std::span<const RankMove> sends, std::span<const RankMove> receives) = 0;
  // Every part goes from its rank to all other `members`; all of them name the same parts in the
  // same order, each with its own memory.
  virtual Status Spread(std::span<const uint32_t> members, std::span<const RankMove> parts);
  // result = parts[0], then parts[1], ... combined with it; a part has `count` values, and the next
  // one begins `stride` bytes behind it.
  virtual Status Combine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                         size_t count, std::byte* result) = 0;
  // Returns when all that was begun is done and can be seen by the host.
  virtual Status Finish() = 0;
  virtual void Abort() = 0;
};

// A transport whose own space is host memory. What it lacks is the way between the ranks.
class HostTransport : public RankTransport {
 public:
  HostTransport(uint32_t rank, uint32_t size) : rank_(rank), size_(size) {}
  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  MemorySpace space() const override { return MemorySpace::kHost; }
  Result<std::byte*> Reserve(Scratch scratch, size_t bytes) override;
  Status CopyIn(std::byte* to, const void* from, MemorySpace from_space, size_t size) override;
  Status CopyOut(void* to, MemorySpace to_space, const std::byte* from, size_t size) override;
  Status Combine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                 size_t count, std::byte* result) override;
  Status Finish() override { return Status(); }

 private:
  const uint32_t rank_, size_;
  std::vector<uint64_t> scratch_[kScratchKinds];
};

// A group of all ranks; `watch` as in CollectiveOptions.
std::unique_ptr<Collective> NewCollectiveOver(std::shared_ptr<RankTransport> transport,
                                              CollectiveWatch* watch = nullptr);

// A store for ranks that are threads of one process. Without a limit to its waits.
std::unique_ptr<RendezvousStore> NewMemoryStore();
// Groups of one process: rank r is the thread that calls ranks[r]. Without a limit to their waits.
std::vector<std::unique_ptr<Collective>> NewThreadCollectives(uint32_t size);
// A thread a rank; returns when all have ended.
void OnAllRanks(uint32_t size, const std::function<void(uint32_t rank)>& body);

// Over TCP between CPUs.
Result<std::shared_ptr<RankTransport>> NewGlooTransport(const CollectiveOptions& options,
                                                        RendezvousStore& store);

// Between GPUs, on this process' GPU number `gpu`, which no other rank uses. NCCL is looked for
// when this is called, so programs run without it.
Result<std::shared_ptr<RankTransport>> NewNcclTransport(const CollectiveOptions& options,
                                                        uint32_t gpu, RendezvousStore& store);
// What this process' GPU number `gpu` is called on its machine, whatever its number in another
// process, if NCCL can use it; else empty, and `*why_none` says what is missing: a build with CUDA,
// the library, or the GPU.
std::string NcclGpuName(int gpu, std::string* why_none);

}  // namespace hdps
