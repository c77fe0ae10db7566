// Names of processes that mean the same to all of one machine, and knowing at once when one ended.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// Tells one kernel since its start, and one numbering of processes within it, from all others:
// processes that agree on it can find each other. Empty when the system does not say.
std::string MachineIdentity();
// Tells one kernel since its start from all others: what was written to files and not synced is
// there as long as it stays. Empty when the system does not say.
std::string BootIdentity();

// "boot-id:pid-namespace:pid:start-time" of this process: no other process, on this machine or
// another, before or after, has this name. Empty when the system does not say.
std::string OwnProcessName();

enum class ProcessState { kRuns, kEnded, kCannotKnow };

// A process by its OwnProcessName(), seen from another process.
//
// Invariant: once kEnded, always kEnded; kCannotKnow for all of another machine or another
// numbering of processes, and for names that are none. Who stands still (SIGSTOP) runs; a zombie
// has ended.
class ProcessWatch {
 public:
  explicit ProcessWatch(const std::string& name);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  ProcessState Look();  // One system call, which does not wait.

 private:
  int pidfd_ = -1;  // While it runs, for all that is known.
  ProcessState state_ = ProcessState::kCannotKnow;
};

// Becomes readable when the process ends, for poll(). -1 when there is no such process.
int WatchProcess(uint64_t pid);

}  // namespace hdps
