// One table for all keys; then their order by shard.
#include "kernels/keys/unique_keys.h"

#include <glog/logging.h>

#include <limits>

#include "kernels/keys/key_shards.h"
#include "kernels/keys/key_table.h"

namespace hdps {

struct UniqueKeys::Impl {
  VectorWidth width;
  KeyTable table;
  size_t keys_left = 0;          // Of those announced.
  std::vector<uint32_t> places;  // Scratch of Find().
};

UniqueKeys::UniqueKeys(VectorWidth width) : impl_(std::make_unique<Impl>()) {
  impl_->width = width;
}
UniqueKeys::~UniqueKeys() = default;
UniqueKeys::UniqueKeys(UniqueKeys&&) noexcept = default;
UniqueKeys& UniqueKeys::operator=(UniqueKeys&&) noexcept = default;

std::span<const Key> UniqueKeys::unique() const { return impl_->table.unique(); }

void UniqueKeys::Reset(size_t keys_max) {
  CHECK_LT(keys_max, size_t{std::numeric_limits<uint32_t>::max()} / 2);
  impl_->table.Reset();
  impl_->keys_left = keys_max;
}

void UniqueKeys::Add(std::span<const Key> keys, uint32_t* index) {
  CHECK_LE(keys.size(), impl_->keys_left);
  impl_->keys_left -= keys.size();
  AddKeys(impl_->width, keys, index, &impl_->table);
}

void UniqueKeys::Find(std::span<const KeyColumn> columns, ShardBy by, uint32_t num_shards,
                      Executor* executor, std::vector<Key>* sorted,
                      std::vector<uint32_t>* shard_begin) {
  size_t keys = 0;
  for (const KeyColumn& column : columns) keys += column.keys.size();
  Reset(keys);
  for (const KeyColumn& column : columns) Add(column.keys, column.index);
  const std::span<const Key> unique = impl_->table.unique();
  std::vector<uint32_t>& places = impl_->places;
  places.resize(unique.size());
  sorted->resize(unique.size());
  shard_begin->resize(num_shards + 1);
  OrderByShard(impl_->width, unique, by, num_shards, executor, places.data(), sorted->data(),
               shard_begin->data());
  for (const KeyColumn& column : columns) {
    for (size_t i = 0; i < column.keys.size(); ++i) column.index[i] = places[column.index[i]];
  }
}

}  // namespace hdps
