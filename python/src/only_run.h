// Lets one job at a time run in this process, because its log and its memory are those of the
// process.
#pragma once

namespace hdps::python {

// Raises RunError if there is another one. Requires: the interpreter's lock is held.
class OnlyRun {
 public:
  OnlyRun();
  ~OnlyRun();
  OnlyRun(const OnlyRun&) = delete;
  OnlyRun& operator=(const OnlyRun&) = delete;
};

}  // namespace hdps::python
