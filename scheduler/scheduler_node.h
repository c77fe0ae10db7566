// The scheduler: brings the members together, tells them what to do next, and says what came of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/net/node.h"
#include "common/platform/file_system.h"

namespace hdps {

enum class Resume : uint8_t {
  kAuto,   // From the newest whole checkpoint of this job in `out`, else from the beginning.
  kNever,  // From the beginning; refused when `out` already holds a checkpoint.
};

struct SchedulerOptions {
  std::shared_ptr<const Job> job;
  std::string out;  // summary.json, metrics.jsonl and checkpoint/ go here.
  uint32_t num_servers = 1;
  uint32_t num_workers = 1;
  Resume resume = Resume::kAuto;
  bool members_return = true;          // Somebody starts again those that fail.
  uint32_t command_retry_ms = 500;     // An unanswered command is sent again after this long.
  uint32_t report_interval_ms = 1000;  // Between two lines of metrics.jsonl.
  // BootIdentity(): what was written before, and not synced, is there as long as this stays. Empty:
  // everything is synced.
  std::string boot = {};
};

// Where the scheduler's words for people go. Called on the loop thread.
struct ProgressListener {
  // A line worth keeping: who is missing, what was resumed, what was saved, the summary at the end.
  std::function<void(const std::string& line)> notice;
  // What the operator should look at; null: it goes to `notice`, behind "warning: ".
  std::function<void(const std::string& line)> warning;
  // The state of the run in one line, replaced by the next. Null where no one watches: then it goes
  // to `notice` every ten seconds.
  std::function<void(const std::string& line)> progress;

  void Warn(const std::string& line) const {
    if (warning) return warning(line);
    if (notice) notice("warning: " + line);
  }
};

// Its phases follow each other, each a command that is repeated to its members until all have
// answered: rendezvous, load or first values, then train to the next boundary, evaluate, save, ...,
// digest, finish. What comes when is JobPlan's; who is there is Rendezvous' and Membership's.
//
// Invariant: one view a job; a command is sent only after every answer to the one before it has
// come (kPause, which ends a running kTrain, is the exception). A checkpoint's manifest is written
// only after every server has saved. It writes small files only: manifests, metrics, the summary.
class SchedulerNode : public Node {
 public:
  // Looks for checkpoints in `out` and makes its folders. kInvalidArgument when the job does not
  // fit the cluster, or `out` holds the checkpoint of another job; then nothing has been written.
  static Result<std::unique_ptr<SchedulerNode>> Make(const SchedulerOptions& options,
                                                     ProgressListener voice, FileSystem& files);
  ~SchedulerNode() override;

  void OnFrame(PeerId from, Frame frame) override;
  void OnTick(TimeMs now) override;
  Output TakeOutput() override;
  bool done() const override;
  int exit_status() const override;
  const std::string& exit_reason() const override;

  // Drains: the steps at hand are finished, the job is saved and ends with status 0.
  void RequestStop(const std::string& reason) override;
  // The job cannot go on for a reason from outside the cluster: everyone who came is told.
  void Fail(int exit_status, const std::string& reason);

 private:
  struct Impl;
  explicit SchedulerNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
