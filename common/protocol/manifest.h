// The list that makes a set of snapshots a checkpoint: written last, it names every file and
// checksum, and of a delta the checkpoint that it builds on.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/watch_state.h"

namespace hdps {

inline constexpr Clock kNoClock = -1;

// checkpoint/step_0000000120/ holds the snapshots of clock 120 and manifest.json.
//
// A full checkpoint holds every row. A delta holds what changed since the checkpoint before it,
// full or delta, which it names by clock and by the checksum of its manifest, and which lies beside
// it; of some shards it may hold every row.
// What the workers of a job have trained on, and the sum of its losses.
struct TrainedSums {
  uint64_t examples = 0;
  double loss_sum = 0;
};

// A setting that the operator has changed on the way from a checkpoint (--resume=changed).
struct SettingChange {
  Clock clock = 0;  // Of the checkpoint: steps behind it are trained with the new value.
  std::string setting, from, to;
  friend bool operator==(const SettingChange&, const SettingChange&) = default;
};

struct Manifest {
  std::string job_name;
  uint64_t job_digest = 0;
  uint64_t tables_digest = 0;
  uint32_t num_shards = 0;
  Clock clock = 0;
  uint32_t epoch = 0;  // The epoch `clock` lies in, and the clock at which it began.
  Clock epoch_start = 0;
  uint64_t examples = 0;  // Trained on up to here, over all workers.
  // Of that epoch and the one before it, and rows of the data that were refused; zero in
  // checkpoints of versions that did not say.
  TrainedSums epoch_sums, last_epoch_sums;
  uint64_t bad_rows = 0;
  // Admitted, refused and evicted up to here; zero likewise. The others are not kept.
  RowCounts row_counts;
  std::vector<SettingChange> changes;  // Since the first step, in their order.
  Watched watched;  // Of the evaluations up to here; as new in checkpoints of versions without it.
  // What the bits depend on beside the job, of the workers since the last start, each once (as
  // CommandDone has it); empty in checkpoints of versions that did not say.
  std::vector<std::string> arithmetic;
  // The files of data.train as that epoch reads them; empty in checkpoints of versions that did not
  // say.
  std::vector<FilePrint> data_files;
  std::string job_json;          // PrintJob() of the job that wrote it.
  std::vector<SavedFile> files;  // One per shard, by name; some may lie in a pack together.
  Clock base_clock = kNoClock;   // Of a delta: what it builds on.
  uint64_t base_checksum = 0;

  bool is_delta() const { return base_clock != kNoClock; }
};
// What stands in the file as the checksum of all else in it.
uint64_t ManifestChecksum(const Manifest& manifest);

// How the names of files end that hold what changed of a shard, and not all of it.
inline constexpr const char* kDeltaEnding = ".delta";
inline bool HoldsChanges(const SavedFile& file) { return file.name.ends_with(kDeltaEnding); }

inline constexpr const char* kManifestName = "manifest.json";

std::string CheckpointName(Clock clock);  // "step_0000000120"

// Writes manifest.json into `folder` atomically: after this the checkpoint exists. A full one then
// survives a crash of the machine, as do its files; of a delta the reader finds out.
Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest);
// kNotFound without a manifest; kCorruption when it is broken (its own checksum, fields, ranges).
Result<Manifest> ReadManifest(FileSystem& files, const std::string& folder);

// What a checkpoint consists of: a full one and the deltas on it, each on the one before; of a full
// one itself alone.
struct CheckpointPart {
  std::string folder;
  Manifest manifest;
};
// The parts of the checkpoint in `folder`, which is the last of them: every manifest is checked,
// and that each names the one before it; no other file is read. Failures as of ReadManifest, with
// the name of the part.
Result<std::vector<CheckpointPart>> ReadChain(FileSystem& files, const std::string& folder);

// A complete checkpoint under `root` whose files are all there with the right length and checksum,
// as are those of all its parts.
struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;
  std::vector<std::string> refused;  // Newer ones that did not verify: "FOLDER: reason" each.
  std::vector<CheckpointPart> chain = {};
  // Where it was taken because it is the best: the clock of the newest.
  Clock newest = kNoClock;
};
// The newest one of a clock below `before` that verifies. kNotFound when `root` has none (the
// message lists the refused).
Result<FoundCheckpoint> FindCheckpoint(FileSystem& files, const std::string& root,
                                       Clock before = std::numeric_limits<Clock>::max());
// What an operator calls a checkpoint: its own folder (verified; kCorruption when broken), a folder
// of checkpoints, or the --out of a run (the newest that verifies). kNotFound says what was looked
// for.
Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path);

// Where the bytes of `saved` begin: its own file, or its place in a pack. What is read ends with
// the file, or behind its place. Messages about it begin with PlaceOf().
Result<std::unique_ptr<SequentialFile>> OpenSaved(FileSystem& files, const std::string& folder,
                                                  const SavedFile& saved);
std::string PlaceOf(const std::string& folder, const SavedFile& saved);
// Reads every file of it, but none of another part, and compares length and checksum; each byte of
// a pack must be of one of its files. kCorruption names the file.
Status VerifyCheckpoint(FileSystem& files, const std::string& folder, const Manifest& manifest);
// HashBytes over the whole file, read as a stream, and its length: what SavedFile holds.
Result<SavedFile> ChecksumFile(FileSystem& files, const std::string& folder,
                               const std::string& name);
// Which of the checkpoints of a run: the newest that verifies, or the one whose evaluation was
// best, as the newest says, where that is there and whole; else the newest.
enum class WhichCheckpoint : uint8_t { kBest, kNewest };
// The same, of a folder of checkpoints or the --out of a run; its own folder is what it is.
Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which);

// Removes all but the newest `keep` complete full checkpoints (at least one stays), the deltas
// since the oldest of those, the one of clock `best`, and what any that stays builds on; so also
// every incomplete one that is older than the newest that stays.
Status PruneCheckpoints(FileSystem& files, const std::string& root, uint32_t keep,
                        Clock best = kNoClock);

// Removes the folders with the name of a checkpoint that have no manifest: what saves have left
// behind that never ended. For where nobody is saving. Returns how many there were.
Result<size_t> RemoveUnfinished(FileSystem& files, const std::string& root);

}  // namespace hdps
