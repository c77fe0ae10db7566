// System calls, and the files of control groups.
#include "common/platform/memory_limit.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "common/platform/file_system.h"

namespace hdps {
namespace {

constexpr size_t kTextBytesMax = 64 << 10;
constexpr uint64_t kAny = ~uint64_t{0};

void Take(MemoryLimit* limit, __rlimit_resource resource, const char* by) {
  rlimit found{};
  if (::getrlimit(resource, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return;
  if (found.rlim_cur < limit->bytes) *limit = {found.rlim_cur, by};
}

// Returns the number that a file holds; a missing file and "max" mean no limit.
uint64_t NumberIn(FileSystem& files, const std::string& path) {
  uint64_t number = kAny;
  const Result<std::string> text = ReadWholeFile(files, path, kTextBytesMax);
  if (text.ok()) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

// Returns the path of the process below the root of the control groups,
// "/system.slice/hdps.service", or nothing if it has none.
std::string OwnGroup(FileSystem& files) {
  constexpr std::string_view kBefore = "0::";
  const Result<std::string> text = ReadWholeFile(files, "/proc/self/cgroup", kTextBytesMax);
  const size_t at = text.ok() ? text->find(kBefore) : std::string::npos;
  if (at == std::string::npos) return "";
  const size_t begin = at + kBefore.size();
  return text->substr(begin, text->find('\n', begin) - begin);
}

}  // namespace

MemoryLimit LimitOfProcess() {
  MemoryLimit limit{kAny, "nothing"};
  struct sysinfo machine {};
  if (::sysinfo(&machine) == 0) {
    limit = {(uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit,
             "the machine's memory and swap"};
  }
  Take(&limit, RLIMIT_AS, "ulimit -v");
  Take(&limit, RLIMIT_DATA, "ulimit -d");
  return limit;
}

uint64_t SwapOfMachine() {
  struct sysinfo machine {};
  return ::sysinfo(&machine) == 0 ? uint64_t{machine.totalswap} * machine.mem_unit : 0;
}

MemoryLimit MostMemory(FileSystem& files) {
  MemoryLimit most = LimitOfProcess();
  // The limits of all groups above apply too.
  for (std::string group = OwnGroup(files);; group.resize(group.rfind('/'))) {
    const std::string memory = "/sys/fs/cgroup" + (group == "/" ? "" : group) + "/memory.";
    const uint64_t limit = NumberIn(files, memory + "max");
    const uint64_t swap = std::min(NumberIn(files, memory + "swap.max"), SwapOfMachine());
    if (limit < most.bytes && swap < most.bytes - limit) most = {limit + swap, "its control group"};
    if (group.find('/') == std::string::npos) return most;
  }
}

}  // namespace hdps
