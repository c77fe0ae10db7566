// Finds the distinct keys of a batch, so that each row travels once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/executor.h"
#include "common/ids.h"
#include "kernels/vector_width.h"

namespace hdps {

// One list of keys, and where the positions of its keys go.
struct KeyColumn {
  std::span<const Key> keys;
  uint32_t* index = nullptr;  // [keys]
};

// Invariant: unique() holds every key found since Reset() once, in order of first sight, whichever
// way and on however many threads it was found. Its memory is kept from batch to batch.
class UniqueKeys {
 public:
  // `width`: no more than the machine has; it changes nothing that is found.
  explicit UniqueKeys(VectorWidth width = WidestVectors());
  ~UniqueKeys();
  UniqueKeys(UniqueKeys&&) noexcept;
  UniqueKeys& operator=(UniqueKeys&&) noexcept;

  // Forgets all keys; at most `keys_max` will be added.
  void Reset(size_t keys_max);
  // index[i] = position of keys[i] in unique().
  void Add(std::span<const Key> keys, uint32_t* index);
  // Reset and Add of column after column; where that is faster, by the executor's threads (null: by
  // the caller's alone). Nothing may be added after it.
  void Find(std::span<const KeyColumn> columns, Executor* executor);
  std::span<const Key> unique() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
