// Carries out one command over all groups.
#include "server/groups/rows_command.h"

#include <glog/logging.h>

#include <utility>

#include "common/protocol/manifest.h"
#include "server/commanded_folder.h"

namespace hdps {
namespace {

Status Run(const Command& command, HostedGroups& groups, FileSystem& files, ArrivedShards& arrived,
           CommandOutcome* outcome) {
  switch (command.command) {
    case CommandKind::kLoad: {
      if (command.keep) return groups.TakeShards(files, command, arrived);
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

Status CheckCommand(const Command& command, FileSystem& files, bool saves_over) {
  using enum CommandKind;
  const CommandKind kind = command.command;
  if (kind != kLoad && kind != kSave && kind != kSaveAhead && kind != kLoadAhead) return {};
  // Begins anew, or drops what has come.
  if ((kind == kLoad || kind == kLoadAhead) && command.path.empty()) return {};
  HDPS_RETURN_IF_ERROR(CheckCommandedFolder(command.path));
  if (kind == kSave && !saves_over && files.Exists(JoinPath(command.path, kManifestName))) {
    return {Code::kInvalidArgument,
            command.path + " is whole, and nothing is written into it any more"};
  }
  return {};
}

CommandOutcome RunOnRows(const Command& command, HostedGroups& groups, FileSystem& files,
                         ArrivedShards& arrived) {
  CommandOutcome outcome;
  outcome.done.id = command.id;
  const Status status = Run(command, groups, files, arrived, &outcome);
  outcome.done.code = status.code();
  outcome.done.message = status.message();
  return outcome;
}

}  // namespace hdps
