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

// The vectors of an example, as DLRM takes them: the dense vector, then the F embeddings.
struct DotInputs {
  ConstMatrix embeddings;  // [n, F * dim]
  ConstMatrix dense;       // [n, dim]
};
inline size_t DotWidth(size_t num_embeddings, size_t dim) {
  return dim + num_embeddings * (num_embeddings + 1) / 2;
}
// out[i] = dense vector, then <v_a, v_b> for a = 1 .. F, b = 0 .. a - 1, where v_0 is the dense
// vector (Naumov et al. 2019).
void Dot(const DotInputs& in, Matrix out);
// Gradients of both inputs from g [n, DotWidth]; a null data pointer leaves one out.
struct DotGradients {
  Matrix embeddings, dense;
  Write write_embeddings = Write::kOver, write_dense = Write::kOver;
};
void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out);

}  // namespace hdps
