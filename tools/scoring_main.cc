// Defines the flags of hdps evaluate and hdps predict.
#include <gflags/gflags.h>

#include <memory>
#include <string>

#include "common/base/nearest_name.h"
#include "common/net/address.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "tools/checkpoints/local_checkpoint.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/scoring/scoring.h"

namespace hdps {
namespace {
constexpr char kLoopback[] = "127.0.0.1";
}  // namespace
}  // namespace hdps

DEFINE_bool(dry_run, false,
            "Print which member would hold which part of the model, and score nothing");
DEFINE_string(bad_rows, "refuse",
              "What is done with a row that cannot be scored: refuse ends the command and names "
              "the row, nan is printed in its line");
DEFINE_int32(process, -1,
             "The worker of --workers that this process is, from 0 on; the others are processes of "
             "the same command. -1: all workers are in this process");
DEFINE_string(meet, "", "An empty folder that all these processes see, where they find each other");
DEFINE_string(collective_host, hdps::kLoopback, "Address of this machine for the other processes");
DEFINE_bool(insecure_collective, false,
            "Allow --collective_host beyond loopback although Gloo uses no keys");
DEFINE_string(
    unknown, "",
    "How a key without a row in the checkpoint reads: initial (if not given), as its initial "
    "value in training, or zero, as in exported tables; if given, such keys are counted");
DECLARE_uint32(workers);
DECLARE_string(weights);

namespace hdps {
namespace {

constexpr uint32_t kWorkersMax = 256;

// Reads the flags of a worker that is a process of its own.
Status ReadPlace(CommonFlags* flags) {
  const std::string process = "--process=" + std::to_string(FLAGS_process);
  if (FLAGS_process == -1) {
    const bool alone =
        FLAGS_meet.empty() && FLAGS_collective_host == kLoopback && !FLAGS_insecure_collective;
    if (alone) return Status();
    return {Code::kInvalidArgument,
            "--meet, --collective_host and --insecure_collective are for several processes; give "
            "--process=R, from 0 on, or leave them out"};
  }
  if (FLAGS_process < 0 || static_cast<uint32_t>(FLAGS_process) >= FLAGS_workers ||
      FLAGS_workers < 2) {
    return {Code::kInvalidArgument, process +
                                        " is none of --workers=" + std::to_string(FLAGS_workers) +
                                        "; give the number of processes, two or more"};
  }
  if (FLAGS_meet.empty()) {
    return {Code::kInvalidArgument,
            process + " needs --meet=DIR, an empty folder that all processes see"};
  }
  if (FLAGS_dry_run) {
    return {Code::kInvalidArgument,
            "--dry_run prints all workers; leave out " + process + " and --meet"};
  }
  HDPS_ASSIGN_OR_RETURN(const Address host, ParseAddress("tcp://" + FLAGS_collective_host + ":0"));
  if (!host.OnThisMachine() && !FLAGS_insecure_collective) {
    return {Code::kInvalidArgument,
            "--collective_host=" + FLAGS_collective_host +
                " reaches beyond this machine, and Gloo knows no keys: give --insecure_collective "
                "where whoever is on that network may read and change scores"};
  }
  if (!host.OnThisMachine()) {
    PrintError(
        "warning: --insecure_collective: scores travel between the processes through %s without "
        "keys: whoever is on that network can read and change them\n",
        FLAGS_collective_host.c_str());
  }
  flags->process = FLAGS_process;
  flags->meet = FLAGS_meet;
  flags->collective_host = FLAGS_collective_host;
  return Status();
}

// Returns kInvalidArgument unless the flag's value is one of two words.
Status CheckWord(const std::string& flag, const std::string& value, const std::string& one,
                 const std::string& other) {
  if (value == one || value == other) return {};
  return {Code::kInvalidArgument, "--" + flag + "=" + value + ": expected " + one + " or " + other +
                                      DidYouMean(value, {one, other})};
}

template <auto kRun>
Status Score() {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  if (FLAGS_workers < 1 || FLAGS_workers > kWorkersMax) {
    return {Code::kInvalidArgument, "--workers=" + std::to_string(FLAGS_workers) +
                                        " is out of range; give 1 to " +
                                        std::to_string(kWorkersMax)};
  }
  HDPS_RETURN_IF_ERROR(CheckWord("bad_rows", FLAGS_bad_rows, "refuse", "nan"));
  HDPS_RETURN_IF_ERROR(CheckWord("weights", FLAGS_weights, "saved", "int8"));
  flags.count_unknown = !FLAGS_unknown.empty();
  if (flags.count_unknown) {
    HDPS_RETURN_IF_ERROR(CheckWord("unknown", FLAGS_unknown, "initial", "zero"));
  }
  flags.nan_for_bad_rows = FLAGS_bad_rows == "nan";
  flags.int8_rows = FLAGS_weights == "int8";
  flags.unknown_are_zeros = FLAGS_unknown == "zero";
  flags.workers = FLAGS_workers;
  flags.dry_run = FLAGS_dry_run;
  HDPS_RETURN_IF_ERROR(ReadPlace(&flags));
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(
      const LocalCheckpoint local,
      LocalCheckpoint::Open(*files, flags.checkpoint, WantedCopies::Of(flags.which)));
  flags.checkpoint = local.path();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(flags.threads);
  PrintedStream to;
  return kRun(flags, *files, *executor, to);
}

}  // namespace

Subcommand EvaluateCommand() {
  return {"evaluate",
          "score a checkpoint on files: AUC, logloss and the job's metrics",
          "hdps evaluate --checkpoint=DIR [--job=FILE] [--data=FILE,...]",
          {"checkpoint", "which", "data", "eval_set", "job", "set", "max_bad_rows", "threads",
           "workers", "process", "meet", "collective_host", "insecure_collective", "weights",
           "unknown", "dry_run"},
          Score<RunEvaluate>};
}

Subcommand PredictCommand() {
  return {"predict",
          "print a prediction for each row of files",
          "hdps predict --checkpoint=DIR [--job=FILE] [--data=FILE,...] [--out=FILE]\n"
          "Lines come in the order of the rows; blank lines, comments and headers get none.\n"
          "A line has a probability: one per class under softmax, one per task where\n"
          "there are several. Under squared_error it has the predicted number, under bpr\n"
          "and sampled_softmax a score that only orders rows. Labels, weights and groups\n"
          "are not read; a file may lack their cells, in all rows or in none.",
          {"checkpoint", "which", "data", "eval_set", "job", "set", "bad_rows", "threads", "out",
           "workers", "process", "meet", "collective_host", "insecure_collective", "weights",
           "unknown", "dry_run"},
          Score<RunPredict>};
}

}  // namespace hdps
