// Chooses which slice moves rows to disk when a shard's share is full.
#include "embedding/shard_memory.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/base/byte_count.h"
#include "embedding/tiered_rows.h"

namespace hdps {
namespace {

constexpr uint64_t kShareMin = 64 << 10;
constexpr int kTurnsMax = 64;
// Rows that a slice keeps even beyond the limit: with fewer it would do nothing but move rows.
constexpr size_t kRowsKept = 128;

}  // namespace

uint64_t MemoryBudget::Share() {
  uint64_t others;
  {
    MutexLock lock(mutex_);
    others = others_(row_bytes_);
  }
  const uint64_t taken = others + row_bytes_;
  if (taken > limit_bytes_ + limit_bytes_ / 10 && !said_.exchange(true)) {
    LOG(WARNING) << "cluster.memory_limit: " << ShowByteCount(limit_bytes_)
                 << " cannot be kept: the last rows in memory and what finds those on disk take "
                 << ShowByteCount(row_bytes_) << ", all else " << ShowByteCount(others)
                 << "; give more than " << ShowByteCount(taken) << " or more servers";
  }
  const uint64_t rows = limit_bytes_ > others ? limit_bytes_ - others : 0;
  return std::max(rows / std::max<uint64_t>(1, shards_), kShareMin);
}

ShardMemory::ShardMemory(MemoryBudget& budget, DiskStore& disk) : budget_(budget), disk_(disk) {
  budget_.AddShard();
}

ShardMemory::~ShardMemory() {
  budget_.Report(reported_bytes_, 0);
  budget_.RemoveShard();
}

uint64_t ShardMemory::bytes() const {
  uint64_t bytes = 0;
  for (const TieredRows* slice : slices_) bytes += slice->bytes();
  return bytes;
}

void ShardMemory::ReportBytes() {
  const uint64_t now = bytes();
  if (now == reported_bytes_) return;
  budget_.Report(reported_bytes_, now);
  reported_bytes_ = now;
}

bool ShardMemory::HasRoom(const TieredRows& slice, size_t rows, size_t keys) const {
  const size_t more = slice.BytesToAdd(rows, keys);
  // Rows that reuse free places do not depend on the share.
  return more == 0 || bytes() + more <= share_;
}

void ShardMemory::MakeRoom(TieredRows& slice, size_t rows, size_t keys) {
  for (int turn = 0; turn < kTurnsMax && failure_.ok(); ++turn) {
    ReportBytes();
    share_ = budget_.Share();
    const uint64_t now = reported_bytes_;
    if (now + slice.BytesToAdd(rows, keys) <= share_) return;
    TieredRows* most = nullptr;
    for (TieredRows* other : slices_) {
      if (other->can_spill() && (most == nullptr || other->bytes() > most->bytes())) most = other;
    }
    if (most == nullptr) return;
    if (most->rows_in_memory() <= kRowsKept + (most == &slice ? rows : 0)) return;
    if (most != &slice) {
      most->Spill(most->rows_in_memory() / 8 + 1);
      most->Compact(0);
      continue;
    }
    slice.Spill(std::max(rows, slice.rows_in_memory() / 16));
    if (now <= share_ && slice.BytesToAdd(rows, keys) == 0) return;
    slice.Compact(std::max(rows, keys));
  }
}

void ShardMemory::Fail(const Status& status) {
  if (failure_.ok()) failure_ = status;
}

}  // namespace hdps
