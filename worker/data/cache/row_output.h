// The file of packed rows while it is written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "worker/data/cache/cached_rows.h"
#include "worker/data/cache/row_file.h"

namespace hdps {

// Writes blocks beside the thread that fills them: hashes and copies into the page cache take a
// fifth of the time of parsing, or more.
//
// Invariant: bytes lie in the file in the order of the calls, each with the hash of its piece. At
// most one block waits or is being written. The file has its name only when it is whole.
class RowOutput : public std::enable_shared_from_this<RowOutput> {
 public:
  // Locks the file. kInvalidArgument if another process writes it. `files` and the executor, which
  // may be null, must outlive the call of Finish() or GiveUp(), one of which must follow.
  static Result<std::shared_ptr<RowOutput>> Create(FileSystem& files, const std::string& path,
                                                   const std::string& holder, Executor* executor);

  // Takes a whole block to write it, and gives another one for it, whose bytes are anything. Errors
  // are those of the blocks before.
  Status Hand(CachedRows::Block* block);
  // Writes the last rows, the index and the stamp, and gives the file its name.
  Status Finish(std::span<const std::byte> last_rows, std::span<const RowEntry> index,
                const std::string& stamp);
  // Removes what was written. May follow Finish(), and does nothing then.
  void GiveUp();

 private:
  RowOutput() = default;
  // Writes the block that waits, unless another thread has taken it.
  void WriteWaiting() HDPS_EXCLUDES(mutex_);
  // Returns when no block waits or is being written, so that the members below may be used.
  Status Settle() HDPS_EXCLUDES(mutex_);
  Status Append(std::span<const std::byte> bytes);
  Status Align();
  void EndPiece();

  Executor* executor_ = nullptr;
  Mutex mutex_;
  ConditionVariable changed_;
  bool waiting_ HDPS_GUARDED_BY(mutex_) = false;
  bool writing_ HDPS_GUARDED_BY(mutex_) = false;
  Status status_ HDPS_GUARDED_BY(mutex_);

  // Used by the thread that has set writing_ or, when that is not set, by the caller.
  CachedRows::Block block_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;
  std::unique_ptr<HashStream> piece_ = std::make_unique<HashStream>();
  std::vector<uint64_t> hashes_;
};

}  // namespace hdps
