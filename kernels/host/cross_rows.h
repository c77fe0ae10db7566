// Vectorized crosses of fields on the host: rows [first, first + count) of Over(), with the same
// bits as element by element.
#pragma once

#include <cstddef>

#include "kernels/row_tasks.h"
#include "kernels/vector_width.h"

namespace hdps {

void HostRows(VectorWidth width, const CrossRows& task, size_t first, size_t count);
void HostRows(VectorWidth width, const CrossRowsBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const BilinearRows& task, size_t first, size_t count);
void HostRows(VectorWidth width, const BilinearRowsBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const PairProducts& task, size_t first, size_t count);
void HostRows(VectorWidth width, const MapsBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const FirstBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const TwiceBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SplitVectors& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SplitVectorsBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SumComponents& task, size_t first, size_t count);
void HostRows(VectorWidth width, const SumComponentsBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const GateExperts& task, size_t first, size_t count);
void HostRows(VectorWidth width, const GateExpertsBackward& task, size_t first, size_t count);
void HostRows(VectorWidth width, const TanhBackward& task, size_t first, size_t count);

}  // namespace hdps
