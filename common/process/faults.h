// All faults that can be injected into a daemon, in one line of text.
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

// The value of a daemon's flag --faults.
struct Faults {
  FrameFaults frames;
  std::vector<FileFault> files;
  std::vector<PlannedFailure> points;
  bool armed = false;  // The flag was given: failpoints count their hits and log the first.

  // Return the transport or file system with these faults around it, or unchanged if there are
  // none.
  std::unique_ptr<Transport> Around(std::unique_ptr<Transport> transport) const;
  std::unique_ptr<FileSystem> Around(std::unique_ptr<FileSystem> files) const;
};

// Parses rules separated by commas, as described in kFaultsHelp; an empty text has no rules.
// Errors: kInvalidArgument names the rule and what would be right.
Result<Faults> ParseFaults(const std::string& text);

extern const char kFaultsHelp[];
// Returns one failpoint a line, with "(error)" behind those that can fail.
std::string ListFailpoints();

}  // namespace hdps
