// Explains what a job waits for: which members wait, and the cause at the end of the chain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct StatusReply;
struct WhyFacts;

// Kinds of explanation, in falling order of severity. Findings of one kind become one explanation.
enum class WhyKind : uint8_t {
  kMissing,  // The job has not begun: some members have not joined.
  kLost,     // The job stands until other processes replace lost ones.
  kSilent,   // A member sends no heartbeats.
  kDeaf,     // A member does not hear the scheduler.
  kTrouble,  // A member reports what stops it: its disk, a broker.
  kLink,     // Two members are well but do not receive each other's messages.
  kGroup,    // Members wait for each other in one call of a collective.
  kCycle,    // Members wait for each other in a circle.
  kData,     // A member waits for a data file.
  kDisk,     // A member reads or writes its own files.
  kWork,     // A member works at its stage.
  kRows,     // The log that the job follows, or its topic, has no more rows.
  kBetween,  // The scheduler is between two commands.
  kNothing,  // The job makes steps.
};
const char* WhyKindName(WhyKind kind);  // "missing", "lost", ...

struct Explanation {
  WhyKind kind = WhyKind::kNothing;
  std::string sentence;             // The waiting members and the cause, in one sentence.
  std::string advice;               // Advice what to check; empty: none.
  std::vector<std::string> causes;  // The members at fault: "worker 1"; may be empty.
  std::vector<std::string> notes;   // Other things that are wrong.
  int64_t steps = 0;                // Steps of every worker between the two statuses.
  struct Line {
    std::string member, place;  // "worker 1 (host-a 17)", "worker 1"
    Clock step = 0;
    std::string state;  // "read part-3.gz"
    int64_t for_ms = 0;
    std::vector<std::string> waits_for;
    std::string pending_command;  // The scheduler's command that has no answer yet.
    int64_t pending_ms = 0;
    int64_t heard_ms = 0;  // Since its last message.
  };
  std::vector<Line> lines;  // One for each member.

  bool waits() const { return kind != WhyKind::kNothing; }
};

Explanation Explain(const WhyFacts& facts);

// ToText is for people and begins with the sentence; ToJson is for scripts.
std::string ToText(const StatusReply& status, const Explanation& explanation);
std::string ToJson(const StatusReply& status, const Explanation& explanation);

// "0.4 s", "12.3 s", "5 min 20 s", "3 h 5 min".
std::string Duration(int64_t ms);

}  // namespace hdps
