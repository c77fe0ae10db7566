// What a member is at, and whom it waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// A member that another one waits for, and for how long it has.
struct Awaited {
  PeerId peer;
  int64_t for_ms = 0;
  friend bool operator==(const Awaited&, const Awaited&) = default;
};

// What keeps a member where it is.
enum class Hold : uint8_t {
  kWork = 0,  // Nothing: it works at its stage.
  kMembers,   // Something of each of `awaited`.
  kGroup,     // All of `awaited` have to make the same call of a collective.
  kData,      // The data file `subject` has to be read.
  kDisk,      // So have its own files, or be written.
  kOrders,    // It has done all that it was told.
};

// What a member is at.
struct Activity {
  std::string stage;    // "pull", "evaluate", "save": a stage or a command; empty: it has not said.
  std::string subject;  // Of what: a file, a folder, an evaluation set. May be empty.
  Hold hold = Hold::kWork;
  int64_t for_ms = 0;  // So long has it been so.
  std::vector<Awaited> awaited;
  friend bool operator==(const Activity&, const Activity&) = default;
};
// Of `awaited` no more are sent; a subject is cut behind so many bytes.
inline constexpr size_t kAwaitedMax = 256, kSubjectBytesMax = 256;

}  // namespace hdps
