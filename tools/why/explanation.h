// Who of a job waits for whom, and what is at the bottom of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/status_messages.h"

namespace hdps {

// What the scheduler has said, and what it had said `apart_ms` before; none: it said it once only.
struct WhyFacts {
  StatusReply now;
  std::optional<StatusReply> before;
  int64_t apart_ms = 0;
};

// What is found, the worst first: those of one kind make one explanation.
enum class WhyKind : uint8_t {
  kMissing,  // The job has not begun: not all members have come.
  kLost,     // It stands until others take the places of lost ones.
  kSilent,   // A member is not heard.
  kDeaf,     // One hears nothing of the scheduler.
  kTrouble,  // One says what holds it up: its disk.
  kLink,     // Two members are well and do not hear each other.
  kGroup,    // Members wait for each other in one call of a collective.
  kCycle,    // They wait for each other in a circle.
  kData,     // One waits for a data file.
  kDisk,     // One reads or writes files of its own.
  kWork,     // One works at its stage.
  kBetween,  // The scheduler has told nobody anything.
  kNothing,  // Steps are made.
};
const char* WhyKindName(WhyKind kind);  // "missing", "lost", ...

struct Explanation {
  WhyKind kind = WhyKind::kNothing;
  std::string sentence;             // What is waited for and by whom, in one sentence.
  std::string advice;               // What to look at; empty: nothing.
  std::vector<std::string> causes;  // Members: "worker 1". None where it is none's.
  std::vector<std::string> notes;   // What else is not as it should be.
  int64_t steps = 0;                // Made by every worker between the two answers.
  struct Line {
    std::string member, place;  // "worker 1 (host-a 17)", "worker 1"
    Clock step = 0;
    std::string state;  // "read part-3.gz"
    int64_t for_ms = 0;
    std::vector<std::string> waits_for;
    std::string pending_command;  // By the scheduler, and not answered.
    int64_t pending_ms = 0;
    int64_t heard_ms = 0;  // Ago.
  };
  std::vector<Line> lines;  // Of all members.

  bool waits() const { return kind != WhyKind::kNothing; }
};

Explanation Explain(const WhyFacts& facts);

// For people, the sentence first; and for scripts.
std::string ToText(const StatusReply& status, const Explanation& explanation);
std::string ToJson(const StatusReply& status, const Explanation& explanation);

// "0.4 s", "12.3 s", "5 min 20 s", "3 h 5 min".
std::string Duration(int64_t ms);

}  // namespace hdps
