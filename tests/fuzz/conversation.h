// Records what a node of a simulated cluster receives in its whole life, and replays it with a
// fuzzer's changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/job/spec/train_spec.h"
#include "tests/fuzz/target.h"
#include "tests/sim/cluster.h"

namespace hdps::fuzz {

// A frame that a node receives, or a tick.
struct Given {
  TimeMs now = 0;
  PeerId from;
  std::optional<Frame> frame;
};
struct Conversation {
  PeerId self;
  std::vector<Given> given;
  std::vector<PeerId> peers;  // All senders, and a stranger.
};

// Returns the small cluster, with copies and checkpoints, in which a mode's conversations are
// recorded.
sim::ClusterOptions ClusterOf(Mode mode);
Conversation Record(Role role, Mode mode);

// Replays the conversation with the changes that `input` selects: the next part, one left out,
// repeated or changed, one from another peer, a sample of any message, or a tick. Ends with the
// input or the node. A node that sends without bound ends the process.
Verdict Converse(const Conversation& conversation, Node* node, Input* input);

// Returns inputs that replay the conversation as a whole, and some with one part left out,
// repeated, or changed.
std::vector<std::string> ConversationSeeds();

}  // namespace hdps::fuzz
