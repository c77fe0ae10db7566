// Callbacks for the scheduler's messages to the operator.
#pragma once

#include <functional>
#include <string>

namespace hdps {

// All are called on the loop thread.
struct ProgressListener {
  // A line worth keeping: missing members, a resumed or saved checkpoint, the summary at the end.
  std::function<void(const std::string& line)> notice;
  // A warning; null: it goes to `notice`, after "warning: ".
  std::function<void(const std::string& line)> warning;
  // The state of the run in one line, replaced by the next. Null if there is no live display: the
  // line then goes to `notice` every ten seconds.
  std::function<void(const std::string& line)> progress;
  // The line that metrics.jsonl gets for an evaluation, a JSON object; may be null.
  std::function<void(const std::string& line)> evaluation;
};

}  // namespace hdps
