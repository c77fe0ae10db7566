// Numbers, repeats and answers of commands.
#include "scheduler/command_board.h"

#include <utility>

namespace hdps {

void CommandBoard::Send(PeerId to, Command command, TimeMs now) {
  command.id = {++last_id_[to]};
  const std::pair key(to, command.id);
  open_[key] = {std::move(command), now, std::nullopt};
}

std::optional<Command> CommandBoard::TakeAnswered(PeerId from, CommandId id) {
  const auto open = open_.find({from, id});
  if (open == open_.end()) return std::nullopt;
  std::optional<Command> command(std::move(open->second.command));
  open_.erase(open);
  return command;
}

std::vector<CommandBoard::Due> CommandBoard::TakeDue(TimeMs now) {
  std::vector<Due> due;
  for (auto& [key, open] : open_) {
    if (open.sent && now - *open.sent < retry_ms_) continue;
    open.sent = now;
    due.push_back({key.first, open.command});
  }
  return due;
}

void CommandBoard::Drop(PeerId member) {
  std::erase_if(open_, [member](const auto& open) { return open.first.first == member; });
}

std::vector<CommandBoard::Waiting> CommandBoard::waiting() const {
  std::vector<Waiting> waiting;
  for (const auto& [key, open] : open_) {
    waiting.push_back({key.first, open.command.command, open.since});
  }
  return waiting;
}

}  // namespace hdps
