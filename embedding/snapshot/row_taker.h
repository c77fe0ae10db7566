// Receives what a snapshot holds of one table, in place of a slice.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

// For those who keep rows in a form of their own. Called by one thread at a time, with bytes whose
// checksum was confirmed.
class RowTaker {
 public:
  virtual ~RowTaker() = default;
  // Announces a file with so many rows of the table. In a delta the removed keys come before it.
  virtual Status Begin(uint64_t rows) = 0;
  // Gives rows with their optimizer's state, [keys, dim + state]. No key comes twice in a file.
  virtual Status Store(std::span<const Key> keys, std::span<const float> rows) = 0;
  // Removes the rows of `keys` where there are any.
  virtual void Erase(std::span<const Key> keys) = 0;
};

}  // namespace hdps
