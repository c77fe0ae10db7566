// Measures the simplest operations of a GPU: products by cuBLASLt alone, copies over the bus,
// memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/base/status.h"
#include "tools/plan/job_shape.h"

namespace hdps {

enum class Precision : uint8_t;

// Each call returns the seconds on the host's clock, from an idle device to an idle device, of
// `times` repetitions one after the other. A run before that allocates memory and loads code is not
// counted. Used by one thread.
class DeviceYardsticks {
 public:
  // Returns kNotFound if the build or the machine has no CUDA; the message says which.
  static Result<std::unique_ptr<DeviceYardsticks>> Make();
  virtual ~DeviceYardsticks() = default;

  // Computes for each product the output, the weights' gradient and the input's gradient, for
  // `batch` examples. With kBf16, inputs, outputs and the inputs' gradients are bf16 in memory;
  // otherwise all are floats. Uses the fastest of the algorithms that cuBLASLt offers. Returns
  // kUnavailable if it offers none for a product, which the message names.
  virtual Result<double> Products(std::span<const Product> products, size_t batch,
                                  Precision precision, int times) = 0;
  // Copies both ways at once, from and to pinned memory; 0 bytes: not that way.
  virtual double BusCopies(size_t up_bytes, size_t down_bytes, int times) = 0;
  // Copies within the device's memory: reads `bytes` and writes as many.
  virtual double MemoryCopies(size_t bytes, int times) = 0;
  // Runs a kernel that reads each byte once.
  virtual double MemoryReads(size_t bytes, int times) = 0;
};

}  // namespace hdps
