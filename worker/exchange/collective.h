// Sums over the ranks of a group, in a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

// The ranks of one group, 0..size-1, as one of them sees it. Every rank makes the same calls with
// the same lengths in the same order. kUnavailable when another rank is gone or late, kCancelled
// after Abort(); the group is then of no more use.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  virtual const char* name() const = 0;  // "gloo", "nccl", "local"

  // data = x_0 + x_1 + ... + x_{size-1}, added in the order of the ranks, starting with a copy of
  // x_0: the same bits on every rank, for every implementation.
  virtual Status AllReduceSum(std::span<float> data) = 0;
  // Returns when every rank has called it.
  virtual Status Barrier() = 0;
  // Ends what this rank is waiting for; the one call allowed from another thread.
  virtual void Abort() = 0;
};

// Where the ranks of a group leave word for each other; the scheduler keeps one for its job.
class Board {
 public:
  virtual ~Board() = default;
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  // Waits until somebody has put it; kTimeout names the key.
  virtual Result<std::string> Get(const std::string& key) = 0;
};

struct CollectiveOptions {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string group;  // Begins the group's keys on the board; no two groups of a job share it.
  std::string host = "127.0.0.1";  // Where the other ranks reach this one.
  int64_t timeout_ms = 120000;     // For any one wait.
};

// `backend` is parallel.collective of the job. "auto": NCCL when every rank has a GPU to itself,
// else Gloo; all ranks come to the same choice. kInvalidArgument when "nccl" cannot be had, and
// why.
Result<std::unique_ptr<Collective>> NewCollective(const std::string& backend,
                                                  const CollectiveOptions& options, Board& board);

// Over TCP between CPUs. The ranks' objects must live until all ranks have made their last call.
Result<std::unique_ptr<Collective>> NewGlooCollective(const CollectiveOptions& options,
                                                      Board& board);

// Between GPUs, on this process' GPU number `gpu`, which no other rank uses. NCCL is looked for
// when this is called, so programs run without it.
Result<std::unique_ptr<Collective>> NewNcclCollective(const CollectiveOptions& options,
                                                      uint32_t gpu, Board& board);
// GPUs that NCCL could use in this process; when there is none, `*why_none` says what is missing: a
// build with CUDA, the library, or a GPU.
uint32_t CountNcclGpus(std::string* why_none);

// Ranks that are threads of one process.
std::vector<std::unique_ptr<Collective>> NewLocalCollectives(uint32_t size);
// A board for them.
std::unique_ptr<Board> NewLocalStore();

// The part of `count` values that `rank` of `size` adds up: they differ by at most one value.
struct Segment {
  size_t begin = 0;
  size_t size = 0;
};
inline Segment SegmentOf(size_t count, uint32_t rank, uint32_t size) {
  const size_t begin = count * rank / size;
  return {begin, count * (rank + 1) / size - begin};
}

}  // namespace hdps
