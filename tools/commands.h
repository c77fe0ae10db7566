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
};

Subcommand TrainCommand();
Subcommand EvaluateCommand();
Subcommand PredictCommand();
Subcommand InspectCommand();
Subcommand GenerateCommand();
Subcommand StatusCommand();
Subcommand ScaleCommand();
Subcommand PlanCommand();

}  // namespace hdps
