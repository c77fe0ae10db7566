// Programs that a benchmark starts beside itself.
#pragma once

#include <string>
#include <vector>

namespace hdps {

// A started program; it ends with this process at the latest.
//
// Invariant: exactly one of Wait() and the destructor collects it.
class ChildProcess {
 public:
  // Runs `arguments[0]`, looked for in PATH when it names no folder; its words go into `log`.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& log);
  ~ChildProcess();  // Kills it when it still runs.
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int Wait();  // Its exit status, 128 and more when a signal ended it.
  void Signal(int signal);
  double CpuSeconds() const;  // Of all its threads so far; 0 when it has ended.

 private:
  int number_ = -1;  // -1: collected.
};

// The program of this name beside `program`, which is this executable.
std::string Beside(const std::string& program, const std::string& name);

}  // namespace hdps
