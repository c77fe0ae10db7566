// hdps-bench: runs benchmarks by name, prints their figures, and writes them as JSON.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commit_stamp.h"

#include "benchmarks/bench.h"
#include "benchmarks/clusters/child_process.h"
#include "benchmarks/clusters/wire_ends.h"
#include "benchmarks/machine.h"
#include "common/base/nearest_name.h"
#include "common/job/job_file.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/output_file.h"
#include "common/platform/random.h"
#include "common/process/command_line.h"

DEFINE_bool(list, false, "Print the benchmarks with the question each answers, and end");
DEFINE_string(json, "", "File that gets the figures too, each with its samples; empty: none");
DEFINE_string(case, "", "Part of the names of the cases to run; empty: all");
DEFINE_bool(quick, false,
            "Use smaller sizes, which take about half the time and give less steady figures");
DEFINE_int32(repeats, 5, "Number of samples of each figure, 1 to 100, of which the median counts");
DEFINE_int32(threads, 0, "Number of computing threads; 0: one per core");
DEFINE_string(scratch, "/tmp", "Folder in which folders for generated data are made and removed");
DEFINE_string(device, "cpu", "Device on which end_to_end computes the dense layers: cpu or cuda");
DEFINE_string(set, "", "Fields of end_to_end's jobs to override: key.path=value,...");
DEFINE_string(far_end, "",
              "Used by wire itself: address of the listener whose other end this process is");
DEFINE_uint64(far_end_shared_bytes, 0, "Bytes of memory that --far_end may share");
DEFINE_string(far_end_keys, "", "Folder with the key of --far_end");
DEFINE_string(data, "", "Criteo TSV file that reader reads too; empty: none");

namespace hdps {
namespace {

constexpr std::string_view kFlags[] = {"list",
                                       "json",
                                       "case",
                                       "quick",
                                       "repeats",
                                       "threads",
                                       "scratch",
                                       "device",
                                       "set",
                                       "far_end",
                                       "far_end_shared_bytes",
                                       "far_end_keys",
                                       "data"};

constexpr char kUsage[] =
    "hdps-bench: measures hdps beside yardsticks measured in turns with it\n"
    "usage: hdps-bench [NAME...] [flags]\n"
    "Without names, all of:\n";

std::string List() {
  std::string list;
  for (const BenchEntry& bench : AllBenches()) {
    std::string name = bench.name;
    name.resize(std::max<size_t>(name.size() + 1, 14), ' ');
    list += "  " + name + bench.question + "\n";
  }
  return list;
}

Result<std::vector<BenchEntry>> Chosen(const std::vector<std::string>& names) {
  const auto all = AllBenches();
  if (names.empty()) return std::vector<BenchEntry>(all.begin(), all.end());
  std::vector<BenchEntry> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const BenchEntry& bench) { return bench.name == name; });
    if (found == all.end()) {
      std::vector<std::string> there;
      for (const BenchEntry& bench : all) there.emplace_back(bench.name);
      return Status(Code::kInvalidArgument, "there is no benchmark '" + name + "'" +
                                                DidYouMean(name, there) +
                                                "; --list shows what there is");
    }
    chosen.push_back(*found);
  }
  return chosen;
}

Status CheckFlags() {
  if (FLAGS_repeats < 1 || FLAGS_repeats > 100) {
    return {Code::kInvalidArgument,
            "--repeats=" + std::to_string(FLAGS_repeats) + " is out of range; give 1 to 100"};
  }
  if (FLAGS_threads < 0 || FLAGS_threads > 4096) {
    return {Code::kInvalidArgument, "--threads=" + std::to_string(FLAGS_threads) +
                                        " is out of range; give 1 to 4096, or 0 for one per core"};
  }
  if (FLAGS_device != "cpu" && FLAGS_device != "cuda") {
    return {Code::kInvalidArgument, "--device=" + FLAGS_device + ": give cpu or cuda"};
  }
  return Status();
}

// Some cases start members as processes.
Status CheckPrograms(const std::string& program, FileSystem& files) {
  for (const char* name : {"hdps-server", "hdps-worker"}) {
    const std::string path = Beside(program, name);
    if (files.Exists(path)) continue;
    return {Code::kInvalidArgument, path +
                                        " is not there, which some cases start; run hdps-bench "
                                        "where it was built or unpacked"};
  }
  return Status();
}

Status RunOne(const BenchEntry& bench, const std::string& program, FileSystem& files,
              BenchReport& report) {
  BenchSetting setting;
  setting.program = program;
  setting.scratch = JoinPath(FLAGS_scratch, "hdps_bench_" + std::to_string(NewPeerId().value));
  setting.threads = FLAGS_threads;
  setting.repeats = FLAGS_repeats;
  setting.quick = FLAGS_quick;
  setting.only = FLAGS_case;
  setting.device = FLAGS_device;
  setting.overrides = SplitOverrides(FLAGS_set);
  setting.data = FLAGS_data;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(setting.scratch));
  PrintProgress(bench.name, bench.question);
  Status status;
  const double seconds = SecondsOf([&] { status = bench.run(setting, files, report); });
  PrintProgress(bench.name, "took " + std::to_string(static_cast<int>(seconds)) + " s");
  const Status removed = files.RemoveAll(setting.scratch);
  return status.ok() ? removed : status;
}

std::string Json(const Machine& machine, int threads, const BenchReport& report) {
  nlohmann::ordered_json json;
  json["machine"] = {{"cpu", machine.cpu},
                     {"cores", machine.cores},
                     {"memory_bytes", machine.memory_bytes},
                     {"vector_width", machine.vector_width}};
  json["compiler"] = __VERSION__;
  json["commit"] = HDPS_COMMIT;
  json["time"] = UtcTimestamp();
  json["setting"] = {{"threads", threads}, {"repeats", FLAGS_repeats}, {"quick", FLAGS_quick}};
  json["results"] = nlohmann::ordered_json::parse(report.Json());
  return json.dump(2) + "\n";
}

Status Run(const std::string& program, const std::vector<std::string>& names) {
  HDPS_RETURN_IF_ERROR(CheckFlags());
  HDPS_ASSIGN_OR_RETURN(const std::vector<BenchEntry> chosen, Chosen(names));
  if (FLAGS_list) {
    std::fputs(List().c_str(), stdout);
    return Status();
  }
  HDPS_RETURN_IF_ERROR(StartLogging("hdps-bench", "", "warning"));
  if (!FLAGS_far_end.empty())
    return FarEnd(FLAGS_far_end, FLAGS_far_end_shared_bytes, FLAGS_far_end_keys);
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_RETURN_IF_ERROR(CheckPrograms(program, *files));
  const InputFile data = {"the file of --data", FLAGS_data};
  HDPS_RETURN_IF_ERROR(RefuseInput(*files, "--json=" + FLAGS_json, FLAGS_json, {&data, 1}));
  const int threads = NewTbbExecutor(FLAGS_threads)->threads();
  const Machine machine = ThisMachine(*files);
  LoadMeter load(*files);
  BenchReport report([&load] { return load.ForeignCores(); });
  for (const BenchEntry& bench : chosen) {
    HDPS_RETURN_IF_ERROR(RunOne(bench, program, *files, report));
  }
  if (report.results().empty() && FLAGS_case.empty()) {
    std::puts("nothing was measured");
    return Status();
  }
  if (report.results().empty()) {
    return {Code::kInvalidArgument, "--case=" + FLAGS_case + ": no case has this in its name"};
  }
  std::printf("%s, %d cores, %.0f GiB, %s; %d threads, commit %s, gcc %s, %s\n",
              machine.cpu.c_str(), machine.cores,
              static_cast<double>(machine.memory_bytes) / (1 << 30), machine.vector_width.c_str(),
              threads, HDPS_COMMIT, __VERSION__, UtcTimestamp().c_str());
  std::fputs(report.Table().c_str(), stdout);
  std::puts("others: cores that other programs kept busy meanwhile; above 0.1 trust only ratios");
  if (FLAGS_json.empty()) return Status();
  return WriteNamedFile(*files, FLAGS_json, Json(machine, threads, report));
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  hdps::KeepFreedMemory();
  hdps::RefuseTooLargeFiles();
  std::vector<std::string> names;
  hdps::Status status =
      hdps::ParseCommandLine(hdps::kUsage + hdps::List(), &argc, &argv, &names, hdps::kFlags);
  if (status.ok()) status = hdps::Run(std::filesystem::read_symlink("/proc/self/exe"), names);
  return status.ok() ? hdps::kExitDone : hdps::ReportAndExitStatus("hdps-bench", status);
}
