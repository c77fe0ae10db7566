// Reports what a member is doing and which members it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// A member that the sender waits for, and for how long.
struct Awaited {
  PeerId peer;
  int64_t for_ms = 0;
  friend bool operator==(const Awaited&, const Awaited&) = default;
};

// The reason why a member does not move on.
enum class WaitReason : uint8_t {
  kNone = 0,  // It does not wait: it works at its stage.
  kMembers,   // A message from each of `awaited`.
  kGroup,     // All of `awaited` have to make the same collective call.
  kData,      // Reading the data file `subject`.
  kDisk,      // Reading or writing its own files.
  kCommand,   // A new command: it has done all that it was told.
  kRows,      // More rows of a followed log or a topic, behind `subject`, the last one.
};

// The current activity of a member.
struct Activity {
  std::string stage;    // "pull", "evaluate", "save": a stage or a command; empty if unknown.
  std::string subject;  // A file, a folder or an evaluation set; may be empty.
  WaitReason wait_reason = WaitReason::kNone;
  int64_t for_ms = 0;  // Time in this state.
  std::vector<Awaited> awaited;
  friend bool operator==(const Activity&, const Activity&) = default;
};
// Limits of the message: at most so many of `awaited` are sent, and a subject is cut at so many
// bytes.
inline constexpr size_t kAwaitedMax = 256, kSubjectBytesMax = 256;

}  // namespace hdps
