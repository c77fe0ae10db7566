// Counts the keys of scored rows that have no row in the checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/scoring/checkpoint_model.h"
#include "worker/model/step_parts.h"

namespace hdps {

// Counts keys once for each table that is asked for their rows.
//
// Invariant: memory is a bit for each row of the checkpoint and at most kDistinctMax keys without a
// row.
class UnknownCount {
 public:
  static constexpr size_t kDistinctMax = size_t{1} << 20;

  // Requires: `loaded` outlives it.
  explicit UnknownCount(const CheckpointModel& loaded);
  // Counts the keys that a batch needs from a table.
  void Add(TableId table, const KeySet& keys);
  // The same for all tables of a step of one part. Returns whether some have no row.
  bool Add(const StepParts& step);

  uint64_t keys() const { return keys_; }        // All keys, each as often as it occurs.
  uint64_t unknown() const { return unknown_; }  // Those without a row.
  // Different keys, those without a row among them, and these alone. Beyond kDistinctMax keys
  // without a row further ones are not counted, and distinct_cut() is true.
  uint64_t distinct() const { return distinct_known_ + unknown_keys_.size(); }
  uint64_t distinct_unknown() const { return unknown_keys_.size(); }
  bool distinct_cut() const { return distinct_cut_; }

  // Tells both counts and how such keys read, for a person; empty if every key has a row.
  std::string Tell() const;

 private:
  // Returns whether the key has no row.
  bool AddDistinct(TableId table, Key key, std::optional<uint32_t> field_shard);

  const CheckpointModel& loaded_;
  uint64_t keys_ = 0, unknown_ = 0, distinct_known_ = 0;
  bool distinct_cut_ = false;
  std::vector<std::vector<std::vector<bool>>> seen_;  // [tables][shards][rows]
  std::unordered_set<uint64_t> unknown_keys_;         // Hashes of table and key.
  std::vector<char> without_;                         // [keys of a step]; a member for its memory.
};

}  // namespace hdps
