// The tasks of element chains in the vectors of the host: rows [first, first + count) of what
// Over() gives, with the bits that the elements have one by one.
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
