// Flags that more than one subcommand of hdps has.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/protocol/manifest.h"

namespace hdps {

struct CommonFlags {
  std::string job;
  std::vector<std::string> overrides;  // Of the job.
  std::string out;
  std::string checkpoint;
  WhichCheckpoint which = WhichCheckpoint::kBest;
  std::string data;      // As SplitFileList takes it.
  std::string eval_set;  // Name of the job's set to score; empty: its first.
  std::string log;
  int threads = 0;
  uint32_t workers = 1;           // evaluate, predict: that share the model.
  bool dry_run = false;           // Likewise: only says who would hold what.
  bool nan_for_bad_rows = false;  // predict: in their lines; else they are refused.
};

// A number and one of these units behind it, as 4.6G: in units of 1; nothing where it is none.
struct NumberUnit {
  std::string_view name;
  double factor;
};
std::optional<double> ParseWithUnit(std::string_view text, std::initializer_list<NumberUnit> units);

// --rows, as 500M or 4.6G; `usual` where it is not given.
Result<double> ReadRowsFlag(double usual);

// As ParseCommandLine left them. kInvalidArgument when one is out of its range.
Result<CommonFlags> ReadCommonFlags();

}  // namespace hdps
