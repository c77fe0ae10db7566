// The scheduler's commands that work on all rows of a server.
#pragma once

#include <vector>

#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "embedding/snapshot/snapshot.h"
#include "server/groups/hosted_groups.h"

namespace hdps {

struct Command;

// What came of a command.
struct CommandOutcome {
  CommandDone done;
  HostedGroups::Loaded loaded;       // kLoad: the rows from now on; none: those at hand.
  std::vector<TakenSnapshot> taken;  // kSave: still to be written.
};

// Carries out kLoad, kSave or kDigest; may take long, and nobody else may touch rows meanwhile.
CommandOutcome RunOnRows(const Command& command, HostedGroups& groups, FileSystem& files);

}  // namespace hdps
