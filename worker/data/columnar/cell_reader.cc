// Holds one function for the texts and one for the numbers of each kind of cells.
#include "worker/data/columnar/cell_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <type_traits>

namespace hdps {
namespace {

// A number of IEEE binary16.
struct Half {
  uint16_t bits;
};

float Widened(Half half) {
  const auto bits = static_cast<uint32_t>(half.bits);
  const uint32_t sign = (bits & 0x8000u) << 16;
  if ((bits & 0x7c00u) == 0x7c00u) {  // Infinite or NaN.
    return std::bit_cast<float>(sign | 0x7f800000u | (bits & 0x3ffu) << 13);
  }
  // The exponent's bias differs by 112; a product corrects it for small numbers too.
  const float magnitude = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

template <typename T>
auto FloatAt(const ColumnChunk& chunk, int64_t index) {
  if constexpr (std::is_same_v<T, Half>) {
    return Float16At(chunk, index);
  } else {
    return CellAt<T>(chunk, index);
  }
}

template <typename Float>
std::string_view TextOf(Float number, CellText* memory) {
  if (!std::isfinite(number)) return number < 0 ? "-inf" : number > 0 ? "inf" : "nan";
  char shortest[CellText::kBytesMax];  // "-1.25e+02"
  char* const stop =
      std::to_chars(shortest, std::end(shortest) - 1, number, std::chars_format::scientific).ptr;
  *stop = '\0';
  const std::string_view text(shortest, static_cast<size_t>(stop - shortest));
  const size_t e = text.find('e');
  const int exponent = std::atoi(shortest + e + 1);
  char* to = memory->bytes;
  constexpr int kFixedMin = -4, kFixedEnd = 16;  // As Python's float.__repr__ has them.
  if (exponent < kFixedMin || exponent >= kFixedEnd) {
    to = std::ranges::copy(text, to).out;
    return {memory->bytes, text.size()};
  }
  // The digits go around the point, with zeros where there are too few.
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  char digits[CellText::kBytesMax];
  char* const digits_end = std::ranges::copy_if(text.substr(0, e), digits, is_digit).out;
  const char* digit = digits;
  const auto put_digit = [&] { *to++ = digit < digits_end ? *digit++ : '0'; };
  if (text[0] == '-') *to++ = '-';
  if (exponent < 0) *to++ = '0';
  for (int i = 0; i <= exponent; ++i) put_digit();
  *to++ = '.';
  for (int i = -1; i > exponent; --i) *to++ = '0';
  do put_digit();
  while (digit < digits_end);
  return {memory->bytes, static_cast<size_t>(to - memory->bytes)};
}

bool NoText(const ColumnChunk&, int64_t, CellText*, std::string_view*) { return false; }

bool BoolText(const ColumnChunk& chunk, int64_t index, CellText*, std::string_view* text) {
  *text = BitAt(chunk, index) ? "1" : "0";
  return true;
}
bool BoolNumber(const ColumnChunk& chunk, int64_t index, double* number) {
  *number = BitAt(chunk, index) ? 1 : 0;
  return true;
}

template <typename T>
bool IntegerText(const ColumnChunk& chunk, int64_t index, CellText* memory,
                 std::string_view* text) {
  char* const begin = memory->bytes;
  const auto [end, error] =
      std::to_chars(begin, begin + CellText::kBytesMax, CellAt<T>(chunk, index));
  *text = {begin, static_cast<size_t>(end - begin)};
  return true;
}
template <typename T>
bool IntegerNumber(const ColumnChunk& chunk, int64_t index, double* number) {
  *number = static_cast<double>(CellAt<T>(chunk, index));
  return true;
}
template <typename T>
int64_t Index(const ColumnChunk& chunk, int64_t index) {
  return static_cast<int64_t>(CellAt<T>(chunk, index));
}

template <typename T>
bool FloatText(const ColumnChunk& chunk, int64_t index, CellText* memory, std::string_view* text) {
  const auto number = FloatAt<T>(chunk, index);
  if (std::isnan(number)) return false;
  *text = TextOf(number, memory);
  return true;
}
template <typename T>
bool FloatNumber(const ColumnChunk& chunk, int64_t index, double* number) {
  const auto value = static_cast<double>(FloatAt<T>(chunk, index));
  *number = value + 0.0;  // -0 becomes 0, as in text.
  return !std::isnan(value);
}

template <typename Offset>
bool BytesText(const ColumnChunk& chunk, int64_t index, CellText*, std::string_view* text) {
  *text = TextAt<Offset>(chunk, index);
  return true;
}
bool ViewText(const ColumnChunk& chunk, int64_t index, CellText*, std::string_view* text) {
  *text = ViewedText(chunk, index);
  return true;
}

// Writes a decimal of kWords times 32 bits, the lowest word first.
template <size_t kWords>
bool DecimalText(const ColumnChunk& chunk, int64_t index, CellText* memory,
                 std::string_view* text) {
  auto words = CellAt<std::array<uint32_t, kWords>>(chunk, index);
  const bool negative = words[kWords - 1] >> 31 != 0;
  bool carry = negative;
  for (uint32_t& word : words) {
    if (negative) word = ~word + (carry ? 1 : 0);
    carry = carry && word == 0;
  }
  // Digits come from the last one on, so the text grows towards the front.
  char* const end = std::end(memory->bytes);
  char* to = end;
  for (int digits = 0;; ++digits) {
    if (digits == chunk.scale && digits > 0) *--to = '.';
    const bool zero = std::ranges::all_of(words, [](uint32_t word) { return word == 0; });
    if (zero && digits > chunk.scale) break;
    constexpr uint64_t kTen = 10;
    uint64_t rest = 0;
    for (size_t w = kWords; w-- > 0;) {
      rest = rest << 32 | words[w];
      words[w] = static_cast<uint32_t>(rest / kTen);
      rest %= kTen;
    }
    *--to = static_cast<char>('0' + static_cast<int>(rest));
  }
  if (negative) *--to = '-';
  *text = {to, static_cast<size_t>(end - to)};
  return true;
}
template <size_t kWords>
bool DecimalNumber(const ColumnChunk& chunk, int64_t index, double* number) {
  CellText memory;
  std::string_view text;
  DecimalText<kWords>(chunk, index, &memory, &text);
  *number = ParseNumber(text).value_or(0) + 0.0;  // -0 becomes 0.
  return true;
}

// Calls `use` with a value of the C++ type of the cells. Requires: an integer kind.
template <typename Use>
void WithInteger(CellKind kind, Use use) {
  switch (kind) {
    case CellKind::kInt8:
      return use(int8_t{});
    case CellKind::kInt16:
      return use(int16_t{});
    case CellKind::kInt32:
      return use(int32_t{});
    case CellKind::kInt64:
      return use(int64_t{});
    case CellKind::kUint8:
      return use(uint8_t{});
    case CellKind::kUint16:
      return use(uint16_t{});
    case CellKind::kUint32:
      return use(uint32_t{});
    default:
      return use(uint64_t{});
  }
}

}  // namespace

std::string_view TextOfFloat(double number, CellText* memory) { return TextOf(number, memory); }
std::string_view TextOfFloat(float number, CellText* memory) { return TextOf(number, memory); }

float Float16At(const ColumnChunk& chunk, int64_t index) {
  return Widened(CellAt<Half>(chunk, index));
}

CellReader::CellReader(const CellType& type) {
  const CellType& values = type.is_dictionary() ? *type.values : type;
  if (type.is_dictionary()) {
    WithInteger(type.kind, [this]<typename T>(T) { index_ = Index<T>; });
  }
  if (IsInteger(values.kind)) {
    WithInteger(values.kind, [this]<typename T>(T) {
      text_ = IntegerText<T>;
      number_ = IntegerNumber<T>;
    });
    return;
  }
  switch (values.kind) {
    case CellKind::kNull:
      text_ = NoText;
      break;
    case CellKind::kBool:
      text_ = BoolText;
      number_ = BoolNumber;
      break;
    case CellKind::kFloat16:
      text_ = FloatText<Half>;
      number_ = FloatNumber<Half>;
      break;
    case CellKind::kFloat32:
      text_ = FloatText<float>;
      number_ = FloatNumber<float>;
      break;
    case CellKind::kFloat64:
      text_ = FloatText<double>;
      number_ = FloatNumber<double>;
      break;
    case CellKind::kDecimal128:
      text_ = DecimalText<4>;
      number_ = DecimalNumber<4>;
      break;
    case CellKind::kDecimal256:
      text_ = DecimalText<8>;
      number_ = DecimalNumber<8>;
      break;
    case CellKind::kText:
      text_ = BytesText<int32_t>;
      break;
    case CellKind::kLargeText:
      text_ = BytesText<int64_t>;
      break;
    case CellKind::kTextViews:
      text_ = ViewText;
      break;
    default:
      LOG(FATAL) << "a cell reader for " << type.name;
  }
}

}  // namespace hdps
