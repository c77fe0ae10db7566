// The commands in flight: each is repeated to its member until it is answered.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/command_messages.h"

namespace hdps {

// Invariant: every command is answered at most once. Each member's commands are numbered 1, 2, 3,
// ... without a gap, so a member can tell a repeat from a new one. The number of open commands is
// bounded by those of one phase, since the next begins when none is open, and a few for each server
// that run beside phases.
class CommandTracker {
 public:
  explicit CommandTracker(TimeMs retry_ms) : retry_ms_(retry_ms) {}

  // Numbers `command` and sends it with the next TakeDue(); returns the number.
  CommandId Send(PeerId to, Command command, TimeMs now);
  // Sends `command` again under its own number, which a former scheduler process gave it.
  void SendAgain(PeerId to, const Command& command, TimeMs now);
  // The newest command number of each member.
  const std::map<PeerId, uint64_t>& last_ids() const { return last_id_; }
  void ContinueFrom(const std::map<PeerId, uint64_t>& last_ids) { last_id_ = last_ids; }
  // Returns the command that this answers; none for a repeat or an unknown number.
  std::optional<Command> TakeAnswered(PeerId from, CommandId id);
  // Returns new commands, and those unanswered for retry_ms, in order of their numbers.
  struct Due {
    PeerId to;
    Command command;
  };
  std::vector<Due> TakeDue(TimeMs now);
  void Drop(PeerId member);  // Its answers are not awaited any more.
  void DropAll() { open_.clear(); }
  void DropAll(CommandKind kind);

  bool empty() const { return open_.empty(); }
  // Is true if no command is open for which the next phase waits.
  bool phase_is_answered() const;
  bool IsOpen(CommandKind kind) const;
  // Is true if a command has not been sent yet.
  bool has_new() const;
  struct Waiting {
    PeerId member;
    CommandKind command = CommandKind::kFinish;
    TimeMs since = 0;
  };
  std::vector<Waiting> waiting() const;

 private:
  struct Open {
    Command command;
    TimeMs since = 0;
    std::optional<TimeMs> sent;
  };
  const TimeMs retry_ms_;
  std::map<PeerId, uint64_t> last_id_;
  std::map<std::pair<PeerId, CommandId>, Open> open_;
};

}  // namespace hdps
