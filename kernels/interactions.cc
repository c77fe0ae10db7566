// The plain loops of the interactions; sums run in order of feature, then dimension.
#include "kernels/interactions.h"

namespace hdps {
namespace {

inline void Put(Write write, float value, float* out) {
  *out = write == Write::kAdd ? *out + value : value;
}

}  // namespace

void Fm(ConstMatrix x, size_t dim, Matrix out) {
  const size_t vectors = x.cols / dim;
  for (size_t i = 0; i < x.rows; ++i) {
    const float* v = x.Row(i);
    float total = 0.0f;
    for (size_t d = 0; d < dim; ++d) {
      float sum = 0.0f, squares = 0.0f;
      for (size_t f = 0; f < vectors; ++f) {
        sum += v[f * dim + d];
        squares += v[f * dim + d] * v[f * dim + d];
      }
      total += sum * sum - squares;
    }
    out.Row(i)[0] = 0.5f * total;
  }
}

void FmBackward(ConstMatrix x, size_t dim, ConstMatrix g, Write write, Matrix dx) {
  const size_t vectors = x.cols / dim;
  for (size_t i = 0; i < x.rows; ++i) {
    const float* v = x.Row(i);
    for (size_t d = 0; d < dim; ++d) {
      float sum = 0.0f;
      for (size_t f = 0; f < vectors; ++f) sum += v[f * dim + d];
      for (size_t f = 0; f < vectors; ++f) {
        Put(write, g.Row(i)[0] * (sum - v[f * dim + d]), dx.Row(i) + f * dim + d);
      }
    }
  }
}

void Cross(ConstMatrix x0, ConstMatrix u, ConstMatrix x, Matrix out) {
  for (size_t i = 0; i < out.rows; ++i) {
    const float *first = x0.Row(i), *product = u.Row(i), *before = x.Row(i);
    float* after = out.Row(i);
    for (size_t j = 0; j < out.cols; ++j) after[j] = first[j] * product[j] + before[j];
  }
}

void CrossBackward(ConstMatrix x0, ConstMatrix u, ConstMatrix g, Write write_dx0, Matrix du,
                   Matrix dx0) {
  for (size_t i = 0; i < g.rows; ++i) {
    for (size_t j = 0; j < g.cols; ++j) {
      du.Row(i)[j] = g.Row(i)[j] * x0.Row(i)[j];
      Put(write_dx0, g.Row(i)[j] * u.Row(i)[j], dx0.Row(i) + j);
    }
  }
}

void Dot(const DotInputs& in, Matrix out) {
  const size_t dim = in.dense.cols, vectors = in.embeddings.cols / dim + 1;
  for (size_t i = 0; i < out.rows; ++i) {
    const auto vector = [&](size_t a) {
      return a == 0 ? in.dense.Row(i) : in.embeddings.Row(i) + (a - 1) * dim;
    };
    float* result = out.Row(i);
    for (size_t d = 0; d < dim; ++d) *result++ = vector(0)[d];
    for (size_t a = 1; a < vectors; ++a) {
      for (size_t b = 0; b < a; ++b) {
        float dot = 0.0f;
        for (size_t d = 0; d < dim; ++d) dot += vector(a)[d] * vector(b)[d];
        *result++ = dot;
      }
    }
  }
}

void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) {
  const size_t dim = in.dense.cols, vectors = in.embeddings.cols / dim + 1;
  for (size_t i = 0; i < g.rows; ++i) {
    const auto vector = [&](size_t a) {
      return a == 0 ? in.dense.Row(i) : in.embeddings.Row(i) + (a - 1) * dim;
    };
    const float* pairs = g.Row(i) + dim;
    for (size_t a = 0; a < vectors; ++a) {
      if ((a == 0 ? out.dense.data : out.embeddings.data) == nullptr) continue;
      const Write write = a == 0 ? out.write_dense : out.write_embeddings;
      float* to = a == 0 ? out.dense.Row(i) : out.embeddings.Row(i) + (a - 1) * dim;
      for (size_t d = 0; d < dim; ++d) {
        float sum = a == 0 ? g.Row(i)[d] : 0.0f;
        for (size_t b = 0; b < vectors; ++b) {
          if (b == a) continue;
          const size_t high = a > b ? a : b, low = a > b ? b : a;
          sum += pairs[high * (high - 1) / 2 + low] * vector(b)[d];
        }
        Put(write, sum, to + d);
      }
    }
  }
}

}  // namespace hdps
