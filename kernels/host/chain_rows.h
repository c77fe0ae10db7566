// Vectorized element chains on the host: rows [first, first + count) of Over(), with the same bits
// as element by element.
#pragma once

#include <cstddef>

#include "kernels/tasks/column_norm.h"
#include "kernels/tasks/element_chain.h"
#include "kernels/vector_width.h"

namespace hdps {

void HostRows(VectorWidth width, const RunChain& task, size_t first, size_t count);
void HostRows(VectorWidth width, const RunChainBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SumColumns& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SumChainBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const NormalizeColumnsBackward& task, size_t first, size_t count);

}  // namespace hdps
