// The reductions of rows to the columns of a feature, and of features to those of a layer.
#pragma once

#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

enum class Pooling : uint8_t { kSum, kMean, kMax };
constexpr auto WordsOf(Pooling) {
  using enum Pooling;
  return EnumWords(kSum, "sum", kMean, "mean", kMax, "max");
}
enum class Combine : uint8_t { kConcat, kSum };
constexpr auto WordsOf(Combine) {
  using enum Combine;
  return EnumWords(kConcat, "concat", kSum, "sum");
}

}  // namespace hdps
