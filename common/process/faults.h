// Everything that can be made to fail on purpose, in one line of text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/fault_transport.h"
#include "common/net/transport.h"
#include "common/platform/failpoint.h"
#include "common/platform/fault_file_system.h"
#include "common/platform/file_system.h"

namespace hdps {

// What the flag --faults of a daemon says.
struct Faults {
  FrameFaults frames;
  std::vector<FileFault> files;
  std::vector<PlannedFailure> points;
  bool armed = false;  // The flag was given: failpoints are counted and their first hits logged.

  // The transport or file system with these faults; without any, as it came.
  std::unique_ptr<Transport> Around(std::unique_ptr<Transport> transport) const;
  std::unique_ptr<FileSystem> Around(std::unique_ptr<FileSystem> files) const;
};

// Rules with commas between them, as kFaultsHelp has them; an empty text has none.
// kInvalidArgument names the rule and what would be right.
Result<Faults> ParseFaults(const std::string& text);

extern const char kFaultsHelp[];
// One failpoint a line, "(error)" behind those that can fail.
std::string ListFailpoints();

}  // namespace hdps
