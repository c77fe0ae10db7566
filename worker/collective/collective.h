// Collective operations of a group of ranks: broadcast, gather, reduce, barrier.
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

// Tells where the values of a collective lie. Device memory is that of the caller's GPU; its
// contents must be complete when a call begins, and are complete when it returns.
enum class MemorySpace : uint8_t { kHost, kDevice };

// The operation that combines values of two ranks. Integers wrap around. Values of 16 bits are
// added in fp32, and the sum is rounded once, to nearest.
enum class Reduction : uint8_t { kSumFloat, kSumUint32, kSumUint64, kOrUint64, kSumFp16, kSumBf16 };
size_t ElementBytes(Reduction reduction);

// The part of `count` values that `rank` of `size` reduces; parts differ by at most one value.
struct Segment {
  size_t begin = 0;
  size_t size = 0;
};
inline Segment SegmentOf(size_t count, uint32_t rank, uint32_t size) {
  const size_t begin = count * rank / size;
  return {begin, count * (rank + 1) / size - begin};
}

// A list of values of one type; the same length on every rank of a group.
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

// Host memory that is sent to a rank of a group, or received from it.
struct RankBytes {
  uint32_t rank = 0;
  std::byte* data = nullptr;
  size_t size = 0;
};

// Kinds of calls.
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

// Counts calls in groups of more than one rank, and the bytes of values that left this rank.
struct CollectiveCounts {
  struct OfKind {
    uint64_t calls = 0, bytes = 0;
  };
  std::array<OfKind, kCollectiveKinds> kinds = {};

  const OfKind& of(CollectiveKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  void Add(const CollectiveCounts& other);
  // "allreduce 10 calls, 4096 bytes; ..."; without kinds that were not called.
  std::string Describe() const;
};

// A group of ranks, 0..size-1, as one of them sees it. Every rank must make the same calls with the
// same lengths in the same order, across all groups that it is in. kUnavailable: another rank is
// gone or late; kCancelled: after Abort(). The group is unusable afterwards.
//
// Invariant: every rank has the same bits. Values are combined in the order of the ranks, beginning
// with a copy of rank 0's, so that every implementation has them too; CollectiveOptions::by_library
// gives up the latter.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  virtual const char* name() const = 0;  // "gloo", "nccl"

  // Reduces in place, on every rank. Several lists travel together, so that a few numbers beside a
  // long list cost no exchange of their own.
  virtual Status AllReduce(std::span<const ReducedValues> lists) = 0;
  // Writes this rank's part of the reduced values to `mine`, in the same space; `values` stays as
  // it is. `counts` [size] gives the number of values of each rank, in order.
  virtual Status ReduceScatter(const ReducedValues& values, std::span<const size_t> counts,
                               void* mine) = 0;
  // The same with SegmentOf as each rank's part.
  Status ReduceScatter(const ReducedValues& values, void* mine);
  // Copies `data` of `root` to all ranks.
  virtual Status Broadcast(uint32_t root, std::span<std::byte> data,
                           MemorySpace space = MemorySpace::kHost) = 0;
  // Sets `all` to the bytes of rank 0, of rank 1, ...; `sizes` [size] are the ranks' byte counts.
  // `mine` may lie in its place in `all`.
  virtual Status AllGather(std::span<const std::byte> mine, std::span<const size_t> sizes,
                           std::span<std::byte> all, MemorySpace space = MemorySpace::kHost) = 0;
  // Sends and receives messages: at most one each way between two ranks, none empty. Both ends must
  // name the same size. A rank without messages need not call it.
  virtual Status Exchange(std::span<const RankBytes> sends,
                          std::span<const RankBytes> receives) = 0;
  // Returns when every rank has called it.
  virtual Status Barrier() = 0;
  // Splits the group: ranks with the same `part` form a new group, in the order of their ranks
  // here. Its calls may alternate with those of this group. Abort() of one ends both.
  virtual Result<std::unique_ptr<Collective>> Split(uint32_t part) = 0;
  // Ends the wait of this rank. The one call that is allowed from another thread.
  virtual void Abort() = 0;
  // Counts of this group and of those split off it, together.
  virtual CollectiveCounts counts() const = 0;

  Status AllReduceSum(std::span<float> values) {
    const ReducedValues list = SumOf(values);
    return AllReduce({&list, 1});
  }
};

// Copies a list from `root` to all ranks; it has the same length on each.
template <typename T>
Status BroadcastArray(Collective& group, uint32_t root, std::span<T> values) {
  static_assert(std::has_unique_object_representations_v<T> || std::is_floating_point_v<T>);
  return group.Broadcast(root, std::as_writable_bytes(values));
}

// Gathers the lists of all ranks, [size]; their lengths may differ.
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

// Key-value store by which ranks find each other. The scheduler keeps one for its job.
class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  // Waits until a rank has put the key; kTimeout names it.
  virtual Result<std::string> Get(const std::string& key) = 0;
};

// Is told when a rank's calls begin and end. Called from any thread.
class CollectiveWatch {
 public:
  virtual ~CollectiveWatch() = default;
  virtual void CallBegun() = 0;
  virtual void CallEnded() = 0;
};

// Reports one call to a watch during its lifetime; does nothing without one.
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
  std::string group;  // Prefix of its keys in the store; unique among the groups of a job.
  int gpu = -1;       // GPU of this process that holds the values; -1: none.
  std::string host = "127.0.0.1";  // Address at which the other ranks reach this one.
  int64_t timeout_ms = 120000;     // Limit of any one wait.
  // Floats are summed by the library itself, in an order of its own, where it has such a call; not
  // in groups that are split off. Halves may then be rounded after each addition.
  bool by_library = false;
  // Outlives the group and those split off it; null: calls are not watched.
  CollectiveWatch* watch = nullptr;
};

// Connects the ranks. `backend` is parallel.collective of the job; "auto" is NCCL if every rank has
// a GPU to itself, else Gloo, and all ranks choose alike. kInvalidArgument says why "nccl" cannot
// be used. The ranks' objects must live until all ranks have made their last call.
Result<std::unique_ptr<Collective>> NewCollective(const std::string& backend,
                                                  const CollectiveOptions& options,
                                                  RendezvousStore& store);

}  // namespace hdps
