// Commands: what the scheduler tells a member to do, and what it answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/tallies.h"

namespace hdps {

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
  // kTrain, kLoad, of worker 0: the files of data.train as they are read, at most kFilePrintsMax.
  std::vector<FilePrint> data_files;
  std::string data_changes;  // kTrain, kEvaluate: what has become of files; for people.
  // Workers, of their model: its parameters in dense layers, the rows that these fill at the
  // servers, and what the bits of its results depend on ("avx2 vectors, oneDNN at AVX2").
  uint64_t dense_parameters = 0, dense_rows = 0;
  std::string arithmetic;
};

}  // namespace hdps
