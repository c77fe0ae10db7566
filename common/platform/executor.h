// The interface to threads: parallel loops and work in the background.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace hdps {

// Runs pieces of work on a bounded number of threads. The pieces of one ParallelFor must not touch
// the same data; then the result does not depend on the number of threads.
class Executor {
 public:
  virtual ~Executor() = default;
  // Runs body(0) ... body(count - 1), each once, in any order; returns when all are done.
  virtual void ParallelFor(size_t count, const std::function<void(size_t)>& body) = 0;
  // Runs `work` some time later, on a thread other than the caller's (inline in the simulator).
  virtual void Submit(std::function<void()> work) = 0;
  virtual int threads() const = 0;
};

// Returns an executor on oneTBB with at most `threads` threads and at most one per core; 0 means
// one per core.
std::unique_ptr<Executor> NewTbbExecutor(int threads);
// Returns an executor that runs everything inline on the caller's thread, in order.
std::unique_ptr<Executor> NewInlineExecutor();

// A thread for a loop that blocks (a reader, a compute thread). The destructor joins.
class Thread {
 public:
  virtual ~Thread() = default;
  virtual void Join() = 0;
};
std::unique_ptr<Thread> StartThread(const char* name, std::function<void()> body);

}  // namespace hdps
