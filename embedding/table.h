// One shard's slice of one table: rows by key, made on first use, changed by one rule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/job.h"
#include "common/status.h"

namespace hdps {

// Initial weights of a row: a function of (seed, table, key) and nothing else.
void InitRow(const InitSpec& init, uint64_t seed, TableId table, Key key, std::span<float> weights);

// A content digest that does not depend on order: the digests of disjoint sets of rows add up.
struct RowsDigest {
  uint64_t sum[2] = {0, 0};
  uint64_t rows = 0;
  void Add(const RowsDigest& other);
  void AddRow(uint64_t table_hash, Key key, std::span<const float> row);  // [dim + state]
};
// HashString() of the table's name: what its rows' digests are salted with.
uint64_t TableHash(const std::string& table_name);

// Invariant: every row is [weights | state], and what it holds depends only on the seed and on the
// updates applied to its key, in order. A row never moves. One task at a time touches a slice, so
// it has no locks; several may read it through const calls.
class TableSlice {
 public:
  TableSlice(const TableSpec& spec, TableId id, uint64_t seed);
  ~TableSlice();
  TableSlice(TableSlice&&) noexcept;

  const TableSpec& spec() const;
  uint32_t dim() const;
  uint32_t state_floats() const;
  size_t num_rows() const;
  size_t bytes() const;  // Of rows and index.

  // rows[keys.size() * dim], making those that are missing.
  void Pull(std::span<const Key> keys, std::span<float> rows);
  // rows[keys.size() * row_floats], row_floats == dim or dim + state_floats; missing rows read as
  // their initial value and are not made.
  void Peek(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows) const;
  // Sets rows; row_floats == dim leaves the state at its initial value.
  void Store(std::span<const Key> keys, uint32_t row_floats, std::span<const float> rows);

  // The gradients of one worker (or of one part), scaled by `scale` before they are added up. No
  // key twice: with more than one part a repeated key adds up, alone it would be updated twice.
  struct Gradients {
    std::span<const Key> keys;
    std::span<const float> values;  // [keys.size() * dim]
    float scale = 1;
  };
  // For every key: the gradients of `parts` added in their order, times `scale`, applied once.
  // `step` as for UpdateRow. Under LAMB the keys with the same upper 32 bits are one tensor.
  void Apply(std::span<const Gradients> parts, float scale, int64_t step);

  RowsDigest Digest() const;
  // Keys in ascending order; a row is [dim + state_floats].
  std::vector<Key> SortedKeys() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
