// A member's record of the scheduler's commands: those in progress, and recent answers.
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

// Number of commands remembered with their answers; an older command is never executed.
inline constexpr size_t kAnswersMax = 64;

// A command that was accepted, and its answer.
struct TakenCommand {
  CommandKind command = CommandKind::kFinish;
  bool answered = false;
  std::optional<CommandDone> answer;  // Absent once the scheduler is certain not to ask again.
};

// The commands of the scheduler by id.
//
// Invariant: an id is accepted once. Ids at or below floor_ are forgotten and never accepted. Any
// other id is accepted, even after a higher one, because a command that was lost in transit is
// repeated.
class CommandBook {
 public:
  void Accept(const Command& command) {
    if (command.id <= floor_ || taken_.count(command.id) > 0) return;
    taken_[command.id].command = command.command;
    waiting_[command.id] = command;
    if (taken_.size() > kAnswersMax) ForgetOldest();
  }

  // Drops the commands that were not handed out, because the job went back to a checkpoint.
  void DropWaiting() { waiting_.clear(); }

  // Returns the new commands, in order of id.
  std::vector<Command> TakeWaiting() {
    std::vector<Command> commands;
    for (auto& [id, command] : waiting_) commands.push_back(std::move(command));
    waiting_.clear();
    return commands;
  }

  // Stores an answer. Returns the kind of its command, or none if the command was answered before
  // or is unknown.
  std::optional<CommandKind> Answer(const CommandDone& done) {
    const auto taken = taken_.find(done.id);
    if (taken == taken_.end() || taken->second.answered) return std::nullopt;
    // Scores may be large. The scheduler must have the earlier ones, because otherwise it would not
    // have asked for these.
    if (!done.scores.empty()) {
      for (auto& [id, other] : taken_) {
        if (other.answer && !other.answer->scores.empty()) other.answer.reset();
      }
    }
    taken->second.answered = true;
    taken->second.answer = done;
    return taken->second.command;
  }

  // Returns the answer to repeat for a known command; null for a new one.
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
