// The scheduler's commands as a member keeps them: those under way, and the answers of the last
// ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/command_messages.h"

namespace hdps {

// Scheduler's commands that are remembered with their answers; older ones are never carried out.
inline constexpr size_t kAnswersMax = 64;

// What came of a command.
struct TakenCommand {
  CommandKind command = CommandKind::kFinish;
  bool answered = false;
  std::optional<CommandDone> answer;  // Absent once it is certain that nobody asks again.
};

// Commands by id: those carried out at the moment and the answers of the last ones.
//
// Invariant: an id is accepted once. Ids at or below floor_ are forgotten and never accepted; any
// other is, even after a higher one, because a command that was lost on the way comes again.
class CommandBook {
 public:
  void Accept(const Command& command) {
    if (command.id <= floor_ || taken_.count(command.id) > 0) return;
    taken_[command.id].command = command.command;
    waiting_[command.id] = command;
    if (taken_.size() > kAnswersMax) ForgetOldest();
  }

  // The job went back to a checkpoint: nobody wants what was asked for before.
  void DropWaiting() { waiting_.clear(); }

  // In order of id.
  std::vector<Command> TakeWaiting() {
    std::vector<Command> commands;
    for (auto& [id, command] : waiting_) commands.push_back(std::move(command));
    waiting_.clear();
    return commands;
  }

  // What kind of command this answers; none when it was answered before or is not known.
  std::optional<CommandKind> Answer(const CommandDone& done) {
    const auto taken = taken_.find(done.id);
    if (taken == taken_.end() || taken->second.answered) return std::nullopt;
    // Scores may be large. The scheduler has the earlier ones: else it had not asked for these.
    if (!done.scores.empty()) {
      for (auto& [id, other] : taken_) {
        if (other.answer && !other.answer->scores.empty()) other.answer.reset();
      }
    }
    taken->second.answered = true;
    taken->second.answer = done;
    return taken->second.command;
  }

  // What a repeated command is answered with; null for a new one.
  const CommandDone* AnswerTo(CommandId id) const {
    const auto taken = taken_.find(id);
    return taken == taken_.end() || !taken->second.answer ? nullptr : &*taken->second.answer;
  }

 private:
  void ForgetOldest() {
    auto oldest = std::find_if(taken_.begin(), taken_.end(),
                               [](const auto& taken) { return taken.second.answered; });
    if (oldest == taken_.end()) oldest = taken_.begin();
    floor_ = std::max(floor_, oldest->first);
    waiting_.erase(oldest->first);
    taken_.erase(oldest);
  }

  CommandId floor_;
  std::map<CommandId, TakenCommand> taken_;
  std::map<CommandId, Command> waiting_;  // Not yet handed out.
};

}  // namespace hdps
