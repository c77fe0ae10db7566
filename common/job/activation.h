// The functions behind a product: their words, values and slopes, for the host and the device.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define HDPS_ACTIVATION __host__ __device__ inline
#else
#define HDPS_ACTIVATION inline
#endif

namespace hdps {

enum class Activation : uint8_t { kNone, kRelu, kSigmoid, kTanh };

// In the order of the enum, as a job file writes them.
inline constexpr const char* kActivationWords = "none, relu, sigmoid, tanh";
inline constexpr const char* kActivationDoc = "";

HDPS_ACTIVATION float ActivationOf(Activation kind, float z) {
  switch (kind) {
    case Activation::kNone:
      return z;
    case Activation::kRelu:
      return z > 0.0f ? z : 0.0f;
    case Activation::kSigmoid:
      return 1.0f / (1.0f + std::exp(-z));
    case Activation::kTanh:
      return std::tanh(z);
  }
  return z;
}

// The derivative of ActivationOf at z.
HDPS_ACTIVATION float ActivationSlope(Activation kind, float z) {
  switch (kind) {
    case Activation::kNone:
      return 1.0f;
    case Activation::kRelu:
      return z > 0.0f ? 1.0f : 0.0f;
    case Activation::kSigmoid: {
      const float y = ActivationOf(kind, z);
      return y * (1.0f - y);
    }
    case Activation::kTanh: {
      const float y = std::tanh(z);
      return 1.0f - y * y;
    }
  }
  return 1.0f;
}

}  // namespace hdps
