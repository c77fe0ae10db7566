// Notes what changed in a slice since its last save, so that the next save can be a delta.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// A row's version tells whether it changed, so updates pay nothing for the log. Keys of rows that
// were removed are kept here.
//
// Invariant: while marked_clock() is not kNotMarked, every change since the mark belongs to a step
// after it, and erased() holds every key whose row was removed since. A change that would break
// this, or too many removed keys, ends the mark; the next save is then a whole one.
class ChangeLog {
 public:
  static constexpr int64_t kNotMarked = -1;

  // Starts the log anew: a save holds everything as it is after `clock` steps.
  void Mark(int64_t clock) {
    marked_clock_ = clock;
    erased_ = {};
  }
  void OnChange(int64_t step) {
    if (step <= marked_clock_) Forget();
  }
  // `rows_left` is the number of rows in the slice. If many more keys than that were removed, a
  // delta would be longer than a whole save, and the mark ends.
  void OnErase(std::span<const Key> keys, size_t rows_left) {
    if (marked_clock_ == kNotMarked) return;
    erased_.insert(erased_.end(), keys.begin(), keys.end());
    if (erased_.size() > kErasedKeysMin + rows_left) Forget();
  }

  int64_t marked_clock() const { return marked_clock_; }
  // Returns the keys in ascending order, each once. Some may have a row again.
  std::vector<Key> erased() const {
    std::vector<Key> keys = erased_;
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }
  size_t bytes() const { return erased_.capacity() * sizeof(Key); }

 private:
  static constexpr size_t kErasedKeysMin = 1 << 16;

  void Forget() { Mark(kNotMarked); }

  int64_t marked_clock_ = kNotMarked;
  std::vector<Key> erased_;
};

}  // namespace hdps
