// Splits the keys of a step by server. Pulls and pushes are made from the split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/protocol/table_keys.h"
#include "kernels/vector_width.h"
#include "worker/exchange/key_order.h"
#include "worker/exchange/row_moves.h"

namespace hdps {

// Allocates a section of a request to server `to` instead of using the process's own memory.
using MakeBytes = std::function<Buffer(ServerId to, size_t size, std::span<std::byte>* bytes)>;

// Keys of a step that one server holds.
struct ServerKeys {
  std::vector<TableKeys> tables;  // Tables with keys at this server, as they stand in a request.
  std::vector<uint32_t> input;    // [tables]: position in Compute()'s list.
  size_t num_sparse = 0;          // The first num_sparse tables are sparse.
  Buffer keys;                    // The section of keys in a request.
  size_t num_floats = 0;          // Number of floats in the section of rows or gradients.
};

// The marks of the rows that a step has read from one server: PullReply::mark; 0: none were read.
struct ReadMarks {
  uint64_t rows = 0, dense = 0;
};

// Splits the keys of a step by server. Is computed once a step and used by its pull (PullPlan) and
// its push (PushPlan); after shards have moved it is computed again from the same tables. Memory is
// kept from step to step. Works on plain values: it knows neither network nor cluster state.
//
// Invariant: the wire order of a server is by table, then by shard, then by the caller's position;
// every key of every table is at exactly one server. A request to a server leaves out tables
// without keys there.
class KeySplit {
 public:
  // Requires: tables ascend by id; every owner in `shards` is below `num_servers`. A key may appear
  // twice in a list that is only pulled. Tables with the same list (one span) share the work,
  // and their keys are sent once.
  // `make`, if set, allocates the key sections; they are held until the next call.
  void Compute(const ShardMap& shards, uint32_t num_servers, std::span<const KeysOfTable> tables,
               const MakeBytes& make = {});

  uint32_t num_servers() const { return static_cast<uint32_t>(servers_.size()); }
  size_t num_tables() const { return order_of_input_.size(); }
  const ServerKeys& at(ServerId server) const { return servers_[server.value]; }
  // Returns true if the keys of the i-th table are in wire order already, server after server, so
  // that the rows and gradients of each server are one piece of the caller's array. Never true for
  // the dense table, whose weights and gradients lie elsewhere.
  bool IsContiguous(size_t i) const;
  // Returns the caller's positions of the i-th table's keys at one server, in wire order.
  std::span<const uint32_t> PositionsAt(ServerId server, uint32_t i) const;
  // Length of the i-th table's list, requested or not: the number of rows in the caller's arrays.
  size_t KeysOfInput(size_t i) const { return OrderOf(i).list_size(); }
  // The marks of the rows that came from a server, which pulls of the split note for its push.
  const ReadMarks& marks(ServerId server) const { return marks_[server.value]; }
  ReadMarks& NoteMarks(ServerId server) const { return marks_[server.value]; }
  // Lowers the marks to those of another split where these are older, for one push of the rows of
  // both.
  void NoteOldestMarks(const KeySplit& other);
  RowMovers movers() const { return {width_, executor_}; }
  // Sets the executor whose threads move long lists of rows; null for the caller's thread alone. It
  // must outlive the split.
  void set_executor(Executor* executor) { executor_ = executor; }

 private:
  const KeyOrder& OrderOf(size_t input) const { return orders_[order_of_input_[input]]; }
  uint32_t FindOrder(const KeysOfTable& table);
  void Fill(ServerId server, std::span<const KeysOfTable> tables, const MakeBytes& make);

  const VectorWidth width_ = WidestVectors();
  Executor* executor_ = nullptr;
  ShardOrder shards_;
  uint32_t num_orders_ = 0;
  std::vector<KeyOrder> orders_;          // The first num_orders_ are in use.
  std::vector<uint32_t> order_of_input_;  // [tables]
  size_t num_sparse_ = 0;                 // The first num_sparse_ tables are sparse.
  std::vector<uint32_t> numbers_;  // 0, 1, ...: the positions of keys that are in order already.
  KeyOrderScratch scratch_;
  std::vector<ServerKeys> servers_;  // [num_servers]
  // [num_servers]: says nothing about the split itself, so pulls may note them.
  mutable std::vector<ReadMarks> marks_;
};

}  // namespace hdps
