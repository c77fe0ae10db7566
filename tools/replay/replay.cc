// Implements hdps replay: trains an asynchronous run again, with the same bits.
#include <gflags/gflags.h>

#include <memory>
#include <string>
#include <utility>

#include "common/job/given_job.h"
#include "common/planning/placement.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "scheduler/report/console_output.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/replay/replay_run.h"

DECLARE_string(init);
DECLARE_string(record);
DEFINE_int64(until, 0,
             "Step after which the replay stops and saves its checkpoint; 0: the record's end");

namespace hdps {
namespace {

Status Missing(const char* flag, const char* what) {
  return {Code::kInvalidArgument, std::string("--") + flag + " is missing; give " + what};
}

Status Run() {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  if (FLAGS_record.empty()) return Missing("record", "the folder of the record, --record=DIR");
  if (flags.job.empty()) return Missing("job", "the job file of the run, --job=FILE");
  if (flags.out.empty()) return Missing("out", "the folder for results, --out=DIR");
  if (FLAGS_until < 0) {
    return {Code::kInvalidArgument,
            "--until=" + std::to_string(FLAGS_until) + ": expected a step, from 1 on"};
  }
  ReplayRequest request;
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(request.job, ReadWrittenJob(*files, flags.job));
  request.overrides = std::move(flags.overrides);
  request.record = FLAGS_record;
  request.out = flags.out;
  request.init = FLAGS_init;
  if (FLAGS_until > 0) request.until = FLAGS_until;
  request.threads = flags.threads;
  request.log = flags.log;
  request.voice = SpeakOnStderr();
  InstallStopSignals();
  request.stop = &StopRequested();
  HDPS_ASSIGN_OR_RETURN(const ProcessEnd end, RunReplay(request, *files));
  return StatusOf(end);
}

}  // namespace

Subcommand ReplayCommand() {
  return {"replay",
          "train a recorded async or ssp run again, with the same bits",
          "hdps replay --record=DIR --job=FILE --out=DIR [--until=STEP] [flags]",
          {"record", "job", "out", "set", "until", "init", "max_bad_rows", "threads", "log"},
          Run};
}

}  // namespace hdps
