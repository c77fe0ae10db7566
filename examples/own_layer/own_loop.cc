// A training loop of one's own: this program drives the steps, and does something every k of them.
#include <cstdlib>
#include <iostream>
#include <memory>

#include "common/job/job.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "tools/stepped_run.h"

int main(int argc, char** argv) {
  const long every = argc == 4 ? std::strtol(argv[3], nullptr, 10) : 0;
  if (every < 1) {
    std::cerr << "usage: own_loop JOB OUT EVERY\n";
    return 2;
  }
  if (!hdps::StartLogging("own_loop", "", "warning").ok()) return 3;  // Onto the terminal.
  const std::unique_ptr<hdps::FileSystem> files = hdps::NewPosixFileSystem();
  const std::unique_ptr<hdps::MonotonicClock> clock = hdps::NewSystemClock();
  hdps::Result<hdps::Job> job = hdps::LoadJob(*files, argv[1], {});
  if (!job.ok()) {
    std::cerr << "own_loop: error: " << job.status().message() << "\n";
    return 2;
  }
  hdps::LocalClusterOptions options;
  options.job = std::make_shared<const hdps::Job>(*std::move(job));
  options.out = argv[2];
  options.num_workers = 2;
  hdps::SteppedRun run(options, *files, *clock);

  double loss_sum = 0;
  uint64_t examples = 0;
  while (const auto reports = run.Step()) {  // Nothing else trains until the next call.
    for (const hdps::StepReport& report : *reports) {
      loss_sum += report.loss_sum;
      examples += report.examples;
    }
    const hdps::StepReport& first = reports->front();
    if (first.clock % every != 0) continue;
    std::cout << "epoch " << first.epoch + 1 << " step " << first.clock << " loss "
              << loss_sum / static_cast<double>(examples) << "\n";
    loss_sum = 0;
    examples = 0;
  }
  const hdps::Result<hdps::ProcessEnd> end = run.Finish();
  if (!end.ok() || end->status != 0) {
    std::cerr << "own_loop: error: " << (end.ok() ? end->reason : end.status().message()) << "\n";
    return 3;
  }
  return 0;
}
