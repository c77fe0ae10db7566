// Computes the matrix products of a model alone, as the yardstick of its steps.
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

// Computes for each product the output and, in a step, the weights' gradient and the input's
// gradient.
class ModelProducts {
 public:
  // `bf16` is the kind of products on a CPU (kNone: fp32), `on_gpu` the precision on a GPU.
  static Result<std::unique_ptr<ModelProducts>> Make(const std::string& device, int threads,
                                                     const std::vector<Product>& products,
                                                     size_t batch,
                                                     Bf16Products bf16 = Bf16Products::kNone,
                                                     Precision on_gpu = Precision::kFp32);
  void Step();
  // Runs so many steps one after the other.
  double ExamplesPerSecond(int steps);
  // Computes the outputs alone so many times, each time on one thread beside the others, as rows of
  // files are scored. Requires: fp32 on a CPU.
  double ForwardExamplesPerSecond(int batches);

 private:
  struct Arrays;
  ModelProducts() = default;
  void StepInFp32();
  static void Forward(DenseOps& ops, const std::vector<Product>& products,
                      std::vector<std::unique_ptr<Arrays>>& arrays, size_t batch);
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
