// Products in bf16 on the CPU.
#pragma once

#include <memory>

#include "common/platform/executor.h"
#include "kernels/bf16_ops.h"

namespace hdps {

// Returns products for `by`: kAmx uses our own tiles, the others use tiles of fixed shape on
// `executor`, each computed by Bf16Gemm. Returns null for kNone.
std::unique_ptr<Bf16Ops> NewCpuBf16Ops(Executor& executor, Bf16Products by);

// Parts of the above. NewTileBf16Ops returns null if the system refuses AMX.
std::unique_ptr<Bf16Ops> NewTileBf16Ops(Executor& executor, Bf16Products by);
void NarrowMatrix(Executor& executor, ConstMatrix from, Bf16Matrix to);

}  // namespace hdps
