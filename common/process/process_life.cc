// A process and its surroundings: pid file, stop signals, final error message.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>  // Defines __GLIBC__ on glibc.
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "common/base/outside_text.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"

namespace hdps {

int ReportAndExitStatus(const std::string& program, const Status& status) {
  const int exit_status = ExitStatusOf(status.code());
  if (exit_status != kExitDone) {
    // A message is one line, whoever has written the names in it.
    PrintError("%s: error: %s\n", program.c_str(),
               EscapeUntrusted(status.message(), std::string::npos).c_str());
  }
  return exit_status;
}

void KeepFreedMemory() {
#ifdef __GLIBC__
  // Setting one of these also turns off glibc's own adjustment of both. Larger blocks go back to
  // the machine at once, because kept ones would be scattered over the heaps.
  mallopt(M_MMAP_THRESHOLD, 8 << 20);
  mallopt(M_TRIM_THRESHOLD, 24 << 20);
  mallopt(M_TOP_PAD, 4 << 20);
#endif
}

void ReturnFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // Short-lived larger blocks would leave holes in the heap.
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  mallopt(M_TOP_PAD, 128 << 10);
  mallopt(M_ARENA_MAX, 1);
  malloc_trim(0);
#endif
}

void RefuseTooLargeFiles() { std::signal(SIGXFSZ, SIG_IGN); }

void AllowManyFiles() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  // If it fails, the old limit stays, and hdps doctor reports a limit that is too low.
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &files));
}

void MakeFilesPrivate() { ::umask(077); }

Status DieWithParent(int32_t parent) {
  if (parent == 0) return {};
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // A parent that ended before that call sends no signal; then the parent is another process now.
  if (::getppid() == parent) return {};
  return Status(Code::kInvalidArgument,
                "--die_with_parent=" + std::to_string(parent) +
                    ": that process has ended, or did not start this one; give the number of the "
                    "process that starts it");
}

std::string HostAndProcess() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) name[0] = '?';
  return std::string(name) + ":" + std::to_string(::getpid());
}

PidFile::PidFile(const std::string& path) : path_(path) {
  if (path_.empty()) return;
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  status_ = files->MakeDirectories(std::filesystem::path(path_).parent_path().string());
  if (status_.ok()) {
    status_ = WriteFileAtomically(*files, path_, std::to_string(::getpid()) + "\n");
  }
  if (status_.ok()) return;
  status_ = Status(Code::kInvalidArgument, "--pid_file: " + status_.message());
  path_.clear();
}

PidFile::~PidFile() {
  if (path_.empty()) return;
  const Status removed = NewPosixFileSystem()->RemoveAll(path_);
  if (!removed.ok()) PrintError("%s\n", removed.message().c_str());
}

namespace {

// A stop may be sent both to a process and to its group, as GNU timeout does: that is one request.
constexpr int64_t kOneWishMs = 500;
constexpr int64_t kNever = -1;

// Global variables, because a signal handler has no arguments of ours.
std::atomic<bool> stop_requested = false;
std::atomic<int64_t> first_stop_ms = kNever;  // By the monotonic clock.
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
static_assert(std::atomic<int64_t>::is_always_lock_free, "likewise");

// Calls only functions that POSIX allows in a signal handler.
void OnStopSignal(int signal) {
  const int64_t now_ms = SignalSafeNowMs();
  int64_t first_ms = kNever;
  if (first_stop_ms.compare_exchange_strong(first_ms, now_ms)) {
    stop_requested = true;
    return;
  }
  if (now_ms - first_ms < kOneWishMs) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // Takes effect when this handler returns.
}

}  // namespace

const std::atomic<bool>& StopRequested() { return stop_requested; }

void InstallStopSignals() {
  struct sigaction action {};
  action.sa_handler = OnStopSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  // A closed terminal stops the process, except under nohup.
  struct sigaction before {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // A closed terminal or pipe is an error code instead.
}

}  // namespace hdps
