// Asks for the status of a job, with all panels of its page, and formats it for scripts.
#pragma once

#include <string>

#include "common/base/status.h"

namespace hdps {

class SchedulerConnection;

// Returns what `hdps status --json` prints: docs/formats.md has its fields. Errors: kUnavailable if
// nobody answers.
Result<std::string> AskStatusJson(SchedulerConnection& connection);

}  // namespace hdps
