// Carries out one command over all groups.
#include "server/groups/rows_command.h"

#include <glog/logging.h>

#include <utility>

namespace hdps {
namespace {

Status Run(const Command& command, HostedGroups& groups, FileSystem& files,
           CommandOutcome* outcome) {
  switch (command.command) {
    case CommandKind::kLoad: {
      if (command.keep) return groups.TakeShards(files, command);
      Status status;
      outcome->loaded = groups.Load(files, command, &status);
      return status;
    }
    case CommandKind::kSave: {
      HDPS_ASSIGN_OR_RETURN(outcome->taken, groups.Save(files, command, &outcome->done));
      return {};
    }
    case CommandKind::kEvict:
      return groups.Evict(command);
    default:
      CHECK(command.command == CommandKind::kDigest);
      return groups.Digest(command, &outcome->done);
  }
}

}  // namespace

CommandOutcome RunOnRows(const Command& command, HostedGroups& groups, FileSystem& files) {
  CommandOutcome outcome;
  outcome.done.id = command.id;
  const Status status = Run(command, groups, files, &outcome);
  outcome.done.code = status.code();
  outcome.done.message = status.message();
  return outcome;
}

}  // namespace hdps
