// Writes the states of one scheduler process one behind the other into one file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Appends states that only a crash of the process must spare: a small file in place of another one
// takes the scheduler a tenth of a millisecond to some, because the disk hears of it at once, and
// all members wait for it. A state that must survive a crash of the machine begins a new file.
//
// Invariant: the file holds the newest state that Write() has returned ok for, or Write() has
// failed.
class StateLog {
 public:
  // States that are appended to one file together; then a new file begins.
  static constexpr uint64_t kBytesMax = 1 << 20;

  // `text` is one line, or several none of which begins with '#'.
  Status Write(FileSystem& files, const std::string& path, const std::string& text,
               Survives survives);

 private:
  std::unique_ptr<WritableFile> file_;  // Null: the next state begins a new file.
  uint64_t bytes_ = 0;
};

// Returns the newest whole state in the bytes of a file. The first one is without a checksum,
// because the file came into its place with it.
std::string_view NewestState(std::string_view file);

}  // namespace hdps
