// Refuses what a scheduler says that no longer leads.
#pragma once

#include <cstdint>

namespace hdps {

// Invariant: a message is admitted only if no message of a newer reign was admitted before.
class ReignFence {
 public:
  // Returns whether a message of this reign is to be followed; one that is not is counted.
  bool Admits(uint64_t reign) {
    if (reign < newest_) {
      ++refused_;
      return false;
    }
    newest_ = reign;
    return true;
  }
  uint64_t newest() const { return newest_; }
  uint64_t refused() const { return refused_; }

 private:
  uint64_t newest_ = 0, refused_ = 0;
};

}  // namespace hdps
