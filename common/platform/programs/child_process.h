// A program that takes this process's place, or that this process starts, watches and signals.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Returns the path of the program called `name` in the folder of this process's own program.
// Errors: kInvalidArgument if there is no such program.
Result<std::string> ProgramBeside(const std::string& name);

// Runs the program words[0] with the other words as its arguments in place of this one. Returns
// only if that failed.
Status BecomeProgram(const std::vector<std::string>& words);

// Takes SIGTERM, SIGINT and SIGHUP, and the ends of children, in turns with the caller's work. An
// ignored SIGHUP, as under nohup, stays ignored.
//
// Invariant: while it exists these signals wait until Wait() takes them. Make it before the process
// has threads.
class SignalWait {
 public:
  SignalWait();
  ~SignalWait();
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;
  // Waits for a signal for at most so long. Returns the number of a signal that asks to stop;
  // nothing for another one, or for none.
  std::optional<int> Wait(int64_t wait_ms);
  const sigset_t& before() const { return before_; }  // The signals that were blocked before.

 private:
  sigset_t taken_, before_;
};

// A started program, which shares stdin, stdout and stderr with this process and gets the signals
// that this process had before SignalWait.
class ChildProcess {
 public:
  static Result<ChildProcess> Start(const std::vector<std::string>& words,
                                    const SignalWait& signals);
  // Returns its exit status, or 128 and the number of the signal that ended it; nothing while it
  // runs. Requires: it has not returned a status before.
  std::optional<int> Ended();
  // Is true once it handles `signal` by itself; before that a signal would end it.
  bool Handles(FileSystem& files, int signal) const;
  void Send(int signal) const;

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

}  // namespace hdps
