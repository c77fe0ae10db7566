// hdps-bench: runs benchmarks by name, prints their figures, and writes them as JSON.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "common/command_line.h"
#include "common/executor.h"
#include "common/file_system.h"
#include "common/monotonic_clock.h"
#include "common/random.h"

DEFINE_string(json, "", "Also write the figures into this file");
DEFINE_string(scratch, "/tmp", "Where folders for generated data are made, and removed");
DEFINE_string(device, "cpu", "Where end_to_end computes the dense layers: cpu or cuda");
DEFINE_int32(repeats, 3, "Runs of end_to_end, 1 to 100; the median counts");
DEFINE_int32(threads, 0, "Threads that compute; 0: one a core");

#ifndef HDPS_COMMIT
#define HDPS_COMMIT "unknown"
#endif

namespace hdps {
namespace {

const char* const kNames[] = {"end_to_end", "reader"};

constexpr char kUsage[] =
    "hdps-bench: measures hdps beside yardsticks measured in turns with it\n"
    "usage: hdps-bench [NAME...] [flags]\n"
    "Without names, all of: ";

std::string Names() {
  std::string names;
  for (const char* name : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Status CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) continue;
    return {Code::kInvalidArgument, "there is no benchmark '" + name + "'; there are: " + Names()};
  }
  return Status();
}

std::string CpuModel(FileSystem& files) {
  constexpr uint64_t kBytesMax = 1 << 20;
  const Result<std::string> text = ReadWholeFile(files, "/proc/cpuinfo", kBytesMax);
  if (!text.ok()) return "unknown";
  const size_t field = text->find("model name");
  const size_t begin = text->find(": ", field);
  if (field == std::string::npos || begin == std::string::npos) return "unknown";
  return text->substr(begin + 2, text->find('\n', begin) - begin - 2);
}

Status CheckFlags() {
  if (FLAGS_repeats < 1 || FLAGS_repeats > 100) {
    return {Code::kInvalidArgument,
            "--repeats=" + std::to_string(FLAGS_repeats) + " is out of range; give 1 to 100"};
  }
  if (FLAGS_threads < 0 || FLAGS_threads > 4096) {
    return {Code::kInvalidArgument, "--threads=" + std::to_string(FLAGS_threads) +
                                        " is out of range; give 1 to 4096, or 0 for one a core"};
  }
  if (FLAGS_device != "cpu" && FLAGS_device != "cuda") {
    return {Code::kInvalidArgument, "--device=" + FLAGS_device + ": give cpu or cuda"};
  }
  return Status();
}

Status RunOne(const std::string& name, FileSystem& files, BenchReport& report) {
  if (name == "reader") {
    RunReaderBench(report);
    return Status();
  }
  EndToEndSetting setting;
  setting.scratch = JoinPath(FLAGS_scratch, "hdps_bench_" + std::to_string(NewPeerId().value));
  setting.threads = FLAGS_threads;
  setting.repeats = FLAGS_repeats;
  setting.device = FLAGS_device;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(setting.scratch));
  const Status status = RunEndToEndBench(setting, files, report);
  HDPS_RETURN_IF_ERROR(files.RemoveAll(setting.scratch));
  return status;
}

Status Run(std::vector<std::string> names) {
  HDPS_RETURN_IF_ERROR(CheckFlags());
  HDPS_RETURN_IF_ERROR(CheckNames(names));
  HDPS_RETURN_IF_ERROR(StartLogging("hdps-bench", "", "warning"));
  if (names.empty()) names.assign(std::begin(kNames), std::end(kNames));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const int threads = NewTbbExecutor(FLAGS_threads)->threads();
  const std::string cpu = CpuModel(*files);
  std::printf("%s, %d threads, commit %s\n", cpu.c_str(), threads, HDPS_COMMIT);
  BenchReport report;
  for (const std::string& name : names) HDPS_RETURN_IF_ERROR(RunOne(name, *files, report));
  std::fputs(report.Table().c_str(), stdout);
  if (FLAGS_json.empty()) return Status();
  nlohmann::ordered_json json;
  json["machine"] = {{"cpu", cpu}, {"threads", threads}};
  json["commit"] = HDPS_COMMIT;
  json["time"] = UtcTimestamp();
  json["results"] = nlohmann::ordered_json::parse(report.Json());
  return WriteFileAtomically(*files, FLAGS_json, json.dump(2) + "\n");
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  std::vector<std::string> names;
  hdps::Status status = hdps::ParseCommandLine(hdps::kUsage + hdps::Names(), &argc, &argv, &names);
  if (status.ok()) status = hdps::Run(names);
  return status.ok() ? hdps::kExitDone : hdps::ReportAndExitStatus("hdps-bench", status);
}
