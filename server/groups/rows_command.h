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
CommandOutcome RunOnRows(const Command& command, HostedGroups& groups, FileSystem& files);

}  // namespace hdps
