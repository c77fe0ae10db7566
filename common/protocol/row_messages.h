// The messages about rows: between workers and servers, and among servers that hold the same rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "common/base/status.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/table_keys.h"

namespace hdps {

// ---- Rows: worker <-> server.

enum class PullMode : uint8_t {
  kTrain = 0,  // Waits at the staleness gate. Rows are [dim].
  kRead,       // No gate. Rows are [dim].
  kWithState,  // As kRead, rows are [dim + state].
  // The two halves of a pull to train. kPrefetch: the rows of all tables but the dense one, long
  // before `clock`; in sync as soon as the steps before `pushed` are finished. kRefresh: at
  // `clock`, through the gate: the dense rows, and in sync those others that a step after `since`
  // has changed.
  kPrefetch,
  kRefresh,
};

struct PullRequest {
  static constexpr MessageKind kKind = MessageKind::kPullRequest;
  Clock clock = 0;  // Steps the worker has finished.
  PullMode mode = PullMode::kTrain;
  std::vector<TableKeys> tables;  // At most one per table, ascending.
  Buffer keys;                    // uint64 [sum of num_keys]
  // kTrain, kPrefetch, kRefresh: the rows hold this worker's pushes of the clocks before this one,
  // though they may be on their way still. In sync those of kPrefetch hold everybody's before it,
  // and the others need no word of it: they hold everybody's before `clock`.
  Clock pushed = 0;
  // Not 0: the number of the key list. With keys, later requests of this worker may name it;
  // without tables and keys it stands for those that were sent under it. A server that does not
  // know it (any more) answers kNotFound.
  uint64_t list = 0;
  Clock since = 0;              // kRefresh: min_clock of the reply to kPrefetch.
  DType format = DType::kFp32;  // In which the rows are to travel; not kWithState.
};

struct PullReply {
  static constexpr MessageKind kKind = MessageKind::kPullReply;
  Code code = Code::kOk;
  std::string message;
  Clock min_clock = 0;  // When the rows were read: sync: steps applied; else of the slowest worker.
  // As in the request, without shard_counts. kPrefetch: without the dense table. kRefresh: num_keys
  // are the rows that are here.
  std::vector<TableKeys> tables;
  // [sum of num_keys * row_floats] of `format`, in the order of the keys.
  Buffer rows;
  // uint32, kRefresh: of the tables of which not every row is here, where each row that is stands
  // among the table's keys; ascending.
  Buffer positions;
  DType format = DType::kFp32;  // As asked for.
};

// The gradients of one worker's step for one server: one message, whatever the number of tables.
struct PushRequest {
  static constexpr MessageKind kKind = MessageKind::kPushRequest;
  Sequence sequence;
  Clock clock = 0;            // The step these belong to: steps the worker had finished before it.
  uint64_t num_examples = 0;  // In this worker's part of the step.
  std::vector<TableKeys> tables;  // row_floats == dim of the table.
  Buffer keys;  // uint64 [sum of num_keys]; no key twice within a table (not checked).
  // [sum of num_keys * dim] of `format`; sums over the worker's examples.
  Buffer gradients;
  uint64_t list = 0;  // As in PullRequest.
  DType format = DType::kFp32;
  double rate = 1;     // What the learning rates are multiplied with in this step.
  uint32_t epoch = 0;  // That the step is of, from 0.
};
struct PushAck {
  static constexpr MessageKind kKind = MessageKind::kPushAck;
  Sequence sequence;
  Code code = Code::kOk;
  std::string message;
};

// Says that this worker has finished `clock` steps. Sent only after every push of the steps before
// it has been acknowledged by every server; without that order the staleness bound would be a lie.
struct AdvanceRequest {
  static constexpr MessageKind kKind = MessageKind::kAdvanceRequest;
  Clock clock = 0;
  // Under train.clip_norm in sync mode: the squares of all gradients of step clock - 1, of every
  // server and of what the workers update themselves. The step is applied with the first of these.
  SquareSum squares = {};
};
struct AdvanceAck {
  static constexpr MessageKind kKind = MessageKind::kAdvanceAck;
  Clock clock = 0;
};

// Under train.clip_norm in sync mode: asks for the squares of the combined gradients that the
// server holds of step `clock`. Answered when every worker's push of it is here.
struct SquaresRequest {
  static constexpr MessageKind kKind = MessageKind::kSquaresRequest;
  Clock clock = 0;
};
struct SquaresReply {
  static constexpr MessageKind kKind = MessageKind::kSquaresReply;
  Code code = Code::kOk;
  std::string message;
  SquareSum squares = {};
};

// Sets rows (initial dense weights; dense weights and state under allreduce; rows kept at workers).
struct StoreRequest {
  static constexpr MessageKind kKind = MessageKind::kStoreRequest;
  std::vector<TableKeys>
      tables;  // row_floats == dim (state keeps its initial value) or dim + state.
  Buffer keys;
  Buffer rows;
  Sequence sequence;  // Of this worker's stores, apart from its pushes; a repeat has the same.
  Clock clock = 0;    // The rows hold the updates of the clocks before this one.
};
struct StoreAck {
  static constexpr MessageKind kKind = MessageKind::kStoreAck;
  Code code = Code::kOk;
  std::string message;
};

// Whether a server still hears a worker and is heard by it. It answers at once, whatever it is at:
// a request may have to wait for other workers or for a disk.
struct Probe {
  static constexpr MessageKind kKind = MessageKind::kProbe;
};
struct ProbeAck {
  static constexpr MessageKind kKind = MessageKind::kProbeAck;
};

// ---- Copies of rows: server <-> server. The group and the view are the header's.

// A change that the primary of a group has taken, for the next one that holds the group's rows.
struct Replicate {
  static constexpr MessageKind kKind = MessageKind::kReplicate;
  uint64_t number = 0;  // From 1 since the rows were loaded, or begun, without a gap.
  PeerId worker;        // Who asked for it.
  MessageKind request = MessageKind::kPushRequest;  // kPushRequest, kAdvanceRequest, kStoreRequest.
  Buffer envelope;                                  // Of the request, which carries its keys.
  Buffer keys, values;                              // Its sections; empty where it has none.
};

struct ReplicateAck {
  static constexpr MessageKind kKind = MessageKind::kReplicateAck;
  uint64_t number =
      0;  // The sender, and all who hold the rows behind it, have all changes up to it.
  bool again = false;  // It may have missed changes: those behind the number are to come again.
};

}  // namespace hdps
