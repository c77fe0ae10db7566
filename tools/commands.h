// The subcommands of hdps: the words of each, its flags, and what it does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct Subcommand {
  std::string name;
  std::string help;   // In a line.
  std::string usage;  // "hdps NAME --flag=VALUE [flags]", and what else is worth saying.
  std::vector<std::string_view> flags;
  Status (*run)();  // Once the flags are read; its status is that of the program.
  // In place of `run`, of one that takes more than flags.
  Status (*run_on)(const std::vector<std::string>& arguments) = nullptr;
};

Subcommand TrainCommand();
Subcommand EvaluateCommand();
Subcommand PredictCommand();
Subcommand InspectCommand();
Subcommand DiffCommand();
Subcommand VerifyCommand();
Subcommand GenerateCommand();
Subcommand DoctorCommand();
Subcommand KeygenCommand();
Subcommand StatusCommand();
Subcommand WhyCommand();
Subcommand ScaleCommand();
Subcommand PlanCommand();
Subcommand PrepareCommand();
Subcommand ReportCommand();

}  // namespace hdps
