// What is known of a model's versions: the one that answers, refreshes, and refusals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/enum_words.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/manifest.h"

namespace hdps {

// Why a checkpoint was not taken.
enum class Refusal : uint8_t {
  kDamaged,    // Bytes or weights are missing or wrong, its own or those of what it builds on.
  kUnfit,      // It is of another job, or scores of rows that were asked for are not finite.
  kMemory,     // It does not fit beside the version that answers.
  kUnreadable  // The disk failed.
};
constexpr auto WordsOf(Refusal) {
  using enum Refusal;
  return EnumWords(kDamaged, "damaged", kUnfit, "unfit", kMemory, "memory", kUnreadable,
                   "unreadable");
}
inline constexpr size_t kRefusals = 4;
Refusal RefusalOf(Code code);

// Counts are those since the start; the first load is one of them.
struct VersionFacts {
  struct Refreshes {
    uint64_t count = 0;
    uint64_t bytes = 0;  // Of the files that were read.
    int64_t ns = 0;      // From the first byte of these to the first answer of the version.
  };

  Clock step = kNoClock;
  Clock pinned = kNoClock;  // kNoClock: newer versions are followed.
  int64_t taken_ms = 0;     // Time at which `step` began to answer, by the model's clock.
  Refreshes whole, deltas;  // Versions that were loaded beside; deltas, each counted.
  std::array<uint64_t, kRefusals> refused = {};  // By Refusal; each checkpoint once a reason.
};

}  // namespace hdps
