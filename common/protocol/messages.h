// Every message of the cluster, in the order of a run: one plain struct each, and its codec.
//
// Bulk arrays (keys, rows, gradients, scores) travel as raw sections of the frame; everything else
// in a FlatBuffer that follows common/protocol/messages.fbs. DecodeMessage checks sizes, ranges and
// sums, so whoever holds a decoded message may rely on what is written here; it answers kCorruption
// for bytes that break a rule and never stops the process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/protocol/activity.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/status_messages.h"

namespace hdps {

// No text of a message is longer; what is written for people is cut to this length by the sender.
inline constexpr size_t kTextBytesMax = 64 << 10;

// ---- Membership: server or worker <-> scheduler.

// Sent again until answered by a View or JoinRefused.
struct JoinRequest {
  static constexpr MessageKind kKind = MessageKind::kJoinRequest;
  Role role = Role::kWorker;
  int32_t rank = -1;         // -1: the scheduler picks.
  std::string address;       // Where this server listens; empty for a worker.
  uint64_t job_digest = 0;   // JobDigest() of the sender's job: all must train the same thing.
  uint32_t num_servers = 0;  // As the sender was told; 0 = whatever the scheduler says.
  uint32_t num_workers = 0;
  std::string host;          // For people: host name and process number.
  std::string process = {};  // OwnProcessName(): others on its machine can see that it has ended.
};

// Final: the member prints the message and exits with the status.
struct JoinRefused {
  static constexpr MessageKind kKind = MessageKind::kJoinRefused;
  int32_t exit_status = 2;
  std::string message;
};

struct Member {
  PeerId peer;
  uint32_t rank = 0;
  std::string address;  // Empty for workers.
};

// A server that holds a copy of a group's rows.
struct GroupBackup {
  ServerId group;
  Member member;
};

// The membership of one view. Ranks of workers are 0..n-1 and stand in order. Every change of the
// members, and every new process of the scheduler, forms a view with a larger number: requests and
// commands of an older view are refused, so nobody who was replaced, and no scheduler of before, is
// obeyed.
//
// The shards that one server of the first view owned are a group, and ServerId numbers the groups:
// what is asked of a group goes to its primary, whoever that is. With replicas its backups hold the
// same rows, and the first of them is the next primary; so a process may be that of several groups.
struct View {
  static constexpr MessageKind kKind = MessageKind::kView;
  ViewId view;
  std::vector<Member> servers;  // The primary of each group; the rank is the process' own.
  std::vector<Member> workers;
  ShardMap shards;
  // How often the job has gone back to a checkpoint. Where it has grown, nothing that was under way
  // counts any more: members drop it and wait for kLoad.
  uint32_t restarts = 0;
  // The view in which shards last got their places. Behind the first one nobody touches rows before
  // a kLoad has brought those that have come; with `keep` those that stay are kept.
  ViewId placed = {};
  std::vector<GroupBackup> backups;  // By group; those of one in the order of succession.

  // The processes that hold the rows of `group`: the primary, then the backups.
  std::vector<Member> HoldersOf(ServerId group) const;
  // Every process that holds rows, once.
  std::vector<Member> Holders() const;
};

// Labels that a worker has met: how many, the least and the largest of them, and, one bit each,
// which of the first 64 `positive` texts of the label's column were among them.
struct LabelTally {
  uint64_t count = 0;
  float least = 0, largest = 0;  // Mean nothing while there are none.
  uint64_t texts = 0;
  void Add(const LabelTally& other) {
    if (other.count == 0) return;
    least = count == 0 ? other.least : std::min(least, other.least);
    largest = count == 0 ? other.largest : std::max(largest, other.largest);
    count += other.count;
    texts |= other.texts;
  }
  friend bool operator==(const LabelTally&, const LabelTally&) = default;
};

// Of a worker that keeps rows, since its process began: keys that its steps named, those whose rows
// were at hand, rows brought in, and the memory of all that may be kept.
struct CacheTally {
  uint64_t lookups = 0, hits = 0, swaps = 0, bytes = 0;
  friend bool operator==(const CacheTally&, const CacheTally&) = default;
};

// Of a worker in a group, since its process began: calls of collectives by kind, the bytes of
// values that they sent from it, and the memory of what it keeps of the dense tensors' optimizer
// state.
struct CollectiveTally {
  uint64_t allreduce_calls = 0, allreduce_bytes = 0;
  uint64_t reduce_scatter_calls = 0, reduce_scatter_bytes = 0;
  uint64_t allgather_calls = 0, allgather_bytes = 0;
  uint64_t state_bytes = 0;
  // Calls use(name, value) for each.
  template <typename Use>
  void ForEach(const Use& use) const {
    use("allreduce_calls", allreduce_calls);
    use("allreduce_bytes", allreduce_bytes);
    use("reduce_scatter_calls", reduce_scatter_calls);
    use("reduce_scatter_bytes", reduce_scatter_bytes);
    use("allgather_calls", allgather_calls);
    use("allgather_bytes", allgather_bytes);
    use("optimizer_state_bytes", state_bytes);
  }
  void TakeMost(const CollectiveTally& other) {
    allreduce_calls = std::max(allreduce_calls, other.allreduce_calls);
    allreduce_bytes = std::max(allreduce_bytes, other.allreduce_bytes);
    reduce_scatter_calls = std::max(reduce_scatter_calls, other.reduce_scatter_calls);
    reduce_scatter_bytes = std::max(reduce_scatter_bytes, other.reduce_scatter_bytes);
    allgather_calls = std::max(allgather_calls, other.allgather_calls);
    allgather_bytes = std::max(allgather_bytes, other.allgather_bytes);
    state_bytes = std::max(state_bytes, other.state_bytes);
  }
  friend bool operator==(const CollectiveTally&, const CollectiveTally&) = default;
};

// A server that has said nothing to a worker for so long, although it was asked.
struct SilentServer {
  PeerId peer;
  int64_t for_ms = 0;
};

struct Heartbeat {
  static constexpr MessageKind kKind = MessageKind::kHeartbeat;
  ViewId view;                 // The newest the sender knows.
  Clock clock = 0;             // Workers: steps finished.
  uint64_t examples = 0;       // Workers: trained on since the start of the process.
  double loss_sum = 0;         // Workers: sum of the losses of those examples.
  double epoch_progress = 0;   // Workers: part of the epoch's bytes read, 0..1.
  uint64_t staleness_max = 0;  // Servers: largest number of clocks a pull was ahead of the slowest.
  CacheTally cache = {};       // Workers.
  uint64_t number = 0;         // Of this process' heartbeats, from 1.
  uint64_t heard = 0;          // The largest number whose answer has come.
  std::string trouble = {};    // For people: what holds this member up; empty: nothing.
  std::vector<SilentServer> silent = {};  // Workers.
  Activity activity = {};
};

// The scheduler's answer; a newer view than the member's is sent after it.
struct HeartbeatAck {
  static constexpr MessageKind kKind = MessageKind::kHeartbeatAck;
  ViewId view;
  uint64_t number = 0;  // Of the heartbeat.
};

// ---- Commands: scheduler -> member -> scheduler.

enum class CommandKind : uint8_t {
  kInitDense = 0,  // Worker 0 of a fresh job: store the initial dense rows at the servers.
  kLoad,           // Servers: load the checkpoint in `path`. Workers: take up at clock `until`.
  kTrain,          // Workers: train `epoch` until clock `until` or the epoch's end, then answer.
  kPause,       // Workers: finish the step at hand; the running kTrain is answered at that clock.
  kStoreDense,  // Worker 0 under allreduce, or all that share the optimizer: store dense rows with
                // state at the servers.
  kEvaluate,    // Workers: score this worker's part of the evaluation data; answer with sections.
  kSave,        // Servers: write snapshots of all own shards into `path`.
  kDigest,      // Servers: digest of all own rows.
  kFinish,      // All: answer, then end with status 0.
  kAwaitSaved,  // Servers: answer once what kSave has taken at clock `until` is in files.
};

// "init_dense", "train", ...: as reasons and logs name a command.
const char* CommandKindName(CommandKind kind);

struct SavedFile {
  std::string name;  // Inside the checkpoint's folder.
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  uint64_t rows = 0;
  std::string pack = {};  // The file that holds it among others, from `offset` on; empty: its own.
  uint64_t offset = 0;
};

// Repeated under the same id until answered; carried out once.
struct Command {
  static constexpr MessageKind kKind = MessageKind::kCommand;
  CommandId id;
  CommandKind command = CommandKind::kFinish;
  Clock until = 0;        // kTrain, kLoad, kSave (the clock of the checkpoint)
  uint32_t epoch = 0;     // kTrain, kLoad
  Clock epoch_start = 0;  // kTrain, kLoad: the clock at which that epoch began.
  std::string path;       // kLoad, kSave: the checkpoint's folder. kLoad without one: begin anew.
  // kSave: only these; none: all of the server. kLoad with `keep`: those that have come.
  std::vector<ShardId> shards;
  bool keep = false;  // kLoad: rows at hand stay, they are of clock `until`; `files` come to them.
  std::vector<SavedFile> files;
  // kSave, not 0: only what changed since the checkpoint of this clock, of shards that know it.
  Clock since = 0;
  // kSave: copying rows is enough to answer; they are written while requests change the originals.
  bool take = false;
  bool next = false;     // kEvaluate: the examples behind those that were answered last.
  double rate = 1;       // kTrain: what all learning rates are multiplied with.
  std::string eval_set;  // kEvaluate: the name of a set of EvalSetsOf(); empty: the first.
  ViewId view;           // Not in the message: of the frame it came in.
};

// What became of rows since their server began or loaded them.
struct RowCounts {
  uint64_t admitted = 0;  // Keys that got a row by an update.
  uint64_t refused = 0;   // Gradients of keys without a row, dropped.
  uint64_t evicted = 0;   // Rows gone for good.
  uint64_t fetched = 0;   // Rows that came back from disk.
  uint64_t on_disk = 0;   // Rows that are there alone now.
  void Add(const RowCounts& other) {
    admitted += other.admitted;
    refused += other.refused;
    evicted += other.evicted;
    fetched += other.fetched;
    on_disk += other.on_disk;
  }
  friend bool operator==(const RowCounts&, const RowCounts&) = default;
};

// Which of the fields are set depends on the command.
struct CommandDone {
  static constexpr MessageKind kKind = MessageKind::kCommandDone;
  CommandId id;
  Code code = Code::kOk;
  std::string message;
  Clock clock = 0;            // kTrain, kPause: steps this worker has finished.
  bool end_of_epoch = false;  // kTrain: the data of the epoch ended at this clock.
  uint64_t examples = 0;      // kTrain: since this command began; kEvaluate: examples scored.
  double loss_sum = 0;        // kTrain, kEvaluate
  uint64_t bad_rows = 0;      // kTrain: rows of the data that were refused and passed over.
  CacheTally cache = {};      // kTrain
  CollectiveTally collectives = {};  // kTrain
  LabelTally label_tally = {};       // kTrain: since this command began; kEvaluate.
  uint64_t digest[2] = {};     // kDigest: sums, so that those of all servers add up to the whole's.
  uint64_t rows = 0;           // kDigest, kSave; of worker 0, kInitDense, kLoad: of an epoch.
  uint64_t row_bytes = 0;      // kDigest: memory of rows and state.
  RowCounts counts;            // kDigest
  uint64_t process_bytes = 0;  // kDigest: the most the process has had in memory; 0: not told.
  std::vector<SavedFile> files;  // kSave, kAwaitSaved
  bool taken = false;            // kSave: there are no files yet, kAwaitSaved will tell of them.
  // kEvaluate, of the next n examples: see ScoredExamples in common/metrics/scored_examples.h.
  Buffer scores;          // float32 [n, tasks]
  Buffer labels;          // float32 [n, tasks]
  Buffer weights;         // float32 [n], or empty: all are 1.
  Buffer groups;          // uint64 [n], or empty.
  bool more = false;      // kEvaluate: examples are left, which Command::next asks for.
  double weight_sum = 0;  // kEvaluate: of the weights of the examples.
  // Workers, of their model: its parameters in dense layers, the rows that these fill at the
  // servers, and what the bits of its results depend on ("avx2 vectors, oneDNN at AVX2").
  uint64_t dense_parameters = 0, dense_rows = 0;
  std::string arithmetic;
};

// A member was told to stop (SIGTERM): the scheduler drains, checkpoints and finishes the job.
struct StopRequest {
  static constexpr MessageKind kKind = MessageKind::kStopRequest;
  std::string reason;
};

// The job cannot go on; the member exits with the status. Of a member: it cannot go on itself.
struct Abort {
  static constexpr MessageKind kKind = MessageKind::kAbort;
  int32_t exit_status = 3;
  std::string message;
  bool member_only = false;  // Of a member: another process in its place may do better.
};

// A small board on the scheduler on which the ranks of a collective find each other.
struct KvPut {
  static constexpr MessageKind kKind = MessageKind::kKvPut;
  std::string key;
  std::string value;
};
struct KvGet {
  static constexpr MessageKind kKind = MessageKind::kKvGet;
  std::string key;
};
struct KvValue {  // Answers both.
  static constexpr MessageKind kKind = MessageKind::kKvValue;
  std::string key;
  bool found = false;
  std::string value;
};

// ---- Codec.

// A frame of the message's kind with envelope and sections set; sender, view and request_id are the
// caller's to fill, and SealFrame is the transport's.
template <typename Message>
Frame EncodeMessage(const Message& message);

// `*message` is whole when the status is ok, and unspecified otherwise. The frame must have passed
// CheckFrame; a frame of another kind is kCorruption.
template <typename Message>
Status DecodeMessage(const Frame& frame, Message* message);

const char* MessageKindName(MessageKind kind);

}  // namespace hdps
