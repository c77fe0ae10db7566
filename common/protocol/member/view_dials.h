// The connections that a member opens and closes when a view arrives.
#pragma once

#include <vector>

#include "common/net/node.h"

namespace hdps {

struct Member;
struct View;

// Returns the members of `view` that have this role; of servers all that hold rows.
std::vector<Member> MembersOfRole(Role role, const View& view);

// Dials the servers that member `self` needs: a worker dials all, and a server that holds rows the
// next holder of the same rows. Of two servers, the one with the smaller number always dials,
// because a transport does not hear callers that it has dialed itself.
void DialServers(Role role, PeerId self, const View& view, Output* output);

// Drops connections and shared memory of members that left.
void HangUpWhoLeft(const View& before, const View& now, Output* output);

}  // namespace hdps
