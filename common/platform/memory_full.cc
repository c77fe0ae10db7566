// The thread's name for its allocations, and the error messages.
#include "common/platform/memory_full.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "common/platform/memory_limit.h"

namespace hdps {
namespace {

thread_local const char* asked_for = nullptr;

// Formats bytes as ShowByteCount() does, but without a std::string.
struct ShownBytes {
  explicit ShownBytes(uint64_t bytes) {
    const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); ++unit) value /= 1024;
    const int decimals = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    std::snprintf(text, sizeof(text), "%.*f %s", decimals, value, units[unit]);
  }
  char text[32];
};

}  // namespace

MemoryFor::MemoryFor(const char* what) : before_(asked_for) { asked_for = what; }
MemoryFor::~MemoryFor() { asked_for = before_; }

const char* MemoryFor::Now() { return asked_for; }

const char* WhatIsShort() {
  constexpr size_t kStackBytes = size_t{16} << 20;
  void* const there = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (there == MAP_FAILED) return "no memory is left; raise ulimit -v";
  munmap(there, kStackBytes);
  const int file = dup(STDERR_FILENO);
  if (file < 0 && (errno == EMFILE || errno == ENFILE)) {
    return "no file may be opened any more; raise ulimit -n";
  }
  if (file >= 0) close(file);
  // A process counts like a thread. fork() and _exit() are avoided because they may take locks.
  const long process = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (process == 0) syscall(SYS_exit_group, 0);
  if (process < 0) return "no thread may be started any more; raise ulimit -u";
  waitpid(static_cast<pid_t>(process), nullptr, 0);
  return nullptr;
}

MemoryFull::MemoryFull(uint64_t bytes) noexcept {
  char thread[16] = "", name[32];
  (void)pthread_getname_np(pthread_self(), thread, sizeof(thread));
  std::snprintf(name, sizeof(name), "the thread '%s'", thread);
  const MemoryLimit limit = LimitOfProcess();
  const ShownBytes asked(bytes), most(limit.bytes);
  std::snprintf(text_, sizeof(text_),
                "out of memory: %s asked for %s%s, and this process may have %s in all (%s); raise "
                "that, or lower what asked",
                asked_for != nullptr ? asked_for : name, bytes == 0 ? "more" : asked.text,
                bytes == 0 ? "" : " more", most.text, limit.by);
}

MemoryFull::MemoryFull(const char* text) noexcept {
  std::snprintf(text_, sizeof(text_), "%s", text);
}

}  // namespace hdps
