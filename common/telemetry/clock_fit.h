// Brings the clocks of a trace closer together by what its requests tell.
#pragma once

#include "common/telemetry/trace_file.h"

namespace hdps {

// Changes the members' offsets as little as is needed so that each request is served between its
// ends. Each request bounds the difference of two clocks from both sides: its serving begins after
// it and ends before it. Bounds that contradict each other are left as they are.
//
// Source: the bounds of message exchanges in A. Duda et al., "Estimating global time in distributed
// systems", ICDCS 1987; solved by projections onto the bounds in turn (Kaczmarz).
void FitClocks(Trace* trace);

}  // namespace hdps
