// Dot products of all pairs of vectors of one example, as DLRM takes them.
#pragma once

#include "kernels/matrix.h"

namespace hdps {

// The vectors of an example, as DLRM takes them: the dense vector, if any, then the F embeddings.
// There are V in all, v_0 to v_{V - 1}.
struct DotInputs {
  ConstMatrix embeddings;  // [n, F * dim]
  ConstMatrix dense;       // [n, dim], or without data.
  size_t dim = 0;

  size_t num_vectors() const {
    return embeddings.cols / dim + (dense.data == nullptr ? size_t{0} : size_t{1});
  }
  DotInputs Rows(size_t first, size_t count) const {
    return {embeddings.Rows(first, count), dense.Rows(first, count), dim};
  }
};
inline size_t DotWidth(size_t num_vectors) { return num_vectors * (num_vectors - 1) / 2; }
// out[i] = <v_a, v_b> for a = 1 .. V - 1, b = 0 .. a - 1 (Naumov et al. 2019).
void Dot(const DotInputs& in, Matrix out);  // [n, DotWidth(V)]
// Gradients of the inputs from g [n, DotWidth(V)]; one without data is not computed.
struct DotGradients {
  Matrix embeddings, dense;
  Write write_embeddings = Write::kOver, write_dense = Write::kOver;
};
void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out);

}  // namespace hdps
