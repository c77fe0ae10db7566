// Runs requests on the threads that answer, and refuses those for which there is no place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tools/serve/front/score_joiner.h"

namespace hdps {

inline constexpr int kWaitingOfThreadMax = 64;
inline constexpr int64_t kBatchWaitUsMax = 100'000;

// Answers a request, but for scores: it gives what it has read of them to the joiner.
using RequestWork = std::function<void(ScoreJoiner&)>;

// Invariant: at most kWaitingOfThreadMax * threads pieces of work wait, and each that was taken is
// run once. Work is begun in the order in which it came.
//
// Safe to call from any thread.
class RequestQueue {
 public:
  virtual ~RequestQueue() = default;
  // Returns false, and takes nothing, if there is no place or the queue was closed.
  virtual bool Take(RequestWork work) = 0;
  // Takes no more work. Returns when all of it is done.
  virtual void Close() = 0;
};

// A thread that has read a small request waits at most `batch_wait_us` for others, and scores them
// together. 0: it scores each at once.
std::unique_ptr<RequestQueue> NewRequestQueue(int threads, int64_t batch_wait_us = 0);

}  // namespace hdps
