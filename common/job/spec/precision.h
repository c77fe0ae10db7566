// The number format of products.
#pragma once

#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

// The format of the numbers that dense layers multiply; sums, weights and optimizers use fp32.
enum class Precision : uint8_t { kFp32, kTf32, kBf16 };
constexpr auto WordsOf(Precision) {
  using enum Precision;
  return EnumWords(kFp32, "fp32", kTf32, "tf32", kBf16, "bf16");
}

}  // namespace hdps
