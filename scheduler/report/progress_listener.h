// Where the scheduler's words for people go.
#pragma once

#include <functional>
#include <string>

namespace hdps {

// Called on the loop thread.
struct ProgressListener {
  // A line worth keeping: who is missing, what was resumed, what was saved, the summary at the end.
  std::function<void(const std::string& line)> notice;
  // What the operator should look at; null: it goes to `notice`, behind "warning: ".
  std::function<void(const std::string& line)> warning;
  // The state of the run in one line, replaced by the next. Null where no one watches: then it goes
  // to `notice` every ten seconds.
  std::function<void(const std::string& line)> progress;
};

}  // namespace hdps
