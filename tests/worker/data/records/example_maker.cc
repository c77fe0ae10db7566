// Writes the wire format of protobuf by hand.
#include "tests/worker/data/records/example_maker.h"

#include <bit>
#include <cstring>

namespace hdps {
namespace {

template <typename Number>
std::string LowestFirst(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

// A field whose bytes have their length before them.
std::string Field(uint32_t number, std::string_view bytes) {
  constexpr uint32_t kLengthBefore = 2;
  return Varint(number << 3 | kLengthBefore) + Varint(bytes.size()) + std::string(bytes);
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  constexpr uint32_t kPolynomial = 0x82f63b78;
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
  }
  return ~crc;
}

std::string MaskedSum(std::string_view bytes) {
  return LowestFirst(std::rotr(Crc32c(bytes), 15) + 0xa282ead8u);
}

std::string Framed(std::string_view record) {
  const std::string length = LowestFirst(static_cast<uint64_t>(record.size()));
  return length + MaskedSum(length) + std::string(record) + MaskedSum(record);
}

std::string TextFeature(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) list += Field(1, value);
  return Field(1, list);
}

std::string FloatFeature(const std::vector<float>& values) {
  std::string list;
  for (const float value : values) list += LowestFirst(value);
  return Field(2, Field(1, list));
}

std::string IntegerFeature(const std::vector<int64_t>& values, bool packed) {
  std::string list, one_by_one;
  for (const int64_t value : values) {
    list += Varint(static_cast<uint64_t>(value));
    one_by_one += '\x08' + Varint(static_cast<uint64_t>(value));
  }
  return Field(3, packed ? Field(1, list) : one_by_one);
}

std::string ExampleOf(const NamedFeatures& features) {
  std::string entries;
  for (const auto& [name, feature] : features) {
    entries += Field(1, Field(1, name) + Field(2, feature));
  }
  return Field(1, entries);
}

}  // namespace hdps
