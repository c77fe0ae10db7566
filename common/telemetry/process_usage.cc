// Reads the files of /proc.
#include "common/telemetry/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

namespace hdps {
namespace {

constexpr uint64_t kTextBytesMax = 4 << 20;  // /proc/stat has a line a processor.

// Returns field `n` of a text, from 0, as a number; 0 if it has none.
uint64_t FieldOf(std::string_view text, size_t n) {
  for (; n > 0; --n) {
    const size_t end = text.find(' ');
    if (end == std::string_view::npos) return 0;
    text.remove_prefix(end + 1);
  }
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int64_t NsOf(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1000;
}

// Returns when the process started: the time of the machine's start, and ticks since then.
double StartOf(FileSystem& files) {
  constexpr std::string_view kBoot = "\nbtime ";
  constexpr size_t kStartTicks = 19;  // Field 22 of proc(5), counted behind the program's name.
  const Result<std::string> own = ReadWholeFile(files, "/proc/self/stat", kTextBytesMax);
  const Result<std::string> machine = ReadWholeFile(files, "/proc/stat", kTextBytesMax);
  if (!own.ok() || !machine.ok()) return 0;
  const size_t name_end = own->rfind(") ");  // The name may have blanks and parentheses itself.
  const size_t boot = machine->find(kBoot);
  if (name_end == std::string::npos || boot == std::string::npos) return 0;
  const uint64_t ticks = FieldOf(std::string_view(*own).substr(name_end + 2), kStartTicks);
  const uint64_t booted = FieldOf(std::string_view(*machine).substr(boot + kBoot.size()), 0);
  return static_cast<double>(booted) +
         static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

uint64_t ResidentBytes(FileSystem& files) {
  constexpr uint64_t kPagesBytesMax = 4096;
  const Result<std::string> pages = ReadWholeFile(files, "/proc/self/statm", kPagesBytesMax);
  if (!pages.ok()) return 0;
  return FieldOf(*pages, 1) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

ProcessUsage ReadProcessUsage(FileSystem& files) {
  ProcessUsage usage;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    usage.cpu_ns = NsOf(used.ru_utime) + NsOf(used.ru_stime);
  }
  usage.resident_bytes = ResidentBytes(files);
  const Result<std::vector<std::string>> open = files.List("/proc/self/fd");
  if (open.ok() && !open->empty()) usage.open_fds = open->size() - 1;
  usage.start_unix_seconds = StartOf(files);
  return usage;
}

}  // namespace hdps
