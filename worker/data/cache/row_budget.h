// Bounds the memory of rows that are kept parsed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace hdps {

// Bytes that all streams of a process may keep together. May be used by several threads.
class RowBudget {
 public:
  explicit RowBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // Returns false, and takes nothing, if more than the maximum would be taken.
  bool Take(uint64_t bytes) {
    uint64_t taken = taken_.load();
    do {
      if (bytes > bytes_max_ - taken) return false;
    } while (!taken_.compare_exchange_weak(taken, taken + bytes));
    return true;
  }
  void Return(uint64_t bytes) { taken_ -= bytes; }
  uint64_t taken() const { return taken_; }
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> taken_ = 0;
};

// What one stream has taken of a budget; it is returned with this object.
class BudgetShare {
 public:
  explicit BudgetShare(std::shared_ptr<RowBudget> budget) : budget_(std::move(budget)) {}
  ~BudgetShare() { budget_->Return(bytes_); }
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;

  bool Grow(uint64_t bytes) {
    if (!budget_->Take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  void Shrink(uint64_t bytes) {
    budget_->Return(bytes);
    bytes_ -= bytes;
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_max() const { return budget_->bytes_max(); }

 private:
  const std::shared_ptr<RowBudget> budget_;
  uint64_t bytes_ = 0;
};

}  // namespace hdps
