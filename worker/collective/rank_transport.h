// Transports move bytes from rank to rank; collectives are built on them.
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

// Bytes in the transport's memory space that are sent to a rank, or received from it.
struct RankMove {
  uint32_t peer = 0;
  std::byte* data = nullptr;
  size_t size = 0;
};

// Places of values in scratch memory are multiples of 8 bytes.
inline size_t Aligned(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Memory of a transport that a collective uses during a call.
enum class Scratch : uint8_t { kStaged, kParts };
inline constexpr size_t kScratchKinds = 2;

// Calls in which a library does all of a collective by itself, over all ranks of a transport and in
// its space. The order of addition follows from rank, length and the ways between machines; all
// ranks get the same bits. Halves may be rounded after each addition.
class LibraryCalls {
 public:
  // Sums lists of floats or halves in place; none is empty.
  virtual Status AllReduce(std::span<const ReducedValues> lists) = 0;
  // False: the library has no ReduceScatter() that Abort() can end.
  virtual bool scatters() const = 0;
  // `parts` [size * count] is one part for each rank. This rank's becomes the sum over all ranks,
  // and the others are undefined.
  virtual Status ReduceScatter(Reduction reduction, std::byte* parts, size_t count) = 0;
  // `all` is `bytes` bytes of each rank, in order. This rank's are there, and the others are set.
  virtual Status AllGather(std::byte* all, size_t bytes) = 0;

 protected:
  ~LibraryCalls() = default;
};

// Connects the ranks of a job, as one of them sees it. Memory is in the transport's own space
// unless said otherwise. Unusable after a failure.
//
// Belongs to one thread, except Abort().
class RankTransport {
 public:
  virtual ~RankTransport() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  virtual const char* name() const = 0;
  virtual MemorySpace space() const = 0;

  // Returns at least `bytes` bytes, aligned for any value. Earlier contents are lost.
  virtual Result<std::byte*> Reserve(Scratch scratch, size_t bytes) = 0;
  // Copy between the transport's space and any other.
  virtual Status CopyIn(std::byte* to, const void* from, MemorySpace from_space, size_t size) = 0;
  virtual Status CopyOut(void* to, MemorySpace to_space, const std::byte* from, size_t size) = 0;
  // Sends and receives messages. Messages between two ranks arrive in the order of their sending;
  // none is empty, and no rank sends to itself.
  virtual Status Exchange(std::span<const RankMove> sends, std::span<const RankMove> receives) = 0;
  // Sends every part from its rank to all other `members`. All members name the same parts in the
  // same order, each with its own memory.
  virtual Status Spread(std::span<const uint32_t> members, std::span<const RankMove> parts);
  // Sets result to parts[0] combined with parts[1], then parts[2], ...; a part has `count` values
  // and begins `stride` bytes after the one before.
  virtual Status Combine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                         size_t count, std::byte* result) = 0;
  // Null: the transport has none.
  virtual LibraryCalls* library() { return nullptr; }
  // Returns when everything that was begun is done and visible to the host.
  virtual Status Finish() = 0;
  virtual void Abort() = 0;
};

// A transport whose space is host memory. Subclasses add the connection between ranks.
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

// Sets result to parts[0] combined with parts[1], then parts[2], ...; each has `count` values. The
// result may be the first part.
void CombineOnHost(Reduction reduction, std::span<const std::byte* const> parts, size_t count,
                   std::byte* result);

// Returns a group of all ranks; the rest as in CollectiveOptions.
std::unique_ptr<Collective> NewCollectiveOver(std::shared_ptr<RankTransport> transport,
                                              CollectiveWatch* watch = nullptr,
                                              bool by_library = false);

// Returns a store for ranks that are threads of one process. Its waits have no limit.
std::unique_ptr<RendezvousStore> NewMemoryStore();
// Returns groups within one process: rank r is the thread that calls ranks[r]. Waits have no limit.
std::vector<std::unique_ptr<Collective>> NewThreadCollectives(uint32_t size);
// Runs `body` on one thread for each rank; returns when all have ended.
void OnAllRanks(uint32_t size, const std::function<void(uint32_t rank)>& body);

// Connects CPUs over TCP.
Result<std::shared_ptr<RankTransport>> NewGlooTransport(const CollectiveOptions& options,
                                                        RendezvousStore& store);

// Connects GPUs through this process's GPU number `gpu`, which no other rank uses. NCCL is loaded
// when this is called, so programs run without it.
Result<std::shared_ptr<RankTransport>> NewNcclTransport(const CollectiveOptions& options,
                                                        uint32_t gpu, RendezvousStore& store);
// Returns a name of this process's GPU number `gpu` that is the same in all processes of the
// machine, if NCCL can use it. Returns an empty text otherwise, and `*why_none` says what is
// missing: a build with CUDA, the library, or the GPU.
std::string NcclGpuName(int gpu, std::string* why_none);

}  // namespace hdps
