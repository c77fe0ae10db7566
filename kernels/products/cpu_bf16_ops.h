// Products in bf16 on the CPU.
#pragma once

#include <memory>

#include "common/platform/executor.h"
#include "kernels/bf16_ops.h"

namespace hdps {

// Tiles of fixed shape on `executor`, each by one Bf16Gemm. Null for kNone.
std::unique_ptr<Bf16Ops> NewCpuBf16Ops(Executor& executor, Bf16Products by);

}  // namespace hdps
