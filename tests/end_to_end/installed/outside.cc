// Trains a job with the installed library, from a program outside the project; then a step by hand,
// whose workers have ranks.
#include <atomic>
#include <iostream>
#include <memory>

#include "common/job/job.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "tools/local_cluster.h"
#include "tools/stepped_run.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: outside JOB OUT\n";
    return 2;
  }
  const std::unique_ptr<hdps::FileSystem> files = hdps::NewPosixFileSystem();
  const std::unique_ptr<hdps::MonotonicClock> clock = hdps::NewSystemClock();
  hdps::Result<hdps::Job> job = hdps::LoadJob(*files, argv[1], {"train.max_steps=3"});
  if (!job.ok()) {
    std::cerr << job.status().message() << "\n";
    return 2;
  }
  std::atomic<int> steps = 0;
  hdps::LocalClusterOptions options;
  options.job = std::make_shared<const hdps::Job>(*std::move(job));
  options.out = argv[2];
  options.after_step = [&steps](hdps::WorkerId, const hdps::StepReport&) { ++steps; };
  const auto done = hdps::RunLocalCluster(options, *files, *clock);
  if (!done.ok() || done->status != 0) {
    std::cerr << (done.ok() ? done->reason : done.status().message()) << "\n";
    return 3;
  }
  std::cout << "steps " << steps << "\n";

  options.after_step = nullptr;
  options.out += "_ranks";
  options.num_workers = 3;
  hdps::SteppedRun run(options, *files, *clock);
  std::cout << "before: " << run.rank({0}).status().message() << "\n";
  if (!run.Step().has_value()) return 3;
  for (uint32_t worker = 0; worker < options.num_workers; ++worker) {
    std::cout << "rank " << *run.rank({worker}) << " of " << *run.group_size() << "\n";
  }
  return 0;
}
