// Numbers, repeats and closes commands.
#include "scheduler/plan/command_tracker.h"

#include <algorithm>
#include <utility>

namespace hdps {

CommandId CommandTracker::Send(PeerId to, Command command, TimeMs now) {
  const CommandId id = command.id = {++last_id_[to]};
  open_[{to, id}] = {std::move(command), now, std::nullopt};
  return id;
}

void CommandTracker::SendAgain(PeerId to, const Command& command, TimeMs now) {
  last_id_[to] = std::max(last_id_[to], command.id.value);
  open_[{to, command.id}] = {command, now, std::nullopt};
}

std::optional<Command> CommandTracker::TakeAnswered(PeerId from, CommandId id) {
  const auto open = open_.find({from, id});
  if (open == open_.end()) return std::nullopt;
  std::optional<Command> command(std::move(open->second.command));
  open_.erase(open);
  return command;
}

std::vector<CommandTracker::Due> CommandTracker::TakeDue(TimeMs now) {
  std::vector<Due> due;
  for (auto& [key, open] : open_) {
    if (open.sent && now - *open.sent < retry_ms_) continue;
    open.sent = now;
    due.push_back({key.first, open.command});
  }
  return due;
}

void CommandTracker::Drop(PeerId member) {
  std::erase_if(open_, [member](const auto& open) { return open.first.first == member; });
}

void CommandTracker::DropAll(CommandKind kind) {
  std::erase_if(open_, [kind](const auto& open) { return open.second.command.command == kind; });
}

bool CommandTracker::phase_is_answered() const {
  return std::ranges::all_of(
      open_, [](const auto& open) { return RunsBeside(open.second.command.command); });
}

bool CommandTracker::IsOpen(CommandKind kind) const {
  return std::ranges::any_of(
      open_, [kind](const auto& open) { return open.second.command.command == kind; });
}

bool CommandTracker::has_new() const {
  return std::ranges::any_of(open_, [](const auto& open) { return !open.second.sent; });
}

std::vector<CommandTracker::Waiting> CommandTracker::waiting() const {
  std::vector<Waiting> waiting;
  for (const auto& [key, open] : open_) {
    waiting.push_back({key.first, open.command.command, open.since});
  }
  return waiting;
}

}  // namespace hdps
