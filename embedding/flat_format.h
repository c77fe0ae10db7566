// The bytes of a file of FlatRows, as docs/formats.md describes them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace hdps {

inline constexpr uint64_t kFlatMagic = 0x544c465350444824u;  // "$HDPSFLT" in memory order.
inline constexpr uint32_t kFlatVersion = 1;
inline constexpr uint64_t kFlatAlignment = 4096;  // Of a page, so that rows and slots share none.

struct FlatFileHeader {
  uint64_t magic = kFlatMagic;
  uint32_t version = kFlatVersion;
  uint32_t num_tables = 0;
  uint64_t tables_digest = 0;
  uint32_t shard = 0;
  uint32_t num_shards = 0;
  int64_t clock = 0;
};
// One for each table follows the file header. Offsets count from the begin of the file.
struct FlatTableHeader {
  uint64_t rows_offset = 0, rows_bytes = 0;
  uint64_t slots_offset = 0, num_slots = 0;
  uint32_t dim = 0;
  uint32_t format = 0;  // As WeightFormat.
};
static_assert(sizeof(FlatFileHeader) == 40 && sizeof(FlatTableHeader) == 40);
static_assert(std::has_unique_object_representations_v<FlatFileHeader>);
static_assert(std::has_unique_object_representations_v<FlatTableHeader>);

}  // namespace hdps
