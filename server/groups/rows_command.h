// Carries out the scheduler's commands that work on all rows of a server.
#pragma once

#include <vector>

#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "embedding/snapshot/snapshot.h"
#include "server/groups/hosted_groups.h"

namespace hdps {

struct Command;

// The result of a command.
struct CommandOutcome {
  CommandDone done;
  HostedGroups::Loaded loaded;  // kLoad: the new rows; without one for a group, it keeps its rows.
  std::vector<TakenSnapshot> taken;  // kSave: copies still to be written.
};

// Carries out kLoad, kSave, kEvict or kDigest. May take long; nothing else may touch the rows
// meanwhile.
// `arrived`: shards that came ahead, for a kLoad with `keep`.
CommandOutcome RunOnRows(const Command& command, HostedGroups& groups, FileSystem& files,
                         ArrivedShards& arrived);
// Returns why a server must not carry out a command in its folder: it may reach no other files of
// the server's user, and a checkpoint that is whole was saved by this server's successor, unless
// `saves_over`.
Status CheckCommand(const Command& command, FileSystem& files, bool saves_over);

}  // namespace hdps
