// Finds members that send heartbeats but are cut off from other members, from the reports of
// workers.
#pragma once

#include <cstddef>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/membership_messages.h"

namespace hdps {

// The part of a worker's heartbeat about servers that it has not heard for long.
struct LinkReport {
  PeerId worker;
  std::vector<SilentServer> silent;
};

struct CutLink {
  PeerId peer;  // The member that is cut off.
  bool is_worker = false;
  // For a server: workers that do not hear it. For a worker: servers that it does not hear.
  size_t links = 0;
  TimeMs for_ms = 0;  // The shortest silence of these links.
};

// Returns the members that are cut off. A server is cut off if two workers, or all if there are
// fewer, have heard nothing of it for more than `dead_after_ms`: workers call each server every
// heartbeat, and even a server that works for long or waits for its disk answers. A worker that
// alone hears none of the servers, of which there are several, is itself cut off. One silent link
// among many good ones counts for nothing.
std::vector<CutLink> FindCutLinks(const std::vector<LinkReport>& reports,
                                  const std::vector<PeerId>& servers, TimeMs dead_after_ms);

}  // namespace hdps
