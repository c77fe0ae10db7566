// The copies for each vector width.
#include "kernels/key_table.h"

namespace hdps {
namespace {

void AddPlain(std::span<const Key> keys, uint32_t* index, KeyTable* table) {
  table->Add(keys, index);
}
HDPS_AVX2 void AddAvx2(std::span<const Key> keys, uint32_t* index, KeyTable* table) {
  table->Add(keys, index);
}
HDPS_AVX512 void AddAvx512(std::span<const Key> keys, uint32_t* index, KeyTable* table) {
  table->Add(keys, index);
}

}  // namespace

void AddKeys(VectorWidth width, std::span<const Key> keys, uint32_t* index, KeyTable* table) {
  switch (width) {
    case VectorWidth::kPlain:
      return AddPlain(keys, index, table);
    case VectorWidth::kAvx2:
      return AddAvx2(keys, index, table);
    case VectorWidth::kAvx512:
      return AddAvx512(keys, index, table);
  }
}

}  // namespace hdps
