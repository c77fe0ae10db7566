// The interface to other programs: starts them beside this process and takes what they print.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

// How a program ended, and what it printed. A bound holds for both texts.
struct ProgramEnd {
  int status = 0;           // Its exit status; 128 and the signal's number if a signal ended it.
  std::string output;       // Its stdout.
  bool output_cut = false;  // The end of `output` is missing, because it was too long.
  std::string errors;       // The last part of its stderr.
};

// A program that was started. Its destructor ends it at once if it still runs.
class RunningProgram {
 public:
  virtual ~RunningProgram() = default;
  // Waits for its end for at most so long; with 0 it does not block. Returns nothing if the program
  // still runs. Requires: it has not returned an end before.
  virtual std::optional<ProgramEnd> Wait(int64_t wait_ms) = 0;
  // Returns the last whole line that it has printed on stderr so far.
  virtual std::string LastLine() const = 0;
};

class Programs {
 public:
  virtual ~Programs() = default;
  // Starts the program words[0], which is looked up as a shell would, with the other words as its
  // arguments. It reads nothing and has a process group of its own, so Ctrl-C does not reach it.
  // Errors: kNotFound if there is no such program.
  virtual Result<std::unique_ptr<RunningProgram>> Start(const std::vector<std::string>& words) = 0;
};

std::unique_ptr<Programs> NewPosixPrograms();

}  // namespace hdps
