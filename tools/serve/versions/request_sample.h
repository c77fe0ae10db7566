// Keeps some of the rows that were asked for, to warm up the next version of a model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/thread_annotations.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// Invariant: at most kTables tables of at most kRowsMax rows are kept, so at most as many bytes as
// that number of the largest requests.
//
// Safe to call from any thread.
class RequestSample {
 public:
  static constexpr size_t kTables = 8;
  static constexpr uint64_t kRowsMax = 256;
  static constexpr uint64_t kEvery = 64;  // Only each of so many requests takes the lock.

  // Takes the first tables, then each kEvery-th in place of the oldest.
  void Offer(const std::shared_ptr<const ColumnTable>& rows) HDPS_EXCLUDES(mutex_);
  std::vector<std::shared_ptr<const ColumnTable>> Kept() const HDPS_EXCLUDES(mutex_);

 private:
  std::atomic<uint64_t> offered_ = 0;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<const ColumnTable>> kept_ HDPS_GUARDED_BY(mutex_);
  size_t oldest_ HDPS_GUARDED_BY(mutex_) = 0;
};

}  // namespace hdps
