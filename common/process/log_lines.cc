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

// Invariant: every message is written whole, one after the other, to the latest target. Lives as
// long as the process.
class LineSink : public google::LogSink {
 public:
  // `files` made `file`, and lives as long; no file: lines go to the terminal.
  struct Target {
    std::string program;
    std::unique_ptr<FileSystem> files;
    std::unique_ptr<WritableFile> file;
  };

  // Writes to `target` from now on.
  void WriteTo(Target target) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::swap(target_, target);
  }

  void send(google::LogSeverity severity, const char*, const char* base_filename, int line,
            const google::LogMessageTime& time, const char* message, size_t length) override
      HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::string text =
        Line(target_.program, severity, base_filename, line, time, {message, length});
    const bool in_file = target_.file != nullptr &&
                         target_.file->Append(std::as_bytes(std::span<const char>(text))).ok();
    // glog itself prints fatal messages.
    if ((!in_file || severity == google::GLOG_ERROR) && severity != google::GLOG_FATAL) {
      PrintErrorText(text);
    }
  }

 private:
  Mutex mutex_;
  Target target_ HDPS_GUARDED_BY(mutex_);
};

// Returns the sink of the process, which glog knows from the first call on.
LineSink& ProcessSink(const std::string& program) {
  static LineSink* const sink = [&program] {
    google::InitGoogleLogging(program.c_str());  // Aborts if it is called twice.
    auto* const made = new LineSink;
    google::AddLogSink(made);
    return made;
  }();
  return *sink;
}

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
  ProcessSink(program).WriteTo({program, std::move(files), std::move(file)});
  AppendFatalErrorTo(log_file);
  return {};
}

}  // namespace hdps
