// Reads /proc: the CPU's name, and the CPU time of other processes.
#include "benchmarks/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <thread>
#include <vector>

namespace hdps {
namespace {

std::string Text(FileSystem& files, const std::string& path) {
  constexpr uint64_t kBytesMax = 4 << 20;
  Result<std::string> text = ReadWholeFile(files, path, kBytesMax);
  return text.ok() ? *std::move(text) : "";
}

// Returns the text from the colon behind `name` to the end of its line; empty if there is none.
std::string Field(const std::string& text, const std::string& name) {
  const size_t field = text.find(name);
  const size_t begin = field == std::string::npos ? field : text.find(": ", field);
  if (begin == std::string::npos) return "";
  return text.substr(begin + 2, text.find('\n', begin) - begin - 2);
}

struct ProcessTimes {
  int64_t parent = 0;
  double ticks = 0;  // User and system time, including children that were waited for.
};

// Parses /proc/NUMBER/stat. The name in parentheses may contain anything.
ProcessTimes TimesOf(const std::string& stat) {
  ProcessTimes times;
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return times;
  std::istringstream rest(stat.substr(end + 1));
  std::string state;
  rest >> state >> times.parent;
  double value = 0;
  constexpr int kFirst = 10, kLast = 13;  // Fields between the parent and utime, stime, cutime...
  for (int field = 1; field <= kLast && rest >> value; ++field) {
    if (field >= kFirst) times.ticks += value;
  }
  return times;
}

double OwnTicks(FileSystem& files) {
  double ticks = TimesOf(Text(files, "/proc/self/stat")).ticks;
  const Result<std::vector<std::string>> names = files.List("/proc");
  if (!names.ok()) return ticks;
  for (const std::string& name : *names) {
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    const ProcessTimes times = TimesOf(Text(files, "/proc/" + name + "/stat"));
    if (times.parent == getpid()) ticks += times.ticks;
  }
  return ticks;
}

// Returns the time that the CPUs were busy: user, nice, system, irq, softirq, steal.
double BusyTicks(FileSystem& files) {
  std::istringstream line(Text(files, "/proc/stat"));
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, steal = 0;
  line >> cpu >> user >> nice >> system >> idle >> wait >> irq >> soft >> steal;
  return user + nice + system + irq + soft + steal;
}

}  // namespace

Machine ThisMachine(FileSystem& files) {
  Machine machine;
  const std::string info = Text(files, "/proc/cpuinfo");
  machine.cpu = Field(info, "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown";
  machine.cores = static_cast<int>(std::thread::hardware_concurrency());
  machine.memory_bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const std::string flags = " " + Field(info, "flags") + " ";
  const auto has = [&](const char* flag) { return flags.find(flag) != std::string::npos; };
  machine.vector_width = has(" avx512f ") ? "avx512" : has(" avx2 ") ? "avx2" : "plain";
  return machine;
}

LoadMeter::LoadMeter(FileSystem& files) : files_(files), clock_(NewSystemClock()), last_(Read()) {}

LoadMeter::Reading LoadMeter::Read() {
  const auto ticks_a_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  Reading reading;
  reading.wall = static_cast<double>(clock_->NowNs()) * 1e-9;
  reading.all = BusyTicks(files_) / ticks_a_second;
  reading.own = OwnTicks(files_) / ticks_a_second;
  return reading;
}

double LoadMeter::ForeignCores() {
  constexpr double kSecondsMin = 0.5;
  const Reading now = Read();
  const double wall = now.wall - last_.wall;
  if (wall < kSecondsMin || now.all == 0) return -1;
  const double foreign = (now.all - last_.all - (now.own - last_.own)) / wall;
  last_ = now;
  return std::max(foreign, 0.0);
}

}  // namespace hdps
