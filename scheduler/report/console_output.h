// Prints the scheduler's notices and progress on a terminal or into a file.
#pragma once

#include "scheduler/report/progress_listener.h"

namespace hdps {

// Returns a listener that prints to stderr. A warning begins with "warning: ". On a terminal the
// progress is one line that is overwritten, with notices above it; elsewhere all are plain lines.
// Several threads may call it.
ProgressListener SpeakOnStderr();

// Returns a listener whose notices and warnings go to the log and to `listener`.
ProgressListener AlsoLogged(ProgressListener listener);

}  // namespace hdps
