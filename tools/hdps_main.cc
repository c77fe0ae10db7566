// hdps: one command, and its subcommands.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/process/command_line.h"
#include "tools/commands.h"

namespace {

struct Command {
  const char* name;
  const char* help;
  int (*main)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"train", "train a job: scheduler, servers and workers in this one process", hdps::TrainMain},
    {"evaluate", "AUC and logloss of a checkpoint over files", hdps::EvaluateMain},
    {"predict", "one probability a line for every row of files", hdps::PredictMain},
    {"inspect", "what a checkpoint holds: tables, rows, bytes, clock, digest", hdps::InspectMain},
    {"generate", "write a synthetic click log with a known best AUC", hdps::GenerateMain},
    {"status", "how the job of a running scheduler is", hdps::StatusMain},
    {"plan", "how fast a job would train on a cluster, and what would bound it", hdps::PlanMain},
};

void PrintHelp(std::FILE* to) {
  std::fprintf(to,
               "hdps trains recommendation models on a parameter server.\n"
               "usage: hdps COMMAND [flags]      hdps COMMAND --help tells a command's flags\n\n");
  for (const Command& command : kCommands) {
    std::fprintf(to, "  %-10s %s\n", command.name, command.help);
  }
  std::fprintf(
      to,
      "  %-10s this list\n\n"
      "example:\n"
      "  hdps train --job=examples/census/census.json --out=out/census --workers=2\n\n"
      "A cluster of many machines is run by hdps-scheduler, hdps-server and hdps-worker.\n",
      "help");
}

}  // namespace

int main(int argc, char** argv) {
  hdps::KeepFreedMemory();
  hdps::RefuseTooLargeFiles();
  const std::string name = argc > 1 ? argv[1] : "";
  if (name.empty() || name == "help" || name == "--help" || name == "-h") {
    PrintHelp(stdout);
    return hdps::kExitDone;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.main(argc - 1, argv + 1);
  }
  if (name == "--version" || name == "-version") {
    const hdps::Status version = hdps::ParseCommandLine("hdps", &argc, &argv);
    return hdps::ReportAndExitStatus("hdps", version);
  }
  std::vector<std::string> known;
  std::string list;
  for (const Command& command : kCommands) {
    known.push_back(command.name);
    list += (list.empty() ? "" : ", ") + std::string(command.name);
  }
  return hdps::ReportAndExitStatus(
      "hdps", {hdps::Code::kInvalidArgument, "unknown command '" + name + "'" +
                                                 hdps::DidYouMean(name, known) +
                                                 "; the commands are " + list});
}
