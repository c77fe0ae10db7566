// What every daemon and command does at start and end: flags, environment, logs, signals, pid file.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"

namespace hdps {

// Prints "hdps-server: error: MESSAGE" to stderr unless the status is ok or kCancelled, and gives
// the ExitStatusOf() its code.
int ReportAndExitStatus(const std::string& program, const Status& status);

// Reads the flags (gflags) called `names`; dashes and underscores in their names mean the same.
// An unknown flag, a bad value or a stray argument is reported as kInvalidArgument with the nearest
// flag's name instead of gflags' own exit 1. --set may be given more than once; its values are
// joined by commas. With `arguments`, what is no flag goes there instead of being refused.
// --flagfile=FILE reads more of them, one a line. --help prints `usage` and the flags to stdout,
// --version the version; both give kCancelled, which ReportAndExitStatus makes 0.
//
// A flag that is not given takes its value from the environment variable HDPS_<FLAG> (upper case),
// then from the MindSpore, ps-lite and Open MPI aliases listed in the .cc (MS_SCHED_HOST and
// MS_SCHED_PORT, MS_SERVER_NUM, MS_WORKER_NUM, MS_NODE_ID; DMLC_...).
Status ParseCommandLine(const std::string& usage, int* argc, char*** argv,
                        std::vector<std::string>* arguments = nullptr,
                        std::span<const std::string_view> names = {});

// Sends glog's lines into `log_file` (made with its folder, appended to), or to stderr when it is
// empty; errors go to stderr too. One line: ISO time, level, program, text. `level` is info,
// warning or error; another is kInvalidArgument. Once per process.
Status StartLogging(const std::string& program, const std::string& log_file,
                    const std::string& level);

// Blocks of up to 32 MiB that are freed stay in the process for the next one, up to 64 MiB at the
// end of each heap: messages of a step come and go, and the system's pages cost more than their
// bytes. For programs whose whole life that is; called first thing.
void KeepFreedMemory();
// The reverse, for a process that keeps to a limit: what is free goes back to the system now, and
// from now on 1 MiB at most stays at the end of a heap. Called before there are threads, all share
// one heap: each of their own would keep as much again. Some milliseconds.
void ReturnFreedMemory();

// A write beyond the limit on file sizes (ulimit -f) becomes an error, as on a full disk, and no
// longer the end of the process. Called first thing.
void RefuseTooLargeFiles();

// From now on memory that cannot be had, in whatever thread, ends this process with status 3:
// "PROGRAM: error: out of memory: " and who asked for how much. Likewise where a library stops
// for lack of memory, files or threads. `name` is the program's. Called first thing.
void EndWhereMemoryIsFull(const std::string& name);
// Such an end is told in this file, too, behind its last line.
void SayLastWordsInto(const std::string& file);

// As many files and connections at once as the system lets this user have: connections that
// strangers hold open leave room for a job's own files. Called first thing.
void AllowManyFiles();

// Files and folders that this process makes from now on are its user's alone (0600, 0700).
void MakeFilesPrivate();

// From now on the end of process `parent`, which started this one, is a SIGTERM to this one. 0: it
// is not. kInvalidArgument when it has ended already, or another process started this one.
Status DieWithParent(int32_t parent);

// This process for people: "HOST:NUMBER".
std::string HostAndProcess();

// Writes this process' number, in a folder made for it; removes the file when destroyed. An empty
// path writes nothing.
class PidFile {
 public:
  explicit PidFile(const std::string& path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  const Status& status() const { return status_; }  // Whether it could be written.

 private:
  std::string path_;
  Status status_;
};

// Set by SIGTERM, SIGINT and SIGHUP after InstallStopSignals(); SIGHUP that is ignored, as under
// nohup, stays so. Another of them ends the process at once, but in the first half second, in which
// it is taken for the same one.
const std::atomic<bool>& StopRequested();
void InstallStopSignals();

}  // namespace hdps
