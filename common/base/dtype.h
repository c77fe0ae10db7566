// The number formats in which real numbers are stored and sent.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/enum_words.h"

namespace hdps {

// kFp16 is IEEE binary16; kBf16 is the upper half of a binary32. All are little-endian on the wire.
enum class DType : uint8_t { kFp32, kFp16, kBf16 };
constexpr auto WordsOf(DType) {
  using enum DType;
  return EnumWords(kFp32, "fp32", kFp16, "fp16", kBf16, "bf16");
}

constexpr size_t FloatBytes(DType format) {
  return format == DType::kFp32 ? sizeof(float) : sizeof(uint16_t);
}

}  // namespace hdps
