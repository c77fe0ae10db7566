// Runs requests on the threads that answer, and refuses those for which there is no place.
#pragma once

#include <functional>
#include <memory>

namespace hdps {

inline constexpr int kWaitingOfThreadMax = 64;

// Invariant: at most kWaitingOfThreadMax * threads pieces of work wait, and each that was taken is
// run once. Work is begun in the order in which it came.
//
// Safe to call from any thread.
class RequestQueue {
 public:
  virtual ~RequestQueue() = default;
  // Returns false, and takes nothing, if there is no place or the queue was closed.
  virtual bool Take(std::function<void()> work) = 0;
  // Takes no more work. Returns when all of it is done.
  virtual void Close() = 0;
};

std::unique_ptr<RequestQueue> NewRequestQueue(int threads);

}  // namespace hdps
