// Runs a whole cluster in one process: the nodes of the daemons, one thread each.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/job/words/setting_origin.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "scheduler/plan/resume.h"
#include "scheduler/report/progress_listener.h"
#include "worker/step/step_report.h"

namespace hdps {

class MemberWatch;
class OrderGate;
struct Job;
struct JobPicture;
struct RoundScript;
struct RunTrace;
template <typename T>
class Published;

struct LocalClusterOptions {
  std::shared_ptr<const Job> job;
  std::string given_job = {};  // As in SchedulerOptions.
  std::string out;
  uint32_t num_servers = 1, num_workers = 1;
  int threads = 0;  // Threads of each server and each worker; 0: one per core.
  Resume resume = Resume::kAuto;
  std::string init = {};     // As in SchedulerOptions.
  bool tensorboard = false;  // The same.
  // notice() is also called on the thread of worker 0 if the job has train.log_every_steps.
  ProgressListener voice;
  const std::atomic<bool>* stop = nullptr;  // Drains the job when it becomes true; may be null.
  // Ends the job with status 3 and without saving it when it becomes true; may be null.
  const std::atomic<bool>* end_now = nullptr;
  // Runs after each step of each worker, on that worker's thread; may be empty.
  std::function<void(WorkerId, const StepReport&)> after_step;
  // Returns who gets copies of a member's figures; null: nobody. May be empty. Called on the
  // member's thread.
  std::function<MemberWatch*(Role, uint32_t rank)> watch;
  // As in SchedulerOptions.
  std::shared_ptr<Published<JobPicture>> pictures = nullptr;
  std::vector<SettingOrigin> settings = {};
  std::string resume_command = {};
  std::function<void()> accepted;  // Called once the job is found right; may be empty.
  // Records the first `trace_steps` steps of all members; null: no trace.
  RunTrace* trace = nullptr;
  uint64_t trace_steps = 0;
  // A replayed run: where it stops, in which order each server takes requests, and for which steps
  // each worker does not ask ahead; see tools/replay. Null and empty: there is none.
  const RoundScript* script = nullptr;
  std::function<OrderGate*(ServerId)> gate = {};
  std::vector<std::set<Clock>> asked_whole = {};
  std::string record = {};  // Folder for the record of this run; empty: none is written.
};

// Runs the job to its end with the same state machines as the daemons, connected in memory. The
// calling thread becomes the scheduler's. Returns kInvalidArgument as SchedulerNode::Make does.
Result<ProcessEnd> RunLocalCluster(const LocalClusterOptions& options, FileSystem& files,
                                   MonotonicClock& clock);

}  // namespace hdps
