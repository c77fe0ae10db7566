// Start and end of every daemon and command: flags, environment, logs, signals, pid file.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"

namespace hdps {

// Prints "hdps-server: error: MESSAGE" to stderr unless the status is ok or kCancelled. Returns the
// ExitStatusOf() its code.
int ReportAndExitStatus(const std::string& program, const Status& status);

// Says what a name that is no flag may mean otherwise, beside the value that was given, which may
// be empty; returns nothing if it does not know.
using FlagHint = std::function<std::string(const std::string& name, const std::string& value)>;

// Parses the flags (gflags) called `names`; dashes and underscores in their names mean the same. An
// unknown flag, a bad value or a stray argument is reported as kInvalidArgument with the name of
// the nearest flag, or with what `hint` says, instead of gflags' own exit 1. --set and --model may
// be given more than once; their values are joined by commas. With `arguments`, arguments that are
// not flags are stored there instead of being refused. --flagfile=FILE reads more flags, one a
// line. --help prints `usage` and the flags to stdout, --version the version, and --describe, which
// help does not list, the same as PrintDescription(). All three return kCancelled, which
// ReportAndExitStatus() maps to 0.
//
// A flag that is not given takes its value from the environment variable HDPS_<FLAG> (upper case),
// then from the MindSpore, ps-lite and Open MPI aliases listed in the .cc (MS_SCHED_HOST and
// MS_SCHED_PORT, MS_SERVER_NUM, MS_WORKER_NUM, MS_NODE_ID; DMLC_...).
Status ParseCommandLine(const std::string& usage, int* argc, char*** argv,
                        std::vector<std::string>* arguments = nullptr,
                        std::span<const std::string_view> names = {}, const FlagHint& hint = {});

// Returns the environment variables of these names that are set and not empty.
std::map<std::string, std::string> VariablesOf(std::span<const std::string_view> names);

// Is true if ParseCommandLine() took the value of this flag from the environment.
bool IsFromEnvironment(const std::string& flag);

// Appends glog's lines to `log_file`, which is created with its folder, or writes them to stderr if
// it is empty; errors go to stderr too. A line is ISO time, level, program, text. `level` is info,
// warning or error; other values are kInvalidArgument. A later call moves the log of the process
// elsewhere, lines of its running threads too.
Status StartLogging(const std::string& program, const std::string& log_file,
                    const std::string& level);

// Keeps freed blocks of up to 32 MiB in the process for reuse, up to 64 MiB at the end of each
// heap. The messages of a step come and go, and getting pages from the system costs more than
// filling them. For programs that do this all their life; call it first.
void KeepFreedMemory();
// Does the opposite, for a process with a memory limit: returns free memory to the system now, and
// keeps at most 1 MiB at the end of a heap from now on. If it is called before there are threads,
// all threads share one heap, because each heap of their own would keep as much again. Takes some
// milliseconds.
void ReturnFreedMemory();

// Makes a write beyond the limit on file sizes (ulimit -f) an error, as on a full disk, instead of
// the end of the process. Call it first.
void RefuseTooLargeFiles();

// Makes a failed allocation in any thread end this process with status 3 and "PROGRAM: error: out
// of memory: " with what needed how much. The same happens if a library stops for lack of memory,
// files or threads. `name` is the program's. Call it first.
void EndWhereMemoryIsFull(const std::string& name);
// Makes such an end also append its message to this file.
void AppendFatalErrorTo(const std::string& file);

// Raises the limit on open files and connections to the most that the system allows this user, so
// that connections held open by strangers leave room for a job's own files. Call it first.
void AllowManyFiles();

// Makes files and folders that this process creates accessible to its user alone (0600, 0700).
void MakeFilesPrivate();

// Makes this process get SIGTERM when `parent`, the process that started it, ends; 0 does nothing.
// Errors: kInvalidArgument if `parent` has already ended or is not the parent.
Status DieWithParent(int32_t parent);

// Returns this process as "HOST:PID", for people.
std::string HostAndProcess();

// Writes the id of this process to a file, creating its folder, and removes the file when
// destroyed. An empty path writes nothing.
class PidFile {
 public:
  explicit PidFile(const std::string& path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  const Status& status() const { return status_; }  // Error of the write, if any.

 private:
  std::string path_;
  Status status_;
};

// Is set by SIGTERM, SIGINT and SIGHUP after InstallStopSignals(). An ignored SIGHUP, as under
// nohup, stays ignored. A second signal ends the process at once, unless it comes within half a
// second, when it counts as the same one.
const std::atomic<bool>& StopRequested();
void InstallStopSignals();

}  // namespace hdps
