// What a node of a simulated cluster is given in its whole life, and a fuzzer's version of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/job/spec/train_spec.h"
#include "tests/fuzz/target.h"
#include "tests/sim/cluster.h"

namespace hdps::fuzz {

// A frame, or a tick where there is none.
struct Given {
  TimeMs now = 0;
  PeerId from;
  std::optional<Frame> frame;
};
struct Conversation {
  PeerId self;
  std::vector<Given> given;
  std::vector<PeerId> peers;  // Who has sent to it, and a stranger.
};

// The small cluster, with copies and checkpoints, that a mode's conversations are from.
sim::ClusterOptions ClusterOf(Mode mode);
Conversation Record(Role role, Mode mode);

// Gives `node` the conversation as `input` will have it: its next part, one left out, one again,
// one changed, one from another peer, a sample of any message, or time alone; until the input ends
// or the node does. A node that answers without bound ends the process.
Verdict Converse(const Conversation& conversation, Node* node, Input* input);

// The whole conversation; with one part in some left out, repeated, or changed.
std::vector<std::string> ConversationSeeds();

}  // namespace hdps::fuzz
