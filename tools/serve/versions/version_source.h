// The checkpoints of a folder as versions of a model: which is wanted, and what lies between it and
// the one at hand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"

namespace hdps {

// The version that a model shall have: the newest or best one as they come, or always `step`.
struct WantedVersion {
  WhichCheckpoint which = WhichCheckpoint::kNewest;
  Clock step = kNoClock;
};
// Reads "newest", "best" or a step. kInvalidArgument names the flag --which.
Result<WantedVersion> ParseWantedVersion(const std::string& text);

// Returns the steps with commas between them, or "none".
std::string ListedSteps(const std::vector<Clock>& steps);

// Tells checkpoints apart: a run that went back writes another one of the same clock.
struct VersionMark {
  Clock clock = kNoClock;
  uint64_t checksum = 0;  // Of its manifest.
  friend bool operator==(const VersionMark&, const VersionMark&) = default;
};

// Looks at a folder again and again. Reads manifests and no other file. For use by one thread,
// except for Has().
class VersionSource {
 public:
  // `path` is what OpenCheckpoint takes. A checkpoint's own folder is the only version there is.
  VersionSource(FileSystem& files, const std::string& path);

  // The files in the folders of a checkpoint and of what it builds on.
  struct ChainStamps {
    std::vector<std::string> folders;
    std::vector<std::pair<std::string, FileStamp>> files;
  };

  // Returns whether the folder's finished checkpoints, or the files of those that were refused,
  // differ from those of the call before. It takes one call to the file system for each of them,
  // and reads none.
  bool Look();
  // Returns the files of a checkpoint as they are now.
  ChainStamps StampsOf(Clock clock) const;
  // Notes that a checkpoint was refused whose files were so before they were read: Look() tells
  // when one of them is another, as after a repair.
  void NoteRefused(Clock clock, ChainStamps before) { refused_[clock] = std::move(before); }
  // Forgets what was refused up to the version that was taken: what is newer may still be repaired.
  void ForgetRefused(Clock taken) { refused_.erase(refused_.begin(), refused_.upper_bound(taken)); }
  // The clocks of the finished checkpoints that Look() found, newest first.
  const std::vector<Clock>& clocks() const { return clocks_; }
  bool Has(Clock clock) const;  // Asks the file system.

  // Returns the clocks to try, the first that can be loaded being the one that is wanted. The best
  // one is that of the newest manifest's record; it is followed by others only while there is
  // nothing `at_hand`.
  std::vector<Clock> Candidates(const WantedVersion& wanted, Clock at_hand) const;

  std::string FolderOf(Clock clock) const;
  // Returns the mark of a checkpoint. kNotFound if its manifest is not there (any more);
  // kCorruption if that is damaged or of another clock.
  Result<VersionMark> MarkOf(Clock clock) const;
  // Returns the deltas that bring `from` to the checkpoint of `clock`, in order. Returns none if it
  // is not made of `from` and deltas, or if a manifest on the way cannot be read: who loads the
  // whole chain then hears why.
  std::vector<CheckpointPart> DeltasFrom(const VersionMark& from, Clock clock) const;

 private:
  std::vector<std::pair<std::string, FileStamp>> FilesIn(
      const std::vector<std::string>& folders) const;

  FileSystem& files_;
  const bool alone_;        // The path is a checkpoint's own folder.
  const std::string root_;  // That, or the folder of checkpoints.
  std::vector<Clock> clocks_;
  std::vector<std::pair<Clock, FileStamp>> seen_;  // The manifests.
  std::map<Clock, ChainStamps> refused_;
};

}  // namespace hdps
