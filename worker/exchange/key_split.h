// What each server holds of a step's keys; pulls and pushes are made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/protocol/row_messages.h"
#include "kernels/vector_width.h"
#include "worker/exchange/key_order.h"
#include "worker/exchange/row_moves.h"

namespace hdps {

// Where a section of a request to a server comes from, if not from the process' own memory.
using MakeBytes = std::function<Buffer(ServerId to, size_t size, std::span<std::byte>* bytes)>;

// What one server holds of the keys of a step.
struct ServerKeys {
  std::vector<TableKeys> tables;  // Those of which it has keys, as a request says it.
  std::vector<uint32_t> input;    // [tables]: position in Compute()'s list.
  size_t num_sparse = 0;          // The first so many tables are not dense.
  Buffer keys;                    // The section of a request.
  size_t num_floats = 0;          // Of the section of rows or gradients.
};

// Where every key of a step lives. Computed once a step and used by its pull (PullPlan) and its
// push (PushPlan); after a change of ownership it is computed again from the same tables. The
// memory is kept from step to step. Plain values in and out: no network, no state of a cluster.
//
// Invariant: the wire order of a server is by table, then shard, then the caller's position; every
// key of every table is at exactly one server. Tables of which a server gets no key are not
// mentioned to it.
class KeySplit {
 public:
  // Requires: tables ascend by id; every owner in `shards` is below `num_servers`. A key may stand
  // twice in a list that is only pulled. Tables that give the same lists (one span) share the work.
  // Sections of keys come from `make`, if there is one, and are held until the next call.
  void Compute(const ShardMap& shards, uint32_t num_servers, std::span<const KeysOfTable> tables,
               const MakeBytes& make = {});

  uint32_t num_servers() const { return static_cast<uint32_t>(servers_.size()); }
  size_t num_tables() const { return order_of_input_.size(); }
  const ServerKeys& at(ServerId server) const { return servers_[server.value]; }
  // Whether all keys of the i-th table are in their wire order already, those of one server behind
  // those of another: then rows and gradients of each server are one piece of the caller's. Never
  // of the dense table: its weights and gradients have a place of their own.
  bool InPieces(size_t i) const;
  // The caller's positions of the keys of the i-th table at one server, in wire order.
  std::span<const uint32_t> PositionsAt(ServerId server, uint32_t i) const;
  // Keys of the i-th table's list, meant or not: the caller's arrays have as many rows.
  size_t KeysOfInput(size_t i) const { return OrderOf(i).list_size(); }
  RowMovers movers() const { return {width_, executor_}; }
  // Whose threads move many rows; null: nobody's. It must outlive the split.
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
  size_t num_sparse_ = 0;                 // The first so many tables are not dense.
  std::vector<uint32_t> numbers_;         // 0, 1, ...: positions of keys that are in order.
  KeyOrderScratch scratch_;
  std::vector<ServerKeys> servers_;  // [num_servers]
};

}  // namespace hdps
