// Finds all keys in one table, then orders them by shard.
#include "kernels/keys/unique_keys.h"

#include <glog/logging.h>

#include <limits>

#include "common/platform/memory_full.h"
#include "kernels/keys/key_shards.h"

namespace hdps {

void UniqueKeys::Reset(size_t keys_max) {
  if (keys_max >= size_t{std::numeric_limits<uint32_t>::max()} / 2) {
    throw MemoryFull(
        "a worker's part of one step has 2^31 keys or more; give the job a smaller "
        "train.batch_size or more workers");
  }
  table_.Reset();
  keys_left_ = keys_max;
}

void UniqueKeys::Add(std::span<const Key> keys, uint32_t* index) {
  CHECK_LE(keys.size(), keys_left_);
  keys_left_ -= keys.size();
  WithVectors(
      width_, [&]() __attribute__((always_inline)) { table_.Add(keys, index); });
}

void UniqueKeys::Find(std::span<const KeyColumn> columns, ShardBy by, uint32_t num_shards,
                      Executor* executor, std::vector<Key>* sorted,
                      std::vector<uint32_t>* shard_begin) {
  size_t keys = 0;
  for (const KeyColumn& column : columns) keys += column.keys.size();
  Reset(keys);
  for (const KeyColumn& column : columns) Add(column.keys, column.index);
  const std::span<const Key> unique = table_.unique();
  places_.resize(unique.size());
  sorted->resize(unique.size());
  shard_begin->resize(num_shards + 1);
  OrderByShard(width_, unique, by, num_shards, executor, places_.data(), sorted->data(),
               shard_begin->data());
  const auto place = [&](size_t c) {
    const KeyColumn& column = columns[c];
    for (size_t i = 0; i < column.keys.size(); ++i) column.index[i] = places_[column.index[i]];
  };
  constexpr size_t kKeysMany = size_t{1} << 16;
  if (executor != nullptr && keys >= kKeysMany) {
    executor->ParallelFor(columns.size(), place);
  } else {
    for (size_t c = 0; c < columns.size(); ++c) place(c);
  }
}

}  // namespace hdps
