// Computes digests as sums of hashes over rows.
#include "common/base/hash.h"
#include "embedding/table.h"

namespace hdps {

void RowsDigest::Add(const RowsDigest& other) {
  sum[0] += other.sum[0];
  sum[1] += other.sum[1];
  rows += other.rows;
}

void RowsDigest::AddRow(uint64_t table_hash, Key key, std::span<const float> row) {
  const uint64_t seed = CombineKeys(table_hash, key);
  sum[0] += HashBytes(std::as_bytes(row), seed);
  sum[1] += HashBytes(std::as_bytes(row), ~seed);
  ++rows;
}

uint64_t TableHash(const std::string& table_name) { return HashString(table_name); }

}  // namespace hdps
