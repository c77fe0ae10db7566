// Who is cut off from the others though it beats, as the workers tell it.
#pragma once

#include <cstddef>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/membership_messages.h"

namespace hdps {

// What a worker says in its heartbeat of the servers that it has long not heard.
struct LinkReport {
  PeerId worker;
  std::vector<SilentServer> silent;
};

struct CutLink {
  PeerId peer;  // The member that is cut off.
  bool is_worker = false;
  size_t links = 0;   // A server: workers that do not hear it. A worker: servers that it does not.
  TimeMs for_ms = 0;  // All of these links, at least.
};

// A server is cut off when two workers, or all there are, have heard nothing of it for more than
// `dead_after_ms`: they ask each server every heartbeat, and one that works for long or waits for
// its disk answers still. A worker that alone hears none of several servers is cut off itself. One
// silent link among many that are well is nobody's loss.
std::vector<CutLink> FindCutLinks(const std::vector<LinkReport>& reports,
                                  const std::vector<PeerId>& servers, TimeMs dead_after_ms);

}  // namespace hdps
