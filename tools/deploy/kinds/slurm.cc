// Prints a batch script of Slurm: one step, in which each task is a member of the job.
#include <algorithm>
#include <filesystem>
#include <string>

#include "common/base/shell_word.h"
#include "tools/deploy/deploy_kind.h"

namespace hdps {
namespace {

// The script may be submitted from any folder.
std::string Absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string Print(const Deployment& d) {
  const uint32_t tasks = 1 + d.servers + d.workers;
  // All tasks of a step get as much.
  const uint32_t cores = std::max(d.server.cores, d.worker.cores);
  constexpr uint64_t kMib = 1 << 20;
  const uint64_t bytes =
      std::max({d.scheduler.limit_bytes, d.server.limit_bytes, d.worker.limit_bytes});
  const uint64_t mib_per_core = (bytes / cores + kMib - 1) / kMib;
  const std::string out = ShellWord(Absolute(d.out));
  std::string flags = " --job=" + ShellWord(Absolute(d.job_path)) + " --out=" + out +
                      " --servers=" + std::to_string(d.servers) +
                      " --workers=" + std::to_string(d.workers);
  if (!d.set.empty()) flags += " --set=" + ShellWord(d.set);
  if (d.insecure) flags += " --insecure";
  if (d.insecure_collective) flags += " --insecure_collective";
  const auto option = [](const std::string& text) { return "#SBATCH --" + text + "\n"; };
  return "#!/bin/bash\n"
         "# Trains one job of hdps under Slurm 20.11 or later: sbatch --time=LIMIT [--nodes=N] "
         "FILE\n"
         "# Before its time is over it is saved and put back, and goes on where it was. scancel\n"
         "# --signal=TERM does the same, and scancel alone ends it. All nodes see the job file, "
         "its\n"
         "# data and --out. On several nodes export HDPS_KEYS, the folder of hdps keygen.\n" +
         option("job-name=" + d.name) + option("ntasks=" + std::to_string(tasks)) +
         option("cpus-per-task=" + std::to_string(cores)) +
         option("mem-per-cpu=" + std::to_string(mib_per_core) + "M") +
         (d.worker.gpus == 0 ? "" : option("gpus=" + std::to_string(d.worker.gpus * d.workers))) +
         option("signal=TERM@120") + option("requeue") + option("open-mode=append") + "out=" + out +
         "\n"
         "srun --kill-on-bad-exit=1 --ntasks=" +
         std::to_string(tasks) + " \"${HDPS_PROGRAM:-hdps}\" member" + flags +
         "\n"
         "status=$?\n"
         "if ((status == 0)) && grep -q '\"stopped_at\": *[^n ]' \"$out/summary.json\"; then\n"
         "  exec scontrol requeue \"$SLURM_JOB_ID\"\n"
         "fi\n"
         "exit \"$status\"\n";
}

}  // namespace

DeployKind SlurmKind() {
  return {.name = "slurm",
          .help = "a batch script of Slurm 20.11 or later",
          .kubernetes = false,
          .print = Print};
}

}  // namespace hdps
