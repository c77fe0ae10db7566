// The share of the cores that a thread gets where there are not enough for all.
#pragma once

namespace hdps {

// Lets threads of usual priority run before the calling thread from now on. It still gets about a
// tenth of a core that others want, so its work ends.
void LowerThreadPriority();

}  // namespace hdps
