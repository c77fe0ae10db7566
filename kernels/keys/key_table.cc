// The copies for each vector width.
#include "kernels/keys/key_table.h"

namespace hdps {

void AddKeys(VectorWidth width, std::span<const Key> keys, uint32_t* index, KeyTable* table) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) { table->Add(keys, index); });
}

}  // namespace hdps
