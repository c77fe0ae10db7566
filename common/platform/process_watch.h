// Names of processes that are valid on a whole machine, and notice when one has ended.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// Identifies one boot of one machine and one PID namespace on it: processes for which it is equal
// can find each other. Empty if the system does not say.
std::string MachineIdentity();
// Identifies one boot of one machine: bytes written to files but not synced exist until it ends.
// Empty if the system does not say.
std::string BootIdentity();

// Returns "boot-id:pid-namespace:pid:start-time" of this process, a name that no other process on
// any machine ever has. Empty if the system does not say.
std::string OwnProcessName();

enum class ProcessState { kRuns, kEnded, kCannotKnow };

// Watches another process by its OwnProcessName().
//
// Invariant: once kEnded, always kEnded. The state is kCannotKnow for a process on another machine
// or in another PID namespace, and for an invalid name. A stopped process (SIGSTOP) runs; a zombie
// has ended.
class ProcessWatch {
 public:
  explicit ProcessWatch(const std::string& name);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  ProcessState Look();  // Makes one system call, which does not block.

 private:
  int pidfd_ = -1;  // Open while the process runs, as far as is known.
  ProcessState state_ = ProcessState::kCannotKnow;
};

// Returns a descriptor for poll() that becomes readable when the process ends; -1 if there is no
// such process.
int WatchProcess(uint64_t pid);

}  // namespace hdps
