// Takes lines on any thread, and writes them on one of its own.
#include "tools/serve/watch/request_log.h"

#include <glog/logging.h>

#include <utility>

#include "common/base/show_number.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/terminal.h"

namespace hdps {

RequestLog::RequestLog(FileSystem& files, const Job& job, const RequestLogOptions& options)
    : files_(files), options_(options), rows_(job, options.share) {}

RequestLog::~RequestLog() { Close(); }

Result<std::unique_ptr<RequestLog>> RequestLog::Open(FileSystem& files, const Job& job,
                                                     const RequestLogOptions& options) {
  if (!(options.share > 0 && options.share <= 1)) {
    return Status(Code::kInvalidArgument, "--log_share=" + ShowNumber("%g", options.share) +
                                              ": expected a share of the rows, above 0 and at "
                                              "most 1");
  }
  if (const std::string why = LoggedRows::WhyNot(job); !why.empty()) {
    return Status(Code::kInvalidArgument, "--log_requests: " + why);
  }
  std::unique_ptr<RequestLog> log(new RequestLog(files, job, options));
  log->has_lines_ = files.Exists(options.path);
  if (const Status begun = log->BeginFile(); !begun.ok()) {
    return Status(Code::kInvalidArgument,
                  "--log_requests=" + options.path + " cannot be written: " + begun.message());
  }
  RequestLog* const writer = log.get();
  log->thread_ = StartThread("hdps_log", [writer] { writer->Run(); });
  return log;
}

void RequestLog::Saw(const Answered& answered) {
  if (answered.request == nullptr || answered.answer == nullptr) return;
  LoggedRows::Lines lines =
      rows_.Choose(*answered.request, *answered.answer, UnixMs(), kWaitingBytesMax);
  unlogged_.fetch_add(lines.left_out, std::memory_order_relaxed);
  if (lines.rows == 0) return;
  {
    const MutexLock lock(mutex_);
    if (!closed_ && waiting_bytes_ + lines.text.size() <= kWaitingBytesMax) {
      waiting_bytes_ += lines.text.size();
      waiting_.push_back(std::move(lines));
      changed_.notify_one();
      return;
    }
  }
  unlogged_.fetch_add(lines.rows, std::memory_order_relaxed);
}

void RequestLog::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }
  if (thread_ != nullptr) thread_->Join();
  thread_ = nullptr;
}

void RequestLog::Run() {
  while (true) {
    std::deque<LoggedRows::Lines> taken;
    {
      MutexLock lock(mutex_);
      while (!closed_ && waiting_.empty()) changed_.wait(mutex_);
      if (waiting_.empty()) break;
      taken.swap(waiting_);
      waiting_bytes_ = 0;
    }
    for (const LoggedRows::Lines& lines : taken) {
      const Status written = Write(lines.text);
      (written.ok() ? logged_ : unlogged_).fetch_add(lines.rows, std::memory_order_relaxed);
      if (!written.ok() && !std::exchange(told_, true)) {
        LOG(WARNING) << "the log of requests cannot be written: " << written.message();
        PrintError("hdps: the log of requests cannot be written: %s\n",
                   EscapeUntrusted(written.message()).c_str());
      }
      if (written.ok()) told_ = false;
    }
  }
  if (file_ != nullptr) static_cast<void>(file_->Close());
}

Status RequestLog::Write(const std::string& lines) {
  const bool full = has_lines_ && file_bytes_ + lines.size() > options_.bytes_max / kFiles;
  if (file_ == nullptr || full) HDPS_RETURN_IF_ERROR(BeginFile());
  const Status appended = file_->Append(std::as_bytes(std::span(lines)));
  if (appended.ok()) {
    file_bytes_ += lines.size();
    has_lines_ = true;
    return appended;
  }
  file_ = nullptr;  // Its last line may be cut; the next one begins a new file.
  return appended;
}

std::string RequestLog::PathOf(int number) const {
  return number == 0 ? options_.path : options_.path + "." + std::to_string(number);
}

Status RequestLog::BeginFile() {
  if (file_ != nullptr) {
    const Status closed = std::exchange(file_, nullptr)->Close();
    if (!closed.ok()) return closed;
  }
  if (has_lines_) {
    for (int number = kFiles - 2; number >= 0; --number) {
      if (!files_.Exists(PathOf(number))) continue;
      HDPS_RETURN_IF_ERROR(files_.RenameUnsynced(PathOf(number), PathOf(number + 1)));
    }
  }
  has_lines_ = false;
  HDPS_ASSIGN_OR_RETURN(file_, files_.Create(options_.path));
  const std::string header = rows_.Header();
  file_bytes_ = header.size();
  const Status appended = file_->Append(std::as_bytes(std::span(header)));
  if (!appended.ok()) file_ = nullptr;
  return appended;
}

}  // namespace hdps
