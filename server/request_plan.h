// Locates the keys and rows of each shard in a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

struct Job;
struct TableKeys;

// The keys of one table that lie in one shard, as ranges of the request's sections.
struct ShardPiece {
  TableId table;
  size_t key_begin = 0;
  size_t num_keys = 0;
  size_t float_begin = 0;
  uint32_t row_floats = 0;

  std::span<const Key> KeysIn(const Buffer& keys) const {
    return keys.As<Key>().subspan(key_begin, num_keys);
  }
  size_t num_floats() const { return num_keys * row_floats; }
  // Returns whether the keys of both are one range.
  bool SameKeysAs(const ShardPiece& other) const {
    return key_begin == other.key_begin && num_keys == other.num_keys;
  }
  template <typename Float>  // float or const float
  std::span<Float> FloatsIn(std::span<Float> floats) const {
    return floats.subspan(float_begin, num_floats());
  }
  // Returns the rows' values in a section of numbers of `format`.
  template <typename Byte>  // std::byte or const std::byte
  std::span<Byte> ValuesIn(DType format, std::span<Byte> values) const {
    return values.subspan(float_begin * FloatBytes(format), num_floats() * FloatBytes(format));
  }
};

// The pieces of one request.
//
// Invariant: pieces lie inside the request's sections, one per shard of the server and table of the
// request; every table exists, and its rows have the length that the job gives it.
struct RequestPlan {
  size_t num_tables = 0;
  size_t num_floats = 0;
  std::vector<ShardPiece> pieces;  // [own shards, num_tables]

  std::span<const ShardPiece> OfShard(size_t slot) const {
    return std::span(pieces).subspan(slot * num_tables, num_tables);
  }
};

// Lets tables that share rows have one range of keys where each has a copy of the same keys, so
// that they are worked on under one look-up. `first_of_group`: see TablesThatShareRows().
void JoinKeys(std::span<const uint32_t> first_of_group, const Buffer& keys, RequestPlan* plan);
// Checks that a change of rows concerns tables that share them for the same keys. kCorruption names
// two that differ. Requires: JoinKeys() was called.
Status CheckJoined(const Job& job, std::span<const uint32_t> first_of_group,
                   const RequestPlan& plan);

// Returns the plan without the rows of dense tables.
RequestPlan WithoutDense(const Job& job, const RequestPlan& plan);

// The rows that a request may carry: [dim], [dim + state], or either.
enum class RowShape : uint8_t { kWeights, kWithState, kEither };

// The shards of the server that plans a request.
struct OwnShards {
  size_t count = 0;
  bool moved = false;  // An earlier view gave the server other shards.
};

// Checks the tables of a request and plans it. Requires: `tables` were decoded, so their counts add
// up to the sections. kCorruption names the table and the error; kStaleView instead if the sender
// may have cut the request by the shards of an earlier view; kResourceExhausted if the reply would
// be larger than a frame.
Result<RequestPlan> PlanRequest(const Job& job, OwnShards own_shards, RowShape shape,
                                const std::vector<TableKeys>& tables);

}  // namespace hdps
