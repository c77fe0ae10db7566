// Watches processes through /proc and pidfds, which are not confused when a process id is reused.
#include "common/platform/process_watch.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <sstream>
#include <utility>

#include "common/platform/file_system.h"

namespace hdps {
namespace {

// Returns the first line of a file; empty if there is no such file.
std::string FirstLineOf(const std::string& path) {
  constexpr uint64_t kBytesMax = 1 << 16;
  const Result<std::string> text = ReadWholeFile(*NewPosixFileSystem(), path, kBytesMax);
  return text.ok() ? text->substr(0, text->find('\n')) : std::string();
}

std::string LinkText(const char* path) {
  char text[PATH_MAX];
  const ssize_t length = readlink(path, text, sizeof(text));
  return length > 0 ? std::string(text, static_cast<size_t>(length)) : std::string();
}

// Returns the start time in clock ticks since the boot; empty if there is no such process.
std::string StartTimeOf(const std::string& pid) {
  // The program name is in parentheses and may hold anything; all fields after it are numbers.
  const std::string stat = FirstLineOf("/proc/" + pid + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;  // Numbered as in proc(5).
  return fields ? field : "";
}

// Returns "boot-id:pid-namespace". The second stands in brackets in the target of the link.
std::string MachinePart() {
  const std::string boot = FirstLineOf("/proc/sys/kernel/random/boot_id");
  const std::string processes = LinkText("/proc/self/ns/pid");
  const size_t begin = processes.find('['), end = processes.find(']');
  if (boot.empty() || begin == std::string::npos || end == std::string::npos) return "";
  return boot + ":" + processes.substr(begin + 1, end - begin - 1);
}

bool HasEnded(int pidfd) {
  pollfd watched = {pidfd, POLLIN, 0};
  return poll(&watched, 1, 0) > 0 && (watched.revents & POLLIN) != 0;
}

}  // namespace

std::string MachineIdentity() { return MachinePart(); }
std::string BootIdentity() { return FirstLineOf("/proc/sys/kernel/random/boot_id"); }

std::string OwnProcessName() {
  const std::string machine = MachinePart();
  const std::string pid = std::to_string(getpid());
  const std::string start = StartTimeOf(pid);
  return machine.empty() || start.empty() ? "" : machine + ":" + pid + ":" + start;
}

int WatchProcess(uint64_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
#else
  static_cast<void>(pid);
  errno = ENOSYS;
  return -1;
#endif
}

ProcessWatch::ProcessWatch(const std::string& name) {
  const std::string here = MachinePart() + ":";
  if (here.size() == 1 || !name.starts_with(here)) return;
  const size_t colon = name.find(':', here.size());
  if (colon == std::string::npos) return;
  const std::string pid = name.substr(here.size(), colon - here.size());
  pid_t number = 0;
  const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), number);
  if (error != std::errc() || end != pid.data() + pid.size() || number <= 0) return;
  pidfd_ = WatchProcess(static_cast<uint64_t>(number));
  if (pidfd_ < 0) {
    if (errno == ESRCH) state_ = ProcessState::kEnded;
    return;
  }
  // Read only now: with the pidfd open, the process id cannot pass to another process unnoticed.
  const std::string start = StartTimeOf(pid);
  if (start == name.substr(colon + 1)) {
    state_ = ProcessState::kRuns;
  } else if (!start.empty() || HasEnded(pidfd_)) {
    state_ = ProcessState::kEnded;
  }
}

ProcessWatch::~ProcessWatch() {
  if (pidfd_ >= 0) close(pidfd_);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : pidfd_(std::exchange(other.pidfd_, -1)),
      state_(std::exchange(other.state_, ProcessState::kCannotKnow)) {}

ProcessWatch& ProcessWatch::operator=(ProcessWatch&& other) noexcept {
  std::swap(pidfd_, other.pidfd_);
  std::swap(state_, other.state_);
  return *this;
}

ProcessState ProcessWatch::Look() {
  if (state_ == ProcessState::kRuns && HasEnded(pidfd_)) state_ = ProcessState::kEnded;
  return state_;
}

}  // namespace hdps
