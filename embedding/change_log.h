// What a slice must remember so that a save can write only what changed since the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// Which rows changed is told by their versions, so that updates pay nothing for it; which rows went
// is told by the keys that are kept here.
//
// Invariant: while marked_clock() is not kNotMarked, every change since the mark was one of a step
// after it, and every key whose row went since is in erased(). What would break that, or take more
// memory than it is worth, ends the mark: the next save is then a whole one.
class ChangeLog {
 public:
  static constexpr int64_t kNotMarked = -1;

  // A save holds everything as it is after `clock` steps.
  void Mark(int64_t clock) {
    marked_clock_ = clock;
    erased_ = {};
  }
  void OnChange(int64_t step) {
    if (step <= marked_clock_) Forget();
  }
  // `rows_left`: in the slice. Many more keys than that are longer to write than its rows.
  void OnErase(std::span<const Key> keys, size_t rows_left) {
    if (marked_clock_ == kNotMarked) return;
    erased_.insert(erased_.end(), keys.begin(), keys.end());
    if (erased_.size() > kErasedKeysMin + rows_left) Forget();
  }

  int64_t marked_clock() const { return marked_clock_; }
  // Ascending, each once. Some may have a row again.
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
