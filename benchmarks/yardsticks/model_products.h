// The matrix products of a model, alone: what its steps are compared with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "benchmarks/bench.h"
#include "common/job/spec/precision.h"
#include "common/platform/executor.h"
#include "kernels/dense_ops.h"
#include "tools/plan/job_shape.h"

namespace hdps {

// Of each product the output, the weights' gradient and the input's gradient.
class ModelProducts {
 public:
  // On the CPU in bf16, or in fp32 for kNone; on a GPU as `on_gpu` says.
  static Result<std::unique_ptr<ModelProducts>> Make(const std::string& device, int threads,
                                                     const std::vector<Product>& products,
                                                     size_t batch,
                                                     Bf16Products bf16 = Bf16Products::kNone,
                                                     Precision on_gpu = Precision::kFp32);
  void Step();
  // Of so many steps one after the other.
  double ExamplesPerSecond(int steps);

 private:
  struct Arrays;
  ModelProducts() = default;
  void StepInFp32();
  void StepInBf16();

  size_t batch_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<DenseOps> ops_;
  std::vector<Product> products_;
  std::vector<std::unique_ptr<Arrays>> arrays_;

 public:
  ~ModelProducts();
};

}  // namespace hdps
