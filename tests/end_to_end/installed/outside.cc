// Trains a job with the installed library, from a program outside the project.
#include <atomic>
#include <iostream>
#include <memory>

#include "common/job/job.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "tools/local_cluster.h"

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
  return 0;
}
