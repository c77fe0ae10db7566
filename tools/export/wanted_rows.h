// The rows of some keys, taken while a checkpoint's shards go by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "tools/scoring/wanted_keys.h"

namespace hdps {

struct Job;

// Invariant: once Seal() was called, there is a place for the row of each wanted key.
class WantedRows {
 public:
  explicit WantedRows(const Job& job);

  void Want(TableId table, std::span<const Key> keys) { keys_.Want(table, keys); }
  void Seal();
  // Takes the wanted ones of these rows, which have `dim` columns from `first_column` on; a row is
  // the first floats of `row_floats`. Requires: keys ascend.
  void Take(TableId table, std::span<const Key> keys, std::span<const float> rows,
            uint32_t row_floats, uint32_t first_column, uint32_t dim);
  // Copies the row of `key` to `row` [dim] and returns true; returns false if it has none. Columns
  // that were not taken are zero. Requires: the key is wanted.
  bool Read(TableId table, Key key, std::span<float> row) const;
  uint64_t num_keys(TableId table) const { return keys_.Of(table).size(); }
  uint64_t num_there(TableId table) const;  // Number of wanted keys that have a row.

 private:
  struct Table {
    uint32_t dim = 0;
    std::vector<float> rows;     // [keys, dim]
    std::vector<uint8_t> there;  // [keys]
  };
  WantedKeys keys_;
  std::vector<Table> tables_;
};

}  // namespace hdps
