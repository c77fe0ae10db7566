// Writes glog's messages as lines of our own format, into one file or to the terminal.
#include <glog/logging.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "common/base/thread_annotations.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"

namespace hdps {

namespace {

// 2026-01-31T23:59:59.123Z I server_0 text
std::string Line(const std::string& program, google::LogSeverity severity, const char* file,
                 int line, const google::LogMessageTime& time, std::string_view text) {
  const std::time_t seconds = time.timestamp();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[32], rest[32];
  std::strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(rest, sizeof(rest), ".%03dZ %c ", static_cast<int>(time.usec() / 1000),
                google::GetLogSeverityName(severity)[0]);
  std::string made = std::string(stamp) + rest + program + " ";
  if (severity == google::GLOG_FATAL) made += std::string(file) + ":" + std::to_string(line) + " ";
  return made + EscapeLines(text) + "\n";
}

// Invariant: every message is written whole, one after the other. Lives as long as the process.
class LineSink : public google::LogSink {
 public:
  LineSink(std::string program, std::unique_ptr<FileSystem> files,
           std::unique_ptr<WritableFile> file)
      : program_(std::move(program)), files_(std::move(files)), file_(std::move(file)) {}

  void send(google::LogSeverity severity, const char*, const char* base_filename, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override
      HDPS_EXCLUDES(mutex_) {
    const std::string text = Line(program_, severity, base_filename, line, time, {message, length});
    MutexLock lock(mutex_);
    const bool in_file =
        file_ != nullptr && file_->Append(std::as_bytes(std::span<const char>(text))).ok();
    // glog itself prints fatal messages.
    if ((!in_file || severity == google::GLOG_ERROR) && severity != google::GLOG_FATAL) {
      PrintErrorText(text);
    }
  }

 private:
  const std::string program_;
  const std::unique_ptr<FileSystem> files_;
  Mutex mutex_;
  const std::unique_ptr<WritableFile> file_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace

Status StartLogging(const std::string& program, const std::string& log_file,
                    const std::string& level) {
  const std::vector<std::string> levels = {"info", "warning", "error"};
  int number = 0;
  while (number < 3 && levels[static_cast<size_t>(number)] != level) ++number;
  if (number == 3) {
    return Status(
        Code::kInvalidArgument,
        "--log: \"" + level + "\" is not one of info, warning, error" + DidYouMean(level, levels));
  }
  std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  std::unique_ptr<WritableFile> file;
  if (!log_file.empty()) {
    const std::string folder = std::filesystem::path(log_file).parent_path().string();
    Status made = files->MakeDirectories(folder);
    if (made.ok()) {
      Result<std::unique_ptr<WritableFile>> opened = files->OpenAppend(log_file);
      made = opened.status();
      if (opened.ok()) file = *std::move(opened);
    }
    if (!made.ok()) return Status(Code::kInvalidArgument, "--log_file: " + made.message());
  }
  FLAGS_minloglevel = number;
  FLAGS_logtostderr = false;
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) {
    google::SetLogDestination(severity, "");  // No log files of glog's own.
  }
  google::InitGoogleLogging(program.c_str());  // Aborts if it is called twice.
  AppendFatalErrorTo(log_file);
  google::AddLogSink(new LineSink(program, std::move(files), std::move(file)));
  return {};
}

}  // namespace hdps
