// Runs hdps: one command with subcommands.
#include <algorithm>
#include <string>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/process/command_line.h"
#include "common/process/description.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/common_flags.h"

namespace {

void PrintHelp(const std::vector<hdps::Subcommand>& commands) {
  hdps::PrintOut(
      "hdps trains recommendation models on a parameter server.\n"
      "usage: hdps COMMAND [flags]      hdps COMMAND --help tells a command's flags\n\n");
  for (const hdps::Subcommand& command : commands) {
    hdps::PrintOut("  %-10s %s\n", command.name.c_str(), command.help.c_str());
  }
  hdps::PrintOut(
      "  %-10s this list\n\n"
      "example:\n"
      "  hdps train --job=examples/census/census.json --out=out/census --workers=2\n\n"
      "A cluster of many machines is run by hdps-scheduler, hdps-server and\n"
      "hdps-worker.\n",
      "help");
}

std::string UsageOf(const hdps::Subcommand& command) {
  return "hdps " + command.name + ": " + command.help + "\nusage: " + command.usage;
}

int Run(const hdps::Subcommand& command, int argc, char** argv) {
  const std::string program = "hdps " + command.name;
  std::vector<std::string> arguments;
  const bool takes_settings = std::ranges::count(command.flags, "set") > 0;
  hdps::Status status = hdps::ParseCommandLine(
      UsageOf(command), &argc, &argv, command.run_on == nullptr ? nullptr : &arguments,
      command.flags, takes_settings ? hdps::SettingNamed : hdps::FlagHint());
  if (status.ok()) status = command.run_on == nullptr ? command.run() : command.run_on(arguments);
  return hdps::ReportAndExitStatus(program, status);
}

}  // namespace

int main(int argc, char** argv) {
  hdps::EndWhereMemoryIsFull(argc > 1 ? std::string("hdps ") + argv[1] : "hdps");
  hdps::KeepFreedMemory();
  hdps::RefuseTooLargeFiles();
  hdps::AllowManyFiles();
  const std::vector<hdps::Subcommand> commands = {
      hdps::TrainCommand(),    hdps::EvaluateCommand(), hdps::PredictCommand(),
      hdps::InspectCommand(),  hdps::DiffCommand(),     hdps::VerifyCommand(),
      hdps::GenerateCommand(), hdps::DoctorCommand(),   hdps::KeygenCommand(),
      hdps::MemberCommand(),   hdps::StatusCommand(),   hdps::ScaleCommand(),
      hdps::PlanCommand(),     hdps::PrepareCommand(),  hdps::ReportCommand(),
      hdps::WhyCommand(),      hdps::ExportCommand(),   hdps::ServeCommand(),
      hdps::TraceCommand(),    hdps::DeployCommand(),   hdps::ReplayCommand()};
  const std::string name = argc > 1 ? argv[1] : "";
  if (name.empty() || name == "help" || name == "--help" || name == "-h") {
    PrintHelp(commands);
    return hdps::kExitDone;
  }
  if (name == "--describe") {
    for (const hdps::Subcommand& command : commands) {
      hdps::PrintDescription(UsageOf(command), command.flags, command.run_on != nullptr);
    }
    return hdps::kExitDone;
  }
  std::vector<std::string> known;
  std::string list;
  for (const hdps::Subcommand& command : commands) {
    if (name == command.name) return Run(command, argc - 1, argv + 1);
    known.push_back(command.name);
    list += (list.empty() ? "" : ", ") + command.name;
  }
  if (name == "--version" || name == "-version") {
    const hdps::Status version = hdps::ParseCommandLine("hdps", &argc, &argv);
    return hdps::ReportAndExitStatus("hdps", version);
  }
  return hdps::ReportAndExitStatus(
      "hdps", {hdps::Code::kInvalidArgument, "unknown command '" + name + "'" +
                                                 hdps::DidYouMean(name, known) +
                                                 "; the commands are " + list});
}
