// Messages about rows: between workers and servers, and among servers with copies of the same rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "common/base/status.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/table_keys.h"
#include "common/protocol/tallies.h"

namespace hdps {

// ---- Rows: worker <-> server.

enum class PullMode : uint8_t {
  kTrain = 0,  // Waits at the staleness gate. Rows are [dim].
  kRead,       // Does not wait at the gate. Rows are [dim].
  kWithState,  // Like kRead, with rows [dim + state].
  // The two halves of a pull for training. kPrefetch reads the rows of all tables but the dense
  // one, long before `clock`; in sync mode it waits only until the steps before `pushed` are
  // applied. kRefresh passes the gate at `clock` and reads the dense rows; in sync mode also those
  // other rows that a step after `since` has changed.
  kPrefetch,
  kRefresh,
};

// Limit on the keys of a pull of a caller that is no member of the job, so that the answer to one
// takes a server little time.
inline constexpr uint32_t kGuestKeysMax = 4096;

struct PullRequest {
  static constexpr MessageKind kKind = MessageKind::kPullRequest;
  Clock clock = 0;  // Steps the worker has finished.
  PullMode mode = PullMode::kTrain;
  std::vector<TableKeys> tables;  // At most one per table, ascending.
  Buffer keys;                    // uint64 [sum of num_keys of tables with keys of their own]
  // kTrain, kPrefetch, kRefresh: the rows must include this worker's pushes of the clocks before
  // `pushed`, even those in transit. In sync mode, kPrefetch rows include all workers' pushes
  // before `pushed`; the other modes ignore it, because their rows include all pushes before
  // `clock`.
  Clock pushed = 0;
  // Number of the key list, or 0. A request with keys and a number defines the list, and later
  // requests of this worker may name it instead of sending tables and keys. A server that does not
  // know the list, or no longer, answers kNotFound.
  uint64_t list = 0;
  Clock since = 0;              // kRefresh: min_clock of the reply to kPrefetch.
  DType format = DType::kFp32;  // Format of the rows in the reply; not for kWithState.
  // Numbers the key list of the step that these keys are: see ListsOfStep(). A worker has at most
  // one pull of each for a step.
  uint32_t part = 0;
};

struct PullReply {
  static constexpr MessageKind kKind = MessageKind::kPullReply;
  Code code = Code::kOk;
  std::string message;
  // At the time of reading: steps applied in sync mode, else the clock of the slowest worker.
  Clock min_clock = 0;
  // The tables are those of the request, without shard_counts and keys_of. kPrefetch: the dense
  // table is left out. kRefresh: num_keys counts the rows in this reply.
  std::vector<TableKeys> tables;
  // [sum of num_keys * row_floats] in `format`, in the order of the keys.
  Buffer rows;
  // kRefresh: uint32. For each table with rows missing from the reply, the indices, among the
  // table's keys, of the rows that it has, ascending.
  Buffer positions;
  DType format = DType::kFp32;  // As in the request.
  // async, ssp: one more than the updates that the rows contain since they were loaded, so that the
  // push that is computed from them tells how old they were. 0: none.
  uint64_t mark = 0;
};

// Limits of PushRequest::scale_exponent; their powers of two are normal fp32 numbers.
inline constexpr int32_t kScaleExponentMax = 126;

// The gradients of one worker's step for one server, for all tables: in one message, or in one for
// each of the step's key lists, which have no key in common.
struct PushRequest {
  static constexpr MessageKind kKind = MessageKind::kPushRequest;
  Sequence sequence;
  Clock clock = 0;                // Steps finished before the step of these gradients.
  uint64_t num_examples = 0;      // Examples in this worker's part of the step, in each message.
  std::vector<TableKeys> tables;  // row_floats == dim of the table.
  Buffer keys;                    // As in PullRequest; unique within a table (not checked).
  // [sum of num_keys * dim] in `format`: sums over the worker's examples.
  Buffer gradients;
  uint64_t list = 0;  // As PullRequest::list.
  DType format = DType::kFp32;
  double rate = 1;     // Factor on the learning rates in this step.
  uint32_t epoch = 0;  // Epoch of the step, from 0.
  uint32_t part = 0;   // As PullRequest::part; the step is complete with one push of each.
  // The gradients were multiplied by two to the power of this, so that fp16 holds small ones. A
  // power of two changes no digit, and the receiver divides by it in fp32.
  int32_t scale_exponent = 0;
  Clock steps_before = 0;  // As Command::steps_before.
  // PullReply::mark of the rows, and of the dense rows, that the gradients were computed from; 0 if
  // the worker has read none of them from this server.
  uint64_t rows_mark = 0, dense_mark = 0;
  RoundCounts counts = {};  // With this step.
  // These are the messages of a topic that the step has, by the worker's partitions, ascending;
  // empty without a topic.
  std::vector<PartitionSpan> messages = {};
};
struct PushAck {
  static constexpr MessageKind kKind = MessageKind::kPushAck;
  Sequence sequence;
  Code code = Code::kOk;
  std::string message;
  // The rows were older than train.max_staleness, so the gradients were left out.
  bool too_old = false;
};

// Reports that this worker has finished `clock` steps. It is sent only after every server has
// acknowledged every push of the steps before, because otherwise the staleness bound would not
// hold.
struct AdvanceRequest {
  static constexpr MessageKind kKind = MessageKind::kAdvanceRequest;
  Clock clock = 0;
  // The sum of squares of all gradients of step clock - 1, over all servers and over what the
  // workers update themselves; used with train.clip_norm in sync mode. The first such value to
  // arrive is used to apply the step.
  SquareSum squares = {};
  // A process that has taken the place of a lost one asks where the place stands, and nothing is
  // reported. `clock`: it wants the counts before this step; 0: before AdvanceAck::pushed.
  bool asks = false;
};
// TopicStep names the messages of a topic that one step of a worker has, by partition, ascending.
struct TopicStep {
  Clock clock = 0;
  std::vector<PartitionSpan> messages;
  friend bool operator==(const TopicStep&, const TopicStep&) = default;
};
struct AdvanceAck {
  static constexpr MessageKind kKind = MessageKind::kAdvanceAck;
  Clock clock = 0;  // That of the request; if it asked, the clock that the place has reported.
  // If it asked: the server has every push of the place's steps before `pushed` and none of a step
  // from `reached` on; `counts` came with the last of the steps before the one asked about.
  RoundCounts counts = {};
  Clock pushed = 0, reached = 0;
  // If it asked, and the job reads a topic: the place's newest steps of which there is a push,
  // ascending, from the one before AdvanceAck::clock on.
  std::vector<TopicStep> steps = {};
};

// Asks for the sum of squares of the combined gradients that the server holds for step `clock`;
// used with train.clip_norm in sync mode. Answered once every worker's push of that step has
// arrived.
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

// Sets rows: initial dense weights, dense weights and state under allreduce, rows that workers
// keep.
struct StoreRequest {
  static constexpr MessageKind kKind = MessageKind::kStoreRequest;
  std::vector<TableKeys>
      tables;  // row_floats == dim (state keeps its initial value) or dim + state.
  Buffer keys;
  Buffer rows;
  Sequence sequence;  // Counts this worker's stores, apart from its pushes; a repeat has the same.
  Clock clock = 0;    // The rows include the updates of all clocks before this one.
};
struct StoreAck {
  static constexpr MessageKind kKind = MessageKind::kStoreAck;
  Code code = Code::kOk;
  std::string message;
};

// Tests if a server still hears a worker and is heard by it. The server answers at once even while
// it is busy; a request instead may have to wait for other workers or for a disk.
struct Probe {
  static constexpr MessageKind kKind = MessageKind::kProbe;
};
struct ProbeAck {
  static constexpr MessageKind kKind = MessageKind::kProbeAck;
};

// ---- Copies of rows: server <-> server. The frame header has the group and the view.

// A change that the primary of a group has accepted, sent to the next holder of the group's rows.
struct Replicate {
  static constexpr MessageKind kKind = MessageKind::kReplicate;
  uint64_t number = 0;  // Counts from 1, without a gap, since the rows were loaded or initialized.
  PeerId worker;        // The worker that requested the change.
  MessageKind request = MessageKind::kPushRequest;  // kPushRequest, kAdvanceRequest, kStoreRequest.
  Buffer envelope;      // Envelope of the request, which carries its keys.
  Buffer keys, values;  // Sections of the request; empty if it has none.
};

struct ReplicateAck {
  static constexpr MessageKind kKind = MessageKind::kReplicateAck;
  uint64_t number =
      0;  // The sender and all later holders of the rows have all changes up to this number.
  bool again = false;  // Changes may be missing: send those after `number` again.
};

}  // namespace hdps
