// Recognizes cells that a person reads as a number, date or list, but a job reads as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/enum_words.h"

namespace hdps {

enum class CellKind : uint8_t {
  kDecimalComma,  // 1,5
  kThousands,     // 1,234 or 1.234,5
  kPercent,       // 45%
  kCurrency,      // $12.50
  kInfinity,      // inf
  kDate,          // 2024-01-31, 31/01/2024 08:00
  kList           // [1, 2, 3]
};
constexpr auto WordsOf(CellKind) {
  using enum CellKind;
  return EnumWords(kDecimalComma, "numbers with a decimal comma", kThousands,
                   "numbers with a thousands separator", kPercent, "numbers with a percent sign",
                   kCurrency, "amounts with a currency", kInfinity, "infinite numbers", kDate,
                   "dates", kList, "lists in brackets");
}

// Parses a number as a job with this data.decimal would.
std::optional<double> NumberOf(std::string_view cell, const std::string& decimal);

// Returns the kind of a cell, or nothing for a plain number or text. `decimal` is the setting
// data.decimal.
std::optional<CellKind> CellKindOf(std::string_view cell, const std::string& decimal);

// Returns the advice for a column of such cells: "write 1234 for 1,234".
std::string RemedyFor(CellKind kind);

}  // namespace hdps
