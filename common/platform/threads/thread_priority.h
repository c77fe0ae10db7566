// The share of the cores that a thread gets where there are not enough for all.
#pragma once

namespace hdps {

// Lets threads of usual priority run before the calling thread, and those that it starts, from now
// on. It still gets some 0.3 % of a core that others want all the time.
void LowerThreadPriority();

}  // namespace hdps
