// Attention among the vectors of an example, in heads, for the layers that have it.
#pragma once

#include <cstdint>

#include "tools/export/onnx/onnx_site.h"

namespace hdps {

struct OnnxHeads {
  int64_t count = 1, vectors = 0, head_dim = 0;
  float scale = 1;       // Of the scores.
  bool earlier = false;  // A vector sees itself and those before it alone.
};

// Adds kernels/tasks/attention_tasks.h, AttendFields, without its residuals: for each head the
// softmax over the vectors that a vector sees of scale * <query, key>, times their values. queries,
// keys, values and the result are [n, F, heads * head_dim]. `mask`, bool [n, F], has the vectors of
// each example; empty: all F. What a vector behind the last one gives means nothing.
OnnxValue Attended(const OnnxSite& site, const OnnxHeads& heads, const OnnxValue& queries,
                   const OnnxValue& keys, const OnnxValue& values, const OnnxValue& mask);

}  // namespace hdps
