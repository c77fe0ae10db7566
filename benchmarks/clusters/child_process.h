// Starts and collects child processes.
#pragma once

#include <string>
#include <vector>

namespace hdps {

// A child process. It ends with this process at the latest.
//
// Invariant: exactly one of Wait() and the destructor collects it.
class ChildProcess {
 public:
  // Runs `arguments[0]`, found by PATH if it names no folder; its output goes into `log`.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& log);
  ~ChildProcess();  // Kills the process if it still runs.
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int Wait();  // Returns the exit status; 128 and more if a signal ended it.
  void Signal(int signal);
  double CpuSeconds() const;  // All its threads so far; 0 when it has ended.

 private:
  int number_ = -1;  // Process id; -1: collected.
};

// Returns the path of a program in the folder of `program`, which is this executable.
std::string Beside(const std::string& program, const std::string& name);

}  // namespace hdps
