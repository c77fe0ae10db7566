// Says what a server is doing, from what runs in it.
#include <string>
#include <vector>

#include "common/protocol/command_messages.h"
#include "server/watch/activity_watch.h"

namespace hdps {

Activity ActivityOf(const Command* command, bool background_runs,
                    const std::vector<PeerId>& waits_for, const std::string& written_folder) {
  Activity activity{"serve", "", WaitReason::kCommand, 0, {}};
  if (command != nullptr) {
    const bool digests = command->command == CommandKind::kDigest;
    activity.stage = CommandKindName(command->command);
    activity.subject = command->path;
    activity.wait_reason = digests || command->path.empty() ? WaitReason::kNone : WaitReason::kDisk;
  } else if (background_runs) {
    activity.wait_reason = WaitReason::kDisk;
  } else {
    for (const PeerId peer : waits_for) activity.awaited.push_back({.peer = peer});
    if (!activity.awaited.empty()) activity.wait_reason = WaitReason::kMembers;
  }
  if (activity.wait_reason == WaitReason::kCommand && !written_folder.empty()) {
    activity.stage = "write";
    activity.subject = written_folder;
    activity.wait_reason = WaitReason::kDisk;
  }
  return activity;
}

}  // namespace hdps
