// Follows a log: the files of a followed entry, of which the newest may still grow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_identity.h"
#include "common/platform/file_system.h"
#include "worker/data/compressed_file.h"
#include "worker/data/follow/row_wait.h"
#include "worker/data/records/record_files.h"

namespace hdps {

struct DataSpec;

// The rows of a log are those of its files in the order of their names. A file is complete when
// there is one with a larger name, or the marker of the end; until then a reader waits at its end.
// Packed files and files of records are complete as soon as they have their name.
//
// Invariant: what readers of the same log get does not depend on when they look. Whatever would
// change that is an error: kCorruption for a file that shrinks, is replaced, is gone, or grows
// after it was complete, and kInvalidArgument for a new file whose name is not the largest.
//
// Used by one thread.
class FollowedLog {
 public:
  // Requires: `files` outlives it. `records` may be null.
  FollowedLog(FileSystem& files, const DataSpec& data, std::shared_ptr<RecordFiles> records,
              std::shared_ptr<RowWait> wait);
  ~FollowedLog();

  // Forgets all files, for a reader that begins again.
  void Restart();
  // Files that were found, in order; later ones are added behind them.
  const std::vector<std::string>& paths() const { return paths_; }
  // Opens file `index`, for which it waits. Returns null if the log has ended before it. Read() of
  // the file waits for more bytes, and returns 0 if the file is complete. `place` returns the place
  // of the last line, empty before the first. kCancelled after a stop of the wait.
  Result<std::unique_ptr<UnpackedFile>> Open(size_t index, std::function<std::string()> place);

 private:
  class GrowingFile;
  // A file as it was when it was opened, and what was read of it.
  struct Seen {
    std::optional<FileIdentity> identity;  // None: the file system does not know it.
    uint64_t bytes = 0;
    bool whole = false;  // All bytes were read.
  };

  // Looks for new files and for the marker, and whether the files are still what was read.
  Status Look();
  Status CompareNames(const std::vector<std::string>& now) const;
  Status CheckFile(size_t index) const;
  bool IsComplete(size_t index) const { return ended_ || index + 1 < paths_.size(); }
  Status Wait(const std::string& behind);
  void EndWait();
  // Opens a file that does not grow.
  Result<std::unique_ptr<UnpackedFile>> OpenWhole(size_t index);
  // Returns whether file `index` is packed, which its first bytes tell.
  Result<bool> IsPacked(size_t index, const std::function<std::string()>& place);

  FileSystem& files_;
  const DataSpec& data_;
  const std::shared_ptr<RecordFiles> records_;
  const std::shared_ptr<RowWait> wait_;
  bool waits_ = false;
  std::vector<std::string> paths_;
  std::vector<Seen> seen_;  // [files that were opened]
  bool ended_ = false;      // The marker is there.
};

}  // namespace hdps
