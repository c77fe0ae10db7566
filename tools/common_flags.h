// Reads the flags that several subcommands of hdps share.
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
  std::vector<std::string> overrides;  // Settings of the job, from --set.
  std::string out;
  std::string checkpoint;
  WhichCheckpoint which = WhichCheckpoint::kBest;
  std::string data;      // List of files, for SplitFileList.
  std::string eval_set;  // Name of the job's evaluation set to score; empty: the first.
  std::string log;
  int threads = 0;
  uint32_t workers = 1;  // Workers that share the model (evaluate, predict).
  // The worker that this process is, which meets the others in the folder `meet`; -1: it is all of
  // them. They reach it at `collective_host` (evaluate, predict).
  int32_t process = -1;
  std::string meet, collective_host;
  // Only print which worker would hold what (evaluate, predict).
  bool dry_run = false;
  // Write nan in the line of a bad row instead of failing (predict).
  bool nan_for_bad_rows = false;
  bool int8_rows = false;          // Hold rows in 8 bits a weight (evaluate, predict).
  bool count_unknown = false;      // Tell how many keys have no row (evaluate, predict).
  bool unknown_are_zeros = false;  // Keys without a row read as zeros (evaluate, predict).
};

// A unit behind a number, as the G in 4.6G, and its factor. ParseWithUnit returns the number in
// units of 1, or nothing if the text is not a number from 0 on with one of the units.
struct NumberUnit {
  std::string_view name;
  double factor;
};
std::optional<double> ParseWithUnit(std::string_view text, std::initializer_list<NumberUnit> units);

// Reads --rows, for example 500M or 4.6G; returns `usual` if the flag is not given.
Result<double> ReadRowsFlag(double usual);

// Says which setting of the job, if only one, `name` is or ends the path of, and how --set gives it
// the value: "train.epochs is a setting of the job: --set=train.epochs=3". It is a FlagHint.
std::string SettingNamed(const std::string& name, const std::string& value);

// Reads --threads. Returns kInvalidArgument if it is out of its range.
Result<int> ReadThreadsFlag();

// Reads the flags after ParseCommandLine. Returns kInvalidArgument if one is out of its range.
Result<CommonFlags> ReadCommonFlags();

}  // namespace hdps
