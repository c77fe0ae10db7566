// The plain loops of the pair dots; sums run in order of vector, then dimension.
#include "kernels/host/pair_dots.h"

#include <algorithm>
#include <vector>

namespace hdps {
namespace {

// Uses four running sums, which fit a vector.
float DotOf(const float* x, const float* y, size_t dim) {
  float lanes[4] = {};
  size_t d = 0;
  for (; d + 4 <= dim; d += 4) {
    for (size_t lane = 0; lane < 4; ++lane) lanes[lane] += x[d + lane] * y[d + lane];
  }
  float sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  for (; d < dim; ++d) sum += x[d] * y[d];
  return sum;
}

void Vectors(const DotInputs& in, size_t row, std::vector<const float*>& v) {
  size_t a = 0;
  if (in.dense.data != nullptr) v[a++] = in.dense.Row(row);
  for (const float* x = in.embeddings.Row(row); a < v.size(); x += in.dim) v[a++] = x;
}

}  // namespace

void Dot(const DotInputs& in, Matrix out) {
  std::vector<const float*> v(in.num_vectors());
  for (size_t i = 0; i < out.rows; ++i) {
    Vectors(in, i, v);
    float* result = out.Row(i);
    for (size_t a = 1; a < v.size(); ++a) {
      for (size_t b = 0; b < a; ++b) *result++ = DotOf(v[a], v[b], in.dim);
    }
  }
}

void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) {
  const size_t first = in.dense.data == nullptr ? 0 : 1;  // The vector of the first embedding.
  std::vector<const float*> v(in.num_vectors());
  for (size_t i = 0; i < g.rows; ++i) {
    Vectors(in, i, v);
    for (size_t a = 0; a < v.size(); ++a) {
      const bool dense = a < first;
      if ((dense ? out.dense.data : out.embeddings.data) == nullptr) continue;
      float* __restrict to =
          dense ? out.dense.Row(i) : out.embeddings.Row(i) + (a - first) * in.dim;
      if ((dense ? out.write_dense : out.write_embeddings) == Write::kOver) {
        std::fill_n(to, in.dim, 0.0f);
      }
      for (size_t b = 0; b < v.size(); ++b) {
        if (b == a) continue;
        const float factor = g.Row(i)[a > b ? DotWidth(a) + b : DotWidth(b) + a];
        const float* other = v[b];
        for (size_t d = 0; d < in.dim; ++d) to[d] += factor * other[d];
      }
    }
  }
}

}  // namespace hdps
