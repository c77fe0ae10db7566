// Writes a share of the scored rows with their scores, so that they can become training data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tools/serve/watch/answer_watch.h"
#include "tools/serve/watch/logged_rows.h"

namespace hdps {

struct RequestLogOptions {
  std::string path;
  double share = 0.01;  // Of the rows; above 0, at most 1.
  // Of all files together. The newest is `path`; when it has an eighth of them it becomes PATH.1,
  // PATH.1 becomes PATH.2, and PATH.7 goes.
  uint64_t bytes_max = uint64_t{1} << 30;
};

// A log of rows in the job's own format, as LoggedRows writes them.
//
// Invariant: files have at most `bytes_max` together, and at most kWaitingBytesMax wait for the
// thread that writes. A row for which there is no room is left out and counted; no answer waits.
class RequestLog : public AnswerWatch {
 public:
  static constexpr size_t kWaitingBytesMax = size_t{8} << 20;
  static constexpr int kFiles = 8;

  // Begins a new file; one that is there becomes PATH.1. kInvalidArgument names the flag, if the
  // options are out of range, the file cannot be written, or the job's rows are no lines of cells.
  // `files` must outlive the result.
  static Result<std::unique_ptr<RequestLog>> Open(FileSystem& files, const Job& job,
                                                  const RequestLogOptions& options);
  ~RequestLog() override;  // As Close().

  void Saw(const Answered& answered) override;
  // Writes what waits, and ends the thread.
  void Close();

  uint64_t logged_rows() const { return logged_.load(std::memory_order_relaxed); }
  // Rows of the share that are not in the files.
  uint64_t unlogged_rows() const { return unlogged_.load(std::memory_order_relaxed); }

 private:
  RequestLog(FileSystem& files, const Job& job, const RequestLogOptions& options);
  void Run();
  Status Write(const std::string& lines);
  Status BeginFile();
  std::string PathOf(int number) const;

  FileSystem& files_;
  const RequestLogOptions options_;
  const LoggedRows rows_;
  std::atomic<uint64_t> logged_ = 0, unlogged_ = 0;

  // Used by the thread that writes alone, after Open().
  std::unique_ptr<WritableFile> file_;  // Null after an error.
  uint64_t file_bytes_ = 0;             // Bytes of the file at `path`, header and lines.
  bool has_lines_ = false;  // It has more than a header, so a further file may not replace it.
  bool told_ = false;       // That nothing can be written.

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<LoggedRows::Lines> waiting_ HDPS_GUARDED_BY(mutex_);
  size_t waiting_bytes_ HDPS_GUARDED_BY(mutex_) = 0;
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace hdps
