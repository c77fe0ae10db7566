// A ring of tables.
#include "tools/serve/versions/request_sample.h"

namespace hdps {

void RequestSample::Offer(const std::shared_ptr<const ColumnTable>& rows) {
  if (rows->num_rows() > kRowsMax) return;
  const uint64_t number = offered_.fetch_add(1, std::memory_order_relaxed);
  if (number >= kTables && number % kEvery != 0) return;
  MutexLock lock(mutex_);
  if (kept_.size() < kTables) {
    kept_.push_back(rows);
    return;
  }
  kept_[oldest_] = rows;
  oldest_ = (oldest_ + 1) % kTables;
}

std::vector<std::shared_ptr<const ColumnTable>> RequestSample::Kept() const {
  MutexLock lock(mutex_);
  return kept_;
}

}  // namespace hdps
