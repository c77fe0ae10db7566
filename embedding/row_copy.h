// Copies of a slice's rows at one time, so that the slice may go on changing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "embedding/memory/page_memory.h"

namespace hdps {

// The number of bytes that concurrent copies may take together.
class CopyBudget {
 public:
  explicit CopyBudget(uint64_t bytes) : left_(bytes) {}
  // Returns false, and takes nothing, if less than `bytes` is left.
  bool Take(uint64_t bytes) {
    uint64_t left = left_.load();
    while (bytes <= left) {
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    }
    return false;
  }

 private:
  std::atomic<uint64_t> left_;
};

// Rows copied out of a slice.
//
// Invariant: rows() holds keys.size() rows of row_floats() numbers, in ascending order of the keys.
class RowCopy {
 public:
  RowCopy() = default;
  RowCopy(size_t num_rows, size_t row_floats)
      : row_floats_(row_floats), memory_(BytesOf(num_rows, row_floats)) {
    keys.reserve(num_rows);
    memory_.AskForHugePages(0, memory_.size());
  }
  // Returns the bytes of `num_rows` rows and their keys.
  static uint64_t BytesWithKeys(size_t num_rows, size_t row_floats) {
    return num_rows * sizeof(Key) + BytesOf(num_rows, row_floats);
  }

  std::vector<Key> keys;
  size_t row_floats() const { return row_floats_; }
  std::span<float> rows() {
    return {reinterpret_cast<float*>(memory_.data()), memory_.size() / sizeof(float)};
  }
  std::span<const float> rows() const {
    return {reinterpret_cast<const float*>(memory_.data()), memory_.size() / sizeof(float)};
  }

 private:
  static size_t BytesOf(size_t num_rows, size_t row_floats) {
    return num_rows * row_floats * sizeof(float);
  }

  size_t row_floats_ = 0;
  PageMemory memory_;
};

}  // namespace hdps
