// Calls of rclone, which copies checkpoints to and from object storage.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/programs/program.h"

namespace hdps {

// Exit statuses of rclone for a path that does not exist, which may be what is wanted.
constexpr bool IsNothingThere(int status) { return status == 3 || status == 4; }
// The exit status if there is no rclone: that of `nice`, which starts it.
inline constexpr int kNoRclone = 127;

// Returns whether the text has the form REMOTE:PATH, or :BACKEND:PATH, of rclone.
bool LooksRemote(const std::string& path);
// Returns whether rclone is to read the path: it looks remote, and there is no such local file.
bool IsRemote(FileSystem& files, const std::string& path);
// Appends a name to a remote path.
std::string JoinRemote(const std::string& remote, const std::string& name);

// kBehind leaves the processor to others, for copies beside training.
enum class RclonePriority : uint8_t { kUsual, kBehind };
// Returns the words that start rclone with these. It ends when the thread that starts it ends, and
// tells its progress on stderr every second.
std::vector<std::string> RcloneCommand(RclonePriority priority, std::vector<std::string> words);
// Returns the words as an operator types them.
std::string RcloneText(const std::vector<std::string>& words);

// Returns why rclone failed, in its own words.
std::string RcloneFault(const ProgramEnd& end);
// Returns the progress in a line that it has printed; empty if the line tells none.
std::string RcloneProgress(const std::string& line);

// Runs rclone to its end, for at most `limit_ms`, and calls `progress`, unless it is empty, about
// once a second. Errors: kInvalidArgument if rclone cannot be started; kTimeout.
Result<ProgramEnd> RunRclone(Programs& programs, std::vector<std::string> words, int64_t limit_ms,
                             const std::function<void(const std::string&)>& progress = {});

}  // namespace hdps
