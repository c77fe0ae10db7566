// Vectorized activations on the host: rows [first, first + count) of Over().
#pragma once

#include <cstddef>

#include "kernels/row_tasks.h"
#include "kernels/vector_width.h"

namespace hdps {

// Computes tanh at most 2 units in the last place away, with the same bits at every vector width;
// other kinds element by element.
void HostRows(VectorWidth width, const Activate& task, size_t first, size_t count);

}  // namespace hdps
