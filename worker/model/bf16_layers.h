// Chooses the layers that multiply in bf16, and the values that are kept in bf16 only.
#pragma once

#include <vector>

#include "kernels/dense_ops.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// Marks dense layers of at least 16 units if `ops` has products in bf16. Values that only such
// layers read are kept in bf16 and nowhere else: the output of a dense layer with one reader, and
// its gradient; an embedding; a concat, with the embeddings and numbers inside it; and the gradient
// of either if it goes to rows only, whose sums are in fp32. Must come last, after chains and first
// layers are joined.
void ChooseBf16(const Job& job, const DenseOps& ops, std::vector<Place>& places);

}  // namespace hdps
