// Prints the scheduler's notices and progress on a terminal or into a file.
#pragma once

#include "scheduler/report/progress_listener.h"

namespace hdps {

// Returns a listener that prints to stderr. A warning begins with "warning: " and is a warning in
// the log. On a terminal the progress is one line that is overwritten, with notices above it;
// elsewhere all are plain lines. Several threads may call it. `also_log`: notices go to the log as
// well.
ProgressListener SpeakOnStderr(bool also_log);

}  // namespace hdps
