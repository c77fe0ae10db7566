// Copies of a run's checkpoints in object storage, made by rclone beside training.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/node.h"
#include "common/platform/file_system.h"
#include "common/platform/programs/program.h"
#include "common/protocol/manifest.h"

namespace hdps {

struct CheckpointSpec;

// One program runs at a time, and nobody waits for it. The newest checkpoint is copied first, part
// by part from the full one on; then copies go whose checkpoints the run has removed; then others
// of the run are copied. Each folder gets its manifest last, and loses it first. A failure is told,
// and tried again at the next save.
//
// Invariant: what this object has done to the folder there leaves in it, at every moment, a
// checkpoint that can be restored, from the first whole copy on.
class CheckpointCopies {
 public:
  struct Figures {
    std::optional<Clock> step;  // Of the newest checkpoint that is there.
    double seconds = 0;         // That the last copy of a checkpoint, or of a delta, has taken.
    uint64_t failures = 0;
  };

  // Copies the checkpoints in the folder `root`. Does nothing if `settings` name no place, or
  // without `programs`. Requires: `files` and `programs` outlive it.
  CheckpointCopies(FileSystem& files, Programs* programs, std::string root,
                   const CheckpointSpec& settings);
  ~CheckpointCopies();

  // Asks rclone for the folder there at the beginning of a run, and waits for the answer. `newest`
  // is the run's newest checkpoint, if it has one. Errors: kInvalidArgument if there is no rclone
  // or no such remote, or if a run without a checkpoint finds one there or cannot look. Otherwise
  // TakeWarnings() has what is wrong.
  Status CheckStart(const std::optional<FoundCheckpoint>& newest);

  // Goes on; `saves` counts the checkpoints that the run has completed.
  void OnTick(uint64_t saves, TimeMs now);
  // Says that no more saves come: what is left is copied, and failures are tried again, until the
  // time of checkpoint.copy_wait_s is over. Returns a line about it; empty if all is there.
  std::string Finish(TimeMs now);
  // Is true from Finish() on until everything is there or the time is over.
  bool awaited() const { return ends_at_ && !idle(); }
  // Returns what the end of the wait has brought, for the operator.
  std::string Done() const;
  // Ends a copy that is under way, and returns a warning about it; empty if there was none.
  std::string BreakOff();

  // Checkpoints that must stay in `root` until they are copied.
  const std::set<Clock>& held() const { return held_; }
  std::vector<std::string> TakeWarnings() { return std::exchange(warnings_, {}); }
  // Returns the progress of the copy that is under way; empty if there is none.
  std::string Progress() const;
  // Returns the failure that the next try has not mended yet; empty if there is none.
  const std::string& trouble() const { return trouble_; }
  const Figures& figures() const { return figures_; }

 private:
  enum class Step : uint8_t { kCompare, kUncover, kFiles, kManifest, kUnlist, kPurge };
  // A checkpoint of the run.
  struct Local {
    uint64_t checksum = 0;  // Of its manifest.
    std::optional<Clock> base;
    uint64_t base_checksum = 0;
  };
  // A task copies, or removes, the folder of one checkpoint.
  struct Task {
    Step step = Step::kCompare;
    Clock clock = 0;
    uint64_t checksum = 0;
    std::string manifest = {};  // Its text, as it was when the copy began.
    TimeMs began = 0;
    std::string command = {};  // What runs, for the operator.
  };

  bool on() const { return programs_ != nullptr && !copy_to_.empty(); }
  // Remembers that the folder there is this run's; reads whether it is.
  void NoteOwn() const;
  bool IsOwn() const;
  bool idle() const { return !on() || (!task_ && !due_ && !again_at_); }
  std::map<Clock, Local> ReadLocal() const;
  // Returns the clocks that the checkpoint consists of, from the full one on; empty if some of it
  // is missing.
  static std::vector<Clock> ChainOf(const std::map<Clock, Local>& local, Clock clock);
  // Begins the next task, if there is one.
  void Choose(TimeMs now);
  bool CopyPartOf(const std::map<Clock, Local>& local, Clock clock, TimeMs now);
  void BeginCopy(Clock clock, uint64_t checksum, TimeMs now);
  void Run(Step step, TimeMs now);
  std::vector<std::string> WordsOf(Step step) const;
  void OnEnd(const ProgramEnd& end, TimeMs now);
  void OnCompared(const ProgramEnd& end, TimeMs now);
  void Copied(TimeMs now);
  void Fail(const std::string& fault, TimeMs now);
  // Is false if the run has removed or replaced the checkpoint since the task began.
  bool Unchanged() const;
  std::string LocalFolder(Clock clock) const;
  std::string FolderThere(Clock clock) const;

  FileSystem& files_;
  Programs* const programs_;
  const std::string root_, copy_to_;
  const TimeMs wait_ms_;
  uint64_t saves_ = 0;
  bool due_ = true;  // Something may be left to do.
  std::optional<Task> task_;
  std::unique_ptr<RunningProgram> program_;  // Exists while there is a task.
  std::set<Clock> left_;                     // Folders there of a former process of this run.
  std::map<Clock, uint64_t> there_;  // Checksums of the manifests that this process knows there.
  std::set<Clock> held_;
  std::optional<TimeMs> ends_at_;   // Set by Finish().
  std::optional<TimeMs> again_at_;  // When a failure is tried again, after Finish() alone.
  TimeMs again_ms_ = 0;
  std::string trouble_;
  std::vector<std::string> warnings_;
  Figures figures_;
};

}  // namespace hdps
