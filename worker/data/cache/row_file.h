// The layout of a file of packed rows.
#pragma once

#include <array>
#include <cstdint>

namespace hdps {

// A file is, one behind the other: blocks of rows, all but the last one whole; zeros up to a
// multiple of 8; an entry for each row; the stamp; zeros up to a multiple of 8; the hash of each
// piece of kRowBlockBytes of all that; this footer. Numbers have the byte order of the machine,
// which the magic shows.
struct RowFooter {
  static constexpr uint64_t kMagic = 0x53574f5253504448;  // "HDPSROWS"
  static constexpr uint64_t kVersion = 1;

  uint64_t magic = kMagic;
  uint64_t version = kVersion;
  uint64_t rows = 0;
  uint64_t row_bytes = 0;      // End of the last block.
  uint64_t index_offset = 0;   // Of the entries.
  uint64_t stamp_bytes = 0;    // The stamp follows the entries.
  uint64_t content_bytes = 0;  // All before the hashes.
  uint64_t hashes_hash = 0;    // Of the hashes.
  uint64_t own_hash = 0;       // Of the fields above.
};
static_assert(sizeof(RowFooter) == 9 * sizeof(uint64_t));

}  // namespace hdps
