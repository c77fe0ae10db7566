// Trains a recorded run again in this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/job/given_job.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "scheduler/report/progress_listener.h"
#include "tools/local_cluster.h"
#include "tools/replay/replay_plan.h"

namespace hdps {

// Checks that the newest checkpoint in the folder for results is the one with which the plan
// begins. Errors: kInvalidArgument if it is another, or is not there.
Status CheckOut(const ReplayPlan& plan, FileSystem& files, const std::string& out);

// Carries out a plan with the nodes of the daemons, whose servers take requests in the recorded
// order. `options` has the job, the folder for results and the threads. Servers and workers have as
// many threads as it says; the bits do not depend on them. Nothing is copied to checkpoint.copy_to.
// Errors: as RunLocalCluster; kInvalidArgument if requests of the record have not come.
Result<ProcessEnd> Replay(const ReplayPlan& plan, LocalClusterOptions options, FileSystem& files,
                          MonotonicClock& clock);

// Compares the digest in `out` with that of the record. Returns a line for people; empty if the
// record has none. Errors: kCorruption if they differ; kInvalidArgument if the number of steps
// does.
Result<std::string> CompareDigests(const ReplayPlan& plan, FileSystem& files,
                                   const std::string& out);

struct ReplayRequest {
  WrittenJob job;
  std::vector<std::string> overrides;  // "key.path=value", as the run had them.
  std::string record, out;
  std::string init;  // As in TrainingRequest, where the run had it; not of safetensors files.
  std::optional<Clock> until;
  int threads = 0;  // As in TrainingRequest.
  std::string log = "info";
  ProgressListener voice;
  const std::atomic<bool>* stop = nullptr;
};

// Does what hdps replay does beside reading flags. Errors: kInvalidArgument if the record, the job
// or a flag is wrong; kCorruption if the run came out otherwise.
Result<ProcessEnd> RunReplay(const ReplayRequest& request, FileSystem& files);

}  // namespace hdps
