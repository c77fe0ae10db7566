// The initial values of weights.
#pragma once

#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

enum class InitKind : uint8_t { kZeros, kConstant, kUniform, kNormal };
constexpr auto WordsOf(InitKind) {
  using enum InitKind;
  return EnumWords(kZeros, "zeros", kConstant, "constant", kUniform, "uniform", kNormal, "normal");
}
// The initial weights of a row, a function of (seed, table, key). kUniform is in [-scale, scale).
struct InitSpec {
  InitKind kind = InitKind::kUniform;
  float scale = 0.01f;
  friend bool operator==(const InitSpec&, const InitSpec&) = default;
};

}  // namespace hdps
