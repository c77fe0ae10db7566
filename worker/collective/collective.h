// What a group of ranks does together: broadcast, gather, reduce in a fixed order, meet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/base/status.h"

namespace hdps {

// Where the values of a collective lie. Device memory is that of the GPU which the caller uses; it
// must be ready when a call begins, and is ready when the call returns.
enum class MemorySpace : uint8_t { kHost, kDevice };

// How the values of two ranks become one. Integers wrap around. Values of 16 bits are added in 32,
// and the sum is rounded once, to the nearest.
enum class Reduction : uint8_t { kSumFloat, kSumUint32, kSumUint64, kOrUint64, kSumFp16, kSumBf16 };
size_t ElementBytes(Reduction reduction);

// The part of `count` values that `rank` of `size` reduces: they differ by at most one value.
struct Segment {
  size_t begin = 0;
  size_t size = 0;
};
inline Segment SegmentOf(size_t count, uint32_t rank, uint32_t size) {
  const size_t begin = count * rank / size;
  return {begin, count * (rank + 1) / size - begin};
}

// Values of one kind, of which every rank of a group has as many.
struct ReducedValues {
  Reduction reduction = Reduction::kSumFloat;
  void* data = nullptr;
  size_t count = 0;
  MemorySpace space = MemorySpace::kHost;

  size_t bytes() const { return count * ElementBytes(reduction); }
};
inline ReducedValues SumOf(std::span<float> values, MemorySpace space = MemorySpace::kHost) {
  return {Reduction::kSumFloat, values.data(), values.size(), space};
}
inline ReducedValues SumOf(std::span<uint32_t> values, MemorySpace space = MemorySpace::kHost) {
  return {Reduction::kSumUint32, values.data(), values.size(), space};
}
inline ReducedValues SumOf(std::span<uint64_t> values, MemorySpace space = MemorySpace::kHost) {
  return {Reduction::kSumUint64, values.data(), values.size(), space};
}
inline ReducedValues OrOf(std::span<uint64_t> values, MemorySpace space = MemorySpace::kHost) {
  return {Reduction::kOrUint64, values.data(), values.size(), space};
}

// Host memory that goes to a rank of a group, or comes from it.
struct RankBytes {
  uint32_t rank = 0;
  std::byte* data = nullptr;
  size_t size = 0;
};

// What a rank has asked for, by kind.
enum class CollectiveKind : uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kBarrier,
  kExchange,
};
inline constexpr size_t kCollectiveKinds = 6;
const char* CollectiveName(CollectiveKind kind);  // "allreduce", "reduce_scatter", ...

// Calls of more than one rank, and the bytes of values that left this rank for others.
struct CollectiveCounts {
  struct OfKind {
    uint64_t calls = 0, bytes = 0;
  };
  std::array<OfKind, kCollectiveKinds> kinds = {};

  const OfKind& of(CollectiveKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  void Add(const CollectiveCounts& other);
  std::string Describe() const;  // "allreduce 10 calls, 4096 bytes; ..."; of those made.
};

// The ranks of one group, 0..size-1, as one of them sees it. Every rank makes the same calls with
// the same lengths in the same order, also where it is in several groups. kUnavailable when another
// rank is gone or late, kCancelled after Abort(); the group is then of no more use.
//
// Invariant: values are combined in the order of the ranks, beginning with a copy of rank 0's: the
// same bits on every rank, for every implementation.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  virtual const char* name() const = 0;  // "gloo", "nccl"

  // In place, on every rank. Several lists of values travel together, so that a few numbers beside
  // a long list cost no exchange of their own.
  virtual Status AllReduce(std::span<const ReducedValues> lists) = 0;
  // `mine`, in the same space, becomes the rank's part of the reduced values, which themselves stay
  // as they are; `counts` [size] says how many each rank gets, the first ones rank 0.
  virtual Status ReduceScatter(const ReducedValues& values, std::span<const size_t> counts,
                               void* mine) = 0;
  // The rank's segment of them (SegmentOf).
  Status ReduceScatter(const ReducedValues& values, void* mine);
  // `data` of every rank becomes that of `root`.
  virtual Status Broadcast(uint32_t root, std::span<std::byte> data,
                           MemorySpace space = MemorySpace::kHost) = 0;
  // `all` = the bytes of rank 0, of rank 1, ...; `sizes` [size] says how many each rank has. `mine`
  // may lie in its place in `all`.
  virtual Status AllGather(std::span<const std::byte> mine, std::span<const size_t> sizes,
                           std::span<std::byte> all, MemorySpace space = MemorySpace::kHost) = 0;
  // Messages to and from other ranks, at most one each way between two of them; none is empty. What
  // one sends to another is as long as what that one receives. A rank without any need not call it.
  virtual Status Exchange(std::span<const RankBytes> sends,
                          std::span<const RankBytes> receives) = 0;
  // Returns when every rank has called it.
  virtual Status Barrier() = 0;
  // The ranks that give the same `part` become a group of their own, in the order of their ranks
  // here. Its calls may take turns with those of this group. Abort() of one ends both.
  virtual Result<std::unique_ptr<Collective>> Split(uint32_t part) = 0;
  // Ends what this rank is waiting for; the one call allowed from another thread.
  virtual void Abort() = 0;
  // Of this group and of those split off it, in all.
  virtual CollectiveCounts counts() const = 0;

  Status AllReduceSum(std::span<float> values) {
    const ReducedValues list = SumOf(values);
    return AllReduce({&list, 1});
  }
};

// A list that every rank has as long, from `root` to all.
template <typename T>
Status BroadcastArray(Collective& group, uint32_t root, std::span<T> values) {
  static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
  return group.Broadcast(root, std::as_writable_bytes(values));
}

// The lists of all ranks, [size], however long each is.
template <typename T>
Result<std::vector<std::vector<T>>> GatherLists(Collective& group, std::span<const T> mine) {
  static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
  const uint64_t own_size = mine.size();
  std::vector<uint64_t> lengths(group.size());
  std::vector<size_t> sizes(group.size(), sizeof(uint64_t));
  HDPS_RETURN_IF_ERROR(group.AllGather(std::as_bytes(std::span(&own_size, 1)), sizes,
                                       std::as_writable_bytes(std::span(lengths))));
  size_t count = 0;
  for (size_t r = 0; r < lengths.size(); ++r) {
    sizes[r] = lengths[r] * sizeof(T);
    count += lengths[r];
  }
  std::vector<T> all(count);
  HDPS_RETURN_IF_ERROR(
      group.AllGather(std::as_bytes(mine), sizes, std::as_writable_bytes(std::span(all))));
  std::vector<std::vector<T>> lists;
  for (auto at = all.cbegin(); const uint64_t length : lengths) {
    lists.emplace_back(at, at + static_cast<ptrdiff_t>(length));
    at += static_cast<ptrdiff_t>(length);
  }
  return lists;
}

// Where ranks find each other: texts under keys. The scheduler keeps one for its job.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  // Waits until somebody has put it; kTimeout names the key.
  virtual Result<std::string> Get(const std::string& key) = 0;
};

// Is told of each call that a rank makes while it lasts. Calls come from any thread.
class CollectiveWatch {
 public:
  virtual ~CollectiveWatch() = default;
  virtual void CallBegun() = 0;
  virtual void CallEnded() = 0;
};

// A call, from its making to its end; nothing where there is no watch.
class WatchedCall {
 public:
  explicit WatchedCall(CollectiveWatch* watch) : watch_(watch) {
    if (watch_ != nullptr) watch_->CallBegun();
  }
  ~WatchedCall() {
    if (watch_ != nullptr) watch_->CallEnded();
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  CollectiveWatch* const watch_;
};

struct CollectiveOptions {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string group;               // Begins its keys in the store; no two groups of a job share it.
  int gpu = -1;                    // Of this process, on which the values are; -1: none.
  std::string host = "127.0.0.1";  // Where the other ranks reach this one.
  int64_t timeout_ms = 120000;     // For any one wait.
  CollectiveWatch* watch = nullptr;  // Outlives the group and those split off it; null: nobody.
};

// `backend` is parallel.collective of the job. "auto": NCCL when every rank has a GPU to itself,
// else Gloo; all ranks come to the same choice. kInvalidArgument when "nccl" cannot be had, and
// why. The ranks' objects must live until all ranks have made their last call.
Result<std::unique_ptr<Collective>> NewCollective(const std::string& backend,
                                                  const CollectiveOptions& options,
                                                  RendezvousStore& store);

}  // namespace hdps
