// The list that makes a set of snapshots a checkpoint: written last, it names every file and
// checksum.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/messages.h"

namespace hdps {

// checkpoint/step_0000000120/ holds the snapshots of clock 120 and manifest.json.
struct Manifest {
  std::string job_name;
  uint64_t job_digest = 0;
  uint64_t tables_digest = 0;
  uint32_t num_shards = 0;
  Clock clock = 0;
  uint32_t epoch = 0;  // The epoch `clock` lies in, and the clock at which it began.
  Clock epoch_start = 0;
  uint64_t examples = 0;  // Trained on up to here, over all workers.
  // What the bits depend on beside the job, of the workers since the last start, each once (as
  // CommandDone has it); empty in checkpoints of versions that did not say.
  std::vector<std::string> arithmetic;
  std::string job_json;          // PrintJob() of the job that wrote it.
  std::vector<SavedFile> files;  // One per shard, by name.
};

inline constexpr const char* kManifestName = "manifest.json";

std::string CheckpointName(Clock clock);  // "step_0000000120"

// Writes manifest.json into `folder` atomically: after this the checkpoint exists.
Status WriteManifest(FileSystem& files, const std::string& folder, const Manifest& manifest);
// kNotFound without a manifest; kCorruption when it is broken (its own checksum, fields, ranges).
Result<Manifest> ReadManifest(FileSystem& files, const std::string& folder);

// A complete checkpoint under `root` whose files are all there with the right length and checksum.
struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;
  std::vector<std::string> refused;  // Newer ones that did not verify: "FOLDER: reason" each.
};
// The newest one of a clock below `before` that verifies. kNotFound when `root` has none (the
// message lists the refused).
Result<FoundCheckpoint> FindCheckpoint(FileSystem& files, const std::string& root,
                                       Clock before = std::numeric_limits<Clock>::max());
// What an operator calls a checkpoint: its own folder (verified; kCorruption when broken), a folder
// of checkpoints, or the --out of a run (the newest that verifies). kNotFound says what was looked
// for.
Result<FoundCheckpoint> OpenCheckpoint(FileSystem& files, const std::string& path);

// Reads every file of it and compares length and checksum. kCorruption names the file.
Status VerifyCheckpoint(FileSystem& files, const std::string& folder, const Manifest& manifest);
// HashBytes over the whole file, read as a stream, and its length: what SavedFile holds.
Result<SavedFile> ChecksumFile(FileSystem& files, const std::string& folder,
                               const std::string& name);
// Removes all but the newest `keep` complete checkpoints (at least one stays), and every incomplete
// one older than those.
Status PruneCheckpoints(FileSystem& files, const std::string& root, uint32_t keep);

}  // namespace hdps
