// What a model learns by.
#pragma once

#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

// kBpr: pairs of a positive and a negative example of one group. kSampledSoftmax: the items of the
// batch's other examples are the negatives.
enum class LossKind : uint8_t { kLogloss, kSoftmax, kSquared, kBpr, kSampledSoftmax };
constexpr auto WordsOf(LossKind) {
  using enum LossKind;
  return EnumWords(kLogloss, "logloss", kSoftmax, "softmax", kSquared, "squared_error", kBpr, "bpr",
                   kSampledSoftmax, "sampled_softmax");
}

}  // namespace hdps
