// Trains with an optimizer that this program adds, lion.h, from a job file that names it, on one
// process with servers and workers inside.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/job/job_registry.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "embedding/own_optimizer.h"
#include "lion.h"
#include "tools/local_cluster.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: own_optimizer JOB OUT [KEY=VALUE...]\n";
    return 2;
  }
  hdps::JobRegistry registry = hdps::BuiltInRegistry();
  const hdps::Status added = registry.optimizers.Add(hdps::OwnOptimizer<Lion>());
  if (!hdps::StartLogging("own_optimizer", "", "warning").ok()) return 3;  // Onto the terminal.
  const std::unique_ptr<hdps::FileSystem> files = hdps::NewPosixFileSystem();
  const std::unique_ptr<hdps::MonotonicClock> clock = hdps::NewSystemClock();
  const std::vector<std::string> overrides(argv + 3, argv + argc);
  hdps::Result<hdps::Job> job =
      hdps::LoadJob(*files, argv[1], overrides, hdps::DataFiles::kMustExist, registry);
  if (!added.ok() || !job.ok()) {
    std::cerr << "own_optimizer: error: " << (added.ok() ? job.status() : added).message() << "\n";
    return 2;
  }
  hdps::LocalClusterOptions options;
  options.job = std::make_shared<const hdps::Job>(*std::move(job));
  options.out = argv[2];
  options.num_workers = 2;
  options.num_servers = 2;
  const hdps::Result<hdps::ProcessEnd> end = hdps::RunLocalCluster(options, *files, *clock);
  if (!end.ok() || end->status != 0) {
    std::cerr << "own_optimizer: error: " << (end.ok() ? end->reason : end.status().message())
              << "\n";
    return end.ok() ? end->status : 3;
  }
  std::cout << "trained with an optimizer of its own: " << argv[2] << "/summary.json\n";
  return 0;
}
