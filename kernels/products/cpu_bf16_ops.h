// Products in bf16 on the CPU.
#pragma once

#include <memory>

#include "common/platform/executor.h"
#include "kernels/bf16_ops.h"

namespace hdps {

// For kAmx by our own tiles, for others by tiles of fixed shape on `executor`, each one Bf16Gemm.
// Null for kNone.
std::unique_ptr<Bf16Ops> NewCpuBf16Ops(Executor& executor, Bf16Products by);

// What it consists of. Null where the system refuses AMX.
std::unique_ptr<Bf16Ops> NewTileBf16Ops(Executor& executor, Bf16Products by);
void NarrowMatrix(Executor& executor, ConstMatrix from, Bf16Matrix to);

}  // namespace hdps
