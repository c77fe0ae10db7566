// Keys whose rows are all that is needed of a checkpoint.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// Invariant: memory is at most that of three times the different keys and kUnsortedMax, however
// often they are wanted. Once Seal() was called, the keys of each table ascend, without repeats.
class WantedKeys {
 public:
  static constexpr size_t kUnsortedMax = size_t{1} << 18;  // Keys of a table.

  explicit WantedKeys(size_t num_tables) : tables_(num_tables) {}

  void Want(TableId table, std::span<const Key> keys);
  void Seal();
  std::span<const Key> Of(TableId table) const { return tables_[table.value].keys; }

 private:
  struct Table {
    std::vector<Key> keys;
    size_t sorted_max = kUnsortedMax;  // With more keys repeats are removed.
  };
  std::vector<Table> tables_;
};

}  // namespace hdps
