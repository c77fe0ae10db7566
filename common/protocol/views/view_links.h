// Decides whom a member dials in a view, and whose connections it ends.
#pragma once

#include "common/base/ids.h"
#include "common/net/node.h"
#include "common/protocol/view.h"

namespace hdps {

// Dials the servers that the member `self` needs: a worker dials all, and a server that holds rows
// the next holder of the same rows.
void DialServers(const View& view, Role role, PeerId self, Output* output);

// Drops connections and shared memory of members that left.
void HangUpWhoLeft(const View& before, const View& now, Output* output);

}  // namespace hdps
