// Vectorized element chains on the host: rows [first, first + count) of Over(), with the same bits
// as element by element.
#pragma once

#include <cstddef>

#include "kernels/row_tasks.h"
#include "kernels/vector_width.h"

namespace hdps {

void HostRows(VectorWidth width, const RunChain& task, size_t first, size_t count);
void HostRows(VectorWidth width, const RunChainBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SumColumns& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SumChainBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const NormalizeColumnsBackward& task, size_t first, size_t count);
// An activation alone: tanh by a formula of its own, at most 2 units in the last place away; other
// kinds element by element.
void HostRows(VectorWidth width, const Activate& task, size_t first, size_t count);

}  // namespace hdps
