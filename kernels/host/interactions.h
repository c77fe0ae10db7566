// Products between the vectors of one example: factorization machine, cross network, pair dots.
#pragma once

#include "kernels/matrix.h"

namespace hdps {

// x [n, F * dim] holds F vectors an example.
// out[i, 0] = 0.5 * sum over d of ((sum of v_f[d])^2 - sum of v_f[d]^2)  (Rendle 2010, eq. 5).
void Fm(ConstMatrix x, size_t dim, Matrix out);
// dx[i, f, d] = g[i] * (sum of v[d] - v_f[d]).
void FmBackward(ConstMatrix x, size_t dim, ConstMatrix g, Write write, Matrix dx);

// One layer of DCN-v2 (Wang et al. 2021, eq. 1) after its product u = x W + b:
// out = x0 * u + x, elementwise.
void Cross(ConstMatrix x0, ConstMatrix u, ConstMatrix x, Matrix out);
// With g = d out: du = g * x0, and dx0 (+)= g * u.
void CrossBackward(ConstMatrix x0, ConstMatrix u, ConstMatrix g, Write write_dx0, Matrix du,
                   Matrix dx0);

// The vectors of an example, as DLRM takes them: the dense vector if there is one, then the F
// embeddings. V of them in all, v_0 to v_{V - 1}.
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
// Gradients of the inputs from g [n, DotWidth(V)]; one without data is left out.
struct DotGradients {
  Matrix embeddings, dense;
  Write write_embeddings = Write::kOver, write_dense = Write::kOver;
};
void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out);

}  // namespace hdps
