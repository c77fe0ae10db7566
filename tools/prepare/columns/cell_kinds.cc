// Defines the patterns of cells.
#include "tools/prepare/columns/cell_kinds.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "worker/data/number.h"

namespace hdps {
namespace {

constexpr std::array<std::string_view, 10> kCurrencies = {"$",
                                                          "\xe2\x82\xac" /* euro */,
                                                          "\xc2\xa3" /* pound */,
                                                          "\xc2\xa5" /* yen */,
                                                          "\xe2\x82\xb9" /* rupee */,
                                                          "USD",
                                                          "EUR",
                                                          "GBP",
                                                          "CHF",
                                                          "JPY"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

std::string_view WithoutSign(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text;
}

// Matches "1,234,567": groups of three digits between `separator`.
bool IsGrouped(std::string_view text, char separator) {
  const size_t first = text.find(separator);
  if (first == text.npos || first > 3 || !AllDigits(text.substr(0, first))) return false;
  for (text.remove_prefix(first); !text.empty(); text.remove_prefix(4)) {
    if (text.size() < 4 || text[0] != separator || !AllDigits(text.substr(1, 3))) return false;
  }
  return true;
}

bool IsThousands(std::string_view text, char mark) {
  const char separator = mark == '.' ? ',' : '.';
  const size_t at = text.find(mark);
  const std::string_view whole = text.substr(0, at);
  if (at != text.npos && !AllDigits(text.substr(at + 1))) return false;
  return IsGrouped(whole, separator) || IsGrouped(whole, ' ') || IsGrouped(whole, '\'');
}

bool IsDecimalComma(std::string_view text) {
  const size_t comma = text.find(',');
  return comma != text.npos && (comma == 0 || AllDigits(text.substr(0, comma))) &&
         AllDigits(text.substr(comma + 1));
}

bool IsNumber(std::string_view text, const std::string& decimal) {
  text = TrimBlanks(text);
  const std::string_view plain = WithoutSign(text);
  return ParseNumber(text).has_value() || IsDecimalComma(plain) ||
         IsThousands(plain, decimal == "," ? ',' : '.') || IsThousands(plain, ',');
}

bool IsCurrency(std::string_view cell, const std::string& decimal) {
  for (const std::string_view sign : kCurrencies) {
    std::string_view text = cell;
    const bool negative = text.starts_with('-') && text.substr(1).starts_with(sign);
    if (negative) text.remove_prefix(1);
    if (text.starts_with(sign)) {
      text.remove_prefix(sign.size());
    } else if (text.ends_with(sign)) {
      text.remove_suffix(sign.size());
    } else {
      continue;
    }
    return IsNumber(text, decimal);
  }
  return false;
}

bool IsInfinity(std::string_view cell) {
  std::string text(WithoutSign(cell));
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "inf" || text == "infinity";
}

// Matches three groups of digits between one of - / . with a four-digit year, and maybe a time
// behind.
bool IsDate(std::string_view cell) {
  const size_t end = cell.find_first_of(" T");
  if (end != cell.npos) {
    const std::string_view time = cell.substr(end + 1);
    if (time.size() < 4 || !IsDigit(time[0]) || time.find(':') == time.npos) return false;
    cell = cell.substr(0, end);
  }
  const size_t first = cell.find_first_of("-/.");
  if (first == cell.npos) return false;
  const size_t second = cell.find(cell[first], first + 1);
  if (second == cell.npos) return false;
  const std::string_view a = cell.substr(0, first), b = cell.substr(first + 1, second - first - 1),
                         c = cell.substr(second + 1);
  if (!AllDigits(a) || !AllDigits(b) || !AllDigits(c) || b.size() > 2) return false;
  return (a.size() == 4 && c.size() <= 2) || (a.size() <= 2 && c.size() == 4);
}

}  // namespace

std::optional<double> NumberOf(std::string_view cell, const std::string& decimal) {
  if (decimal == ".") return ParseNumber(cell);
  if (cell.find('.') != cell.npos) return std::nullopt;
  std::string with_point(cell);
  std::ranges::replace(with_point, decimal[0], '.');
  return ParseNumber(with_point);
}

std::optional<CellKind> CellKindOf(std::string_view cell, const std::string& decimal) {
  if (cell.empty()) return std::nullopt;
  const char first = cell.front(), last = cell.back();
  if ((first == '[' && last == ']') || (first == '{' && last == '}')) return CellKind::kList;
  if (IsInfinity(cell)) return CellKind::kInfinity;
  if (last == '%' && IsNumber(cell.substr(0, cell.size() - 1), decimal)) return CellKind::kPercent;
  if (IsCurrency(cell, decimal)) return CellKind::kCurrency;
  if (!IsDigit(last)) return std::nullopt;
  const std::string_view plain = WithoutSign(cell);
  if (IsThousands(plain, decimal == "," ? ',' : '.')) return CellKind::kThousands;
  if (decimal == "." && IsDecimalComma(plain)) return CellKind::kDecimalComma;
  // For example 1.234,5.
  if (decimal == "." && IsThousands(plain, ',')) return CellKind::kThousands;
  if (IsDate(cell)) return CellKind::kDate;
  return std::nullopt;
}

std::string RemedyFor(CellKind kind) {
  switch (kind) {
    case CellKind::kDecimalComma:
      return "write 1.5 for 1,5";
    case CellKind::kThousands:
      return "write 1234 for 1,234";
    case CellKind::kPercent:
      return "write 0.45 for 45%";
    case CellKind::kCurrency:
      return "write 12.5 for $12.50";
    case CellKind::kInfinity:
      return "leave such cells empty, or write a large number";
    case CellKind::kDate:
      return "write hour, weekday or age into columns of their own";
    case CellKind::kList:
      return "write 1|2|3 for [1, 2, 3]";
  }
  return "";
}

}  // namespace hdps
