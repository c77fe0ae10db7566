// Activation functions: their words, values and slopes, for the host and the device.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/base/enum_words.h"

#ifdef __CUDACC__
#define HDPS_ACTIVATION __host__ __device__ inline
#else
#define HDPS_ACTIVATION inline
#endif

namespace hdps {

enum class Activation : uint8_t { kNone, kRelu, kSigmoid, kTanh, kGelu, kLeakyRelu };
constexpr auto WordsOf(Activation) {
  using enum Activation;
  return EnumWords(kNone, "none", kRelu, "relu", kSigmoid, "sigmoid", kTanh, "tanh", kGelu, "gelu",
                   kLeakyRelu, "leaky_relu");
}

inline constexpr const char* kActivationDoc =
    "gelu: z times the normal distribution function of z, by erf (Hendrycks and Gimpel 2016). "
    "leaky_relu: 0.01 z where z is negative (Maas et al. 2013).";

inline constexpr float kLeakySlope = 0.01f;

// Returns the distribution function of the standard normal distribution at z.
HDPS_ACTIVATION float NormalBelow(float z) {
  constexpr float kRootOfHalf = 0.70710678f;
  return 0.5f * (1.0f + std::erf(z * kRootOfHalf));
}

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
    case Activation::kGelu:
      return z * NormalBelow(z);
    case Activation::kLeakyRelu:
      return z > 0.0f ? z : kLeakySlope * z;
  }
  return z;
}

// Returns the derivative of ActivationOf() at z.
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
    case Activation::kGelu: {
      constexpr float kRootOfTwoPi = 2.50662827f;
      return NormalBelow(z) + z * std::exp(-0.5f * z * z) / kRootOfTwoPi;
    }
    case Activation::kLeakyRelu:
      return z > 0.0f ? 1.0f : kLeakySlope;
  }
  return 1.0f;
}

}  // namespace hdps
