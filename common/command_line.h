// What every daemon and command does at start and end: flags, environment, logs, signals, pid file.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "common/status.h"

namespace hdps {

inline constexpr int kExitDone = 0;
inline constexpr int kExitMistaken = 2;
inline constexpr int kExitFailed = 3;

// Prints "hdps-server: error: MESSAGE" to stderr and gives the exit status that goes with the code:
// kInvalidArgument and kNotFound 2, all else 3.
int ReportAndExitStatus(const std::string& program, const Status& status);

// Parses gflags; an unknown flag, a bad value or a stray argument is reported as kInvalidArgument
// with the nearest flag's name instead of gflags' own exit 1. A flag that is not given takes its
// value from the environment variable HDPS_<FLAG> (upper case), then from the MindSpore and ps-lite
// aliases listed in the .cc (MS_SCHED_HOST and MS_SCHED_PORT, MS_SERVER_NUM, MS_WORKER_NUM,
// MS_NODE_ID; DMLC_...).
Status ParseCommandLine(const std::string& usage, int* argc, char*** argv);

// glog into `log_file` (empty: stderr only). One line: ISO time, level, rank, text.
void StartLogging(const std::string& program, const std::string& log_file,
                  const std::string& level);

// Writes this process' number; removes the file when destroyed.
class PidFile {
 public:
  explicit PidFile(const std::string& path);
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  std::string path_;
};

// Set by SIGTERM and SIGINT after InstallStopSignals(); a second signal ends the process at once.
const std::atomic<bool>& StopRequested();
void InstallStopSignals();

}  // namespace hdps
