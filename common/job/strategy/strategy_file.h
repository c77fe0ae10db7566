// A strategy as a JSON file, one line a layer, that a person can read and edit.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/parallel/kept_strategy.h"
#include "common/parallel/step_rates.h"
#include "common/platform/file_system.h"

namespace hdps {

//   {
//     "workers": 4,
//     "graph": "9c1185a5c5e9fc54",
//     "layers": [
//       {"name": "deep1", "kind": "dense", "examples": 1, "inputs": 1, "columns": 4},
//       ...
std::string PrintStrategyFile(const KeptStrategy& kept);

// Errors: kInvalidArgument names the file, the line, the value, and what would be right. It is not
// checked if the strategy fits a job.
Result<KeptStrategy> ParseStrategyFile(const std::string& text, const std::string& path);

// Returns the file that `path` names: the path itself, or "strategy.json" in it if it is a folder.
// A path that ends in "/", "." or ".." is a folder, whether it exists or not.
std::string StrategyFileAt(FileSystem& files, const std::string& path);

// `path` may be a folder here; the path that is kept is the file's.
Result<KeptStrategy> ReadStrategyFile(FileSystem& files, const std::string& path);
Status WriteStrategyFile(FileSystem& files, const std::string& path, const KeptStrategy& kept);

// Reads the rates that hdps-bench constants --json=FILE wrote. Rates that it does not measure keep
// their built-in values. Errors: kInvalidArgument names the file.
Result<StepRates> ReadStepRates(FileSystem& files, const std::string& path);

}  // namespace hdps
