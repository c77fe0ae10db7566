// The scheduler's voice on a terminal or in a file.
#pragma once

#include "scheduler/report/progress_listener.h"

namespace hdps {

// A warning begins with "warning: ", and is one in the log. On a terminal the progress is one line
// of stderr that is written over again, and notices stand above it; elsewhere all are plain lines.
// `also_log`: every notice goes to the log as well.
ProgressListener SpeakOnStderr(bool also_log);

}  // namespace hdps
