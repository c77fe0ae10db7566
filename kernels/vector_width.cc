// Reads the processor's capabilities and the limits in the environment.
#include "kernels/vector_width.h"

#include <algorithm>
#include <cstdlib>

#include "common/process/terminal.h"

namespace hdps {
namespace {

constexpr char kLimitVariable[] = "HDPS_MAX_VECTOR_WIDTH";

VectorWidth AskProcessor() {
  __builtin_cpu_init();
  // Every processor with AVX2 has F16C, for which clang 14 has no test.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return VectorWidth::kPlain;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return avx512 ? VectorWidth::kAvx512 : VectorWidth::kAvx2;
}

// Ends the program for an invalid variable: this code is too low to return a status.
[[noreturn]] void Refuse(const char* variable, const char* value, const char* right) {
  PrintError("error: the environment variable %s is '%s': %s\n", variable, value, right);
  std::_Exit(2);
}

// Returns null if the variable is not set, or empty.
const char* ValueOf(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

std::optional<VectorWidth> AskEnvironment() {
  const char* const value = ValueOf(kLimitVariable);
  if (value == nullptr) return std::nullopt;
  for (const VectorWidth width : {VectorWidth::kPlain, VectorWidth::kAvx2, VectorWidth::kAvx512}) {
    if (VectorWidthName(width) == value) return width;
  }
  Refuse(kLimitVariable, value, "plain, avx2 or avx512");
}

bool AskForWidenedBf16() {
  constexpr char kVariable[] = "HDPS_WIDENED_BF16";
  const char* const value = ValueOf(kVariable);
  if (value == nullptr) return false;
  if (std::string_view(value) != "0" && std::string_view(value) != "1") {
    Refuse(kVariable, value, "0 or 1");
  }
  return *value == '1';
}

}  // namespace

std::string_view VectorWidthName(VectorWidth width) {
  switch (width) {
    case VectorWidth::kPlain:
      return "plain";
    case VectorWidth::kAvx2:
      return "avx2";
    case VectorWidth::kAvx512:
      return "avx512";
  }
  return "";
}

std::optional<VectorWidth> VectorWidthLimit() {
  static const std::optional<VectorWidth> limit = AskEnvironment();
  return limit;
}

bool WidenedBf16Asked() {
  static const bool asked = AskForWidenedBf16();
  return asked;
}

VectorWidth WidestVectors() {
  static const VectorWidth widest =
      std::min(AskProcessor(), VectorWidthLimit().value_or(VectorWidth::kAvx512));
  return widest;
}

}  // namespace hdps
