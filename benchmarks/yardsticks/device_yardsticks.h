// What a GPU does at its simplest: products by cuBLASLt alone, copies over the bus, its own memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/base/status.h"
#include "tools/plan/job_shape.h"

namespace hdps {

enum class Precision : uint8_t;

// Calls come from one thread. Each gives seconds of the host's clock from an idle device to an idle
// device, of `times` repetitions one behind the other, without those that made memory and code
// ready.
class DeviceYardsticks {
 public:
  // kNotFound when the build or the machine has no CUDA; the message says which.
  static Result<std::unique_ptr<DeviceYardsticks>> Make();
  virtual ~DeviceYardsticks() = default;

  // Of each product the output, the weights' gradient and the input's gradient, of `batch`
  // examples. kBf16: of numbers that lie in memory in bf16, and so do outputs and the inputs'
  // gradients; else all are floats. Of the algorithms that cuBLASLt offers for a product the
  // fastest counts. kUnavailable: it has none, for a product that the message names.
  virtual Result<double> Products(std::span<const Product> products, size_t batch,
                                  Precision precision, int times) = 0;
  // Both at once, from and to pinned memory; 0 bytes: not that way.
  virtual double BusCopies(size_t up_bytes, size_t down_bytes, int times) = 0;
  // Within the device's memory: so many bytes are read, and as many written.
  virtual double MemoryCopies(size_t bytes, int times) = 0;
  // By a kernel that reads each of the bytes once.
  virtual double MemoryReads(size_t bytes, int times) = 0;
};

}  // namespace hdps
