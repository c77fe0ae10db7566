// From a step's keys to one request per server, and from the servers' rows back to the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/base/status.h"
#include "common/protocol/messages.h"
#include "kernels/row_spans.h"
#include "kernels/vector_width.h"
#include "worker/exchange/server_request.h"

namespace hdps {

// The keys that a request needs of one table, in the caller's order.
struct KeysOfTable {
  TableId table;
  ShardBy shard_by = ShardBy::kKey;
  uint32_t row_floats = 0;  // dim, or dim + state for PullMode::kWithState and such a store.
  std::span<const Key> keys;
  // Positions in `keys` of those that are meant; none: all. Rows and gradients stay [keys *
  // row_floats] in the caller's arrays, with nothing read or written between.
  std::optional<std::span<const uint32_t>> only = std::nullopt;
  bool dense = false;  // The job's dense table: its rows are never asked for ahead.
  // [shards + 1]: where each shard's keys begin, if whoever found `keys` knows: then they come by
  // shard, and are not hashed again. Empty: not known. Not used beside `only`, nor where the map
  // has another number of shards.
  std::span<const uint32_t> shard_begin = {};
};

// What a pull asks for beside its keys; as the fields of PullRequest.
struct PullTerms {
  Clock clock = 0;
  PullMode mode = PullMode::kTrain;
  Clock pushed = 0;
  uint64_t list = 0;
  DType format = DType::kFp32;
};

// What is left to ask for when rows were read ahead.
struct RepairTerms {
  Clock clock = 0;
  Clock pushed = 0;
  uint64_t list = 0;
  // [servers]: min_clock of the reply to kPrefetch; kNotRead where none was asked for.
  std::span<const Clock> since;
  bool changes = true;  // False: rows that were read ahead stand, only the dense ones are missing.
  DType format = DType::kFp32;
};
// What a push says beside its keys and gradients; as the fields of PushRequest. `list` not 0: the
// servers have been sent the keys under this number.
struct PushTerms {
  Sequence sequence;
  Clock clock = 0;
  uint64_t num_examples = 0;
  uint64_t list = 0;
  DType format = DType::kFp32;
};
inline constexpr Clock kNotRead = -1;

// Where every key of a step lives. Computed once a step and used by its pull and its push; the
// memory is kept from step to step. Plain values in and out: no network, no state of a cluster.
//
// Invariant: the wire order of a server is by table, then shard, then the caller's position; every
// key of every table is in the part of exactly one server. Tables of which a server gets no key are
// not mentioned to it.
class KeySplit {
 public:
  // Requires: tables ascend by id; every owner in `shards` is below `num_servers`. A key may stand
  // twice in a list that is only pulled. Tables that give the same lists (one span) share the work.
  // Sections of keys come from `make`, if there is one, and are held until the next call.
  using MakeBytes = std::function<Buffer(ServerId to, size_t size, std::span<std::byte>* bytes)>;
  void Compute(const ShardMap& shards, uint32_t num_servers, std::span<const KeysOfTable> tables,
               const MakeBytes& make = {});

  uint32_t num_servers() const { return static_cast<uint32_t>(parts_.size()); }
  size_t num_tables() const { return order_of_input_.size(); }
  // Whether all keys of the i-th table are in their wire order already, those of one server behind
  // those of another: then rows and gradients of each server are one piece of the caller's. Never
  // of the dense table: its weights and gradients have a place of their own.
  bool InPieces(size_t i) const {
    return i < num_sparse_ && parts_.size() <= kRowSpansMax && orders_[order_of_input_[i]].in_order;
  }
  // The envelope's part of a request, and its `keys` section.
  const std::vector<TableKeys>& TablesOf(ServerId server) const;
  const Buffer& KeysOf(ServerId server) const;

  // Requests to the servers that hold keys of the split; under kPrefetch, keys of other tables than
  // the dense one.
  std::vector<ServerRequest> Pulls(const PullTerms& terms) const;
  // kRefresh, naming the list, to the servers that were read ahead and have something to add;
  // kTrain with the keys to the others that hold keys.
  std::vector<ServerRequest> Repairs(const RepairTerms& terms) const;
  // Requests to all servers, also to those without a key: their clock and ledger must move too.
  // gradients[i] belongs to tables[i]: [keys * row_floats], in the caller's order. Sections come
  // from `make`, if there is one.
  std::vector<ServerRequest> Pushes(const PushTerms& terms,
                                    std::span<const std::span<const float>> gradients,
                                    const MakeBytes& make = {}) const;
  // The sections of a push before its gradients are there: where those of a table are to be, as the
  // caller orders them, so that whoever makes them writes them there.
  struct OpenSections {
    struct Section {
      Buffer buffer;
      std::span<std::byte> bytes;  // In it, to be written until it is sent.
    };
    std::vector<Section> of;  // [servers]
    // [tables]: [keys * row_floats]; empty for tables whose gradients have to be moved.
    std::vector<RowSpans<float>> places;
  };
  // Sections that are of no use are let go.
  OpenSections OpenPush(const MakeBytes& make = {}) const;
  // As Pushes(), in 32 bits, with the gradients of the tables that have places in `open` there.
  std::vector<ServerRequest> ClosePush(const PushTerms& terms,
                                       std::span<const std::span<const float>> gradients,
                                       OpenSections open) const;
  // Requests to the servers that hold keys of the split; rows[i] is [keys * row_floats].
  std::vector<ServerRequest> Stores(Sequence sequence, Clock clock,
                                    std::span<const std::span<const float>> rows) const;

  // Values in the caller's order -> one section in `server`'s wire order, rounded to `format`.
  Buffer Gather(ServerId server, std::span<const std::span<const float>> values,
                DType format = DType::kFp32, const MakeBytes& make = {}) const;
  // One server's rows -> their places in rows[i], [keys * row_floats] each; under kRefresh only
  // those that are there. Gives the reply's own error if it has one, and kCorruption when its
  // tables, sizes or positions are not those that `mode` asked for; then nothing is written.
  // `in_place` not empty: rows of a table InPieces() in 32 bits are not copied, but are added to
  // in_place[i], and stay there while the reply is held. Requires then: not kRefresh, and servers
  // in their order.
  Status Scatter(ServerId server, PullMode mode, const PullReply& reply,
                 std::span<const std::span<float>> rows,
                 std::span<RowSpans<const float>> in_place = {}) const;

 private:
  // The wire order of one list of keys over all servers.
  struct Order {
    const Key* keys = nullptr;  // Which lists; only compared after Compute().
    size_t num_keys = 0;
    bool all = true;
    const uint32_t* only = nullptr;
    size_t num_only = 0;
    ShardBy shard_by = ShardBy::kKey;
    std::vector<uint32_t> slot_begin;       // [num_shards + 1] into caller_position
    bool in_order = false;                  // All keys, and the wire order is the caller's; else:
    std::vector<uint32_t> caller_position;  // [num_keys or num_only]
    std::vector<Key> sorted_keys;           // [num_keys or num_only]: those at these positions.
  };
  // What one server gets.
  struct Part {
    std::vector<TableKeys> tables;
    std::vector<uint32_t> input;  // [tables]: position in Compute()'s list.
    size_t num_sparse = 0;        // The first so many tables are not dense.
    Buffer keys;
    size_t num_floats = 0;  // Of the section of rows or gradients.
  };

  void NumberSlots(const ShardMap& shards, uint32_t num_servers);
  uint32_t FindOrder(const KeysOfTable& table);
  void Sort(const KeysOfTable& table, Order* order);
  // [num_shards + 1]: where each shard's keys begin, until the next call; empty when keys do not
  // come by shard. shard_of_key_[keys] holds their shards.
  std::span<const uint32_t> FindBounds(std::span<const Key> keys, ShardBy shard_by);
  void FillPart(uint32_t server, std::span<const KeysOfTable> tables, const MakeBytes& make);
  ServerRequest PushTo(ServerId server, const PushTerms& terms, Buffer gradients) const;
  // Those of `input` have been written already where `places` has one.
  void GatherInto(ServerId server, std::span<const std::span<const float>> values, DType format,
                  std::span<const RowSpans<float>> places, std::byte* to) const;
  Status CheckReply(ServerId server, PullMode mode, const PullReply& reply) const;
  // The caller's positions of the keys of one table at one server, in wire order.
  std::span<const uint32_t> PositionsAt(uint32_t server, uint32_t input) const;

  // Slots number the shards server by server, ascending within a server.
  uint32_t num_shards_ = 0;
  std::vector<uint32_t> slot_of_shard_;  // [num_shards]
  // Each server owns neighbours, and the servers come in their order: as the scheduler deals them.
  bool slots_are_shards_ = false;
  std::vector<uint32_t> server_begin_;  // [num_servers + 1]: first slot of each server.

  uint32_t num_orders_ = 0;
  std::vector<Order> orders_;             // The first num_orders_ are in use.
  std::vector<uint32_t> order_of_input_;  // [tables]
  size_t num_sparse_ = 0;                 // The first so many tables are not dense.
  std::vector<uint32_t> numbers_;         // 0, 1, ...: positions of keys that are in order.
  const VectorWidth width_ = WidestVectors();
  std::vector<Key> chosen_keys_;        // Scratch of Sort().
  std::vector<uint32_t> shard_of_key_;  // Scratch of Sort().
  std::vector<uint32_t> shard_begin_;   // Scratch of Sort().
  std::vector<uint32_t> next_in_slot_;  // Scratch of Sort().
  std::vector<Part> parts_;             // [num_servers]
};

// One AdvanceRequest to each server.
std::vector<ServerRequest> Advances(uint32_t num_servers, Clock clock);

}  // namespace hdps
