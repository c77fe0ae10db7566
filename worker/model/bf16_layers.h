// Which layers multiply in bf16, and which values then stand in bf16 alone.
#pragma once

#include <vector>

#include "kernels/dense_ops.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// Marks dense layers of at least 16 units, where `ops` has products in bf16. What such layers alone
// read stands in bf16 and nowhere else: a dense layer's output with one reader, and its gradient;
// an embedding; a concat, with the embeddings and numbers that live in it; and the gradient of
// either that rows alone get, whose sums are in fp32. Comes last, when chains
// and first layers are joined.
void ChooseBf16(const Job& job, const DenseOps& ops, std::vector<Place>& places);

}  // namespace hdps
