// The losses of models.
#pragma once

#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

// kBpr uses pairs of a positive and a negative example of one group. kSampledSoftmax uses the items
// of the other examples in the batch as negatives.
enum class LossKind : uint8_t { kLogloss, kSoftmax, kSquared, kBpr, kSampledSoftmax };
constexpr auto WordsOf(LossKind) {
  using enum LossKind;
  return EnumWords(kLogloss, "logloss", kSoftmax, "softmax", kSquared, "squared_error", kBpr, "bpr",
                   kSampledSoftmax, "sampled_softmax");
}

}  // namespace hdps
