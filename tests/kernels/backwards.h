// An executor that reveals work that depends on threads or on order.
#pragma once

#include <cstddef>
#include <functional>

#include "common/platform/executor.h"

namespace hdps {

// Claims to have many threads on any machine, and runs the last piece of work first.
class Backwards : public Executor {
 public:
  explicit Backwards(int threads) : threads_(threads) {}
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    while (count > 0) body(--count);
  }
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return threads_; }

 private:
  const int threads_;
};

}  // namespace hdps
