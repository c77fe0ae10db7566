// Lists the subcommands of hdps: name, flags and function of each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Subcommand {
  std::string name;
  std::string help;  // One line.
  // "hdps NAME --flag=VALUE [flags]", and more lines of usage if needed.
  std::string usage;
  std::vector<std::string_view> flags;
  Status (*run)();  // Runs after the flags are read; its status becomes the program's.
  // Takes the place of `run` in a command that has arguments besides flags.
  Status (*run_on)(const std::vector<std::string>& arguments) = nullptr;
};

Subcommand TrainCommand();
Subcommand EvaluateCommand();
Subcommand PredictCommand();
Subcommand ServeCommand();
Subcommand InspectCommand();
Subcommand DiffCommand();
Subcommand VerifyCommand();
Subcommand GenerateCommand();
Subcommand DoctorCommand();
Subcommand KeygenCommand();
Subcommand MemberCommand();
Subcommand StatusCommand();
Subcommand WhyCommand();
Subcommand ScaleCommand();
Subcommand PlanCommand();
Subcommand PrepareCommand();
Subcommand ReportCommand();
Subcommand ReplayCommand();
Subcommand TraceCommand();
Subcommand ExportCommand();
Subcommand DeployCommand();

}  // namespace hdps
