// Reads cells off a line.
#include "worker/data/records/cell_line.h"

#include <algorithm>
#include <charconv>

#include "common/base/hash.h"

namespace hdps {
namespace {

// Takes a value of type T off the front; false if there are too few bytes.
template <typename T>
bool Take(std::string_view* line, T* value) {
  if (line->size() < sizeof(T)) return false;
  std::memcpy(value, line->data(), sizeof(T));
  line->remove_prefix(sizeof(T));
  return true;
}

template <typename T>
bool TakeInteger(std::string_view* line, int64_t* integer) {
  T value;
  if (!Take(line, &value)) return false;
  *integer = static_cast<int64_t>(value);
  return true;
}

template <typename T>
bool TakeNumber(std::string_view* line, double* number) {
  T value;
  if (!Take(line, &value)) return false;
  *number = static_cast<double>(value);
  return true;
}

bool TakeBytes(std::string_view* line, std::string_view* bytes) {
  uint32_t size;
  if (!Take(line, &size) || line->size() < size) return false;
  *bytes = line->substr(0, size);
  line->remove_prefix(size);
  return true;
}

template <typename T>
std::string_view Digits(T value, CellText* memory) {
  const auto [end, error] =
      std::to_chars(memory->bytes, memory->bytes + CellText::kBytesMax, value);
  return {memory->bytes, static_cast<size_t>(end - memory->bytes)};
}

}  // namespace

double CellValue::Number() const {
  if (tag == CellTag::kUint64) return static_cast<double>(static_cast<uint64_t>(integer));
  if (tag == CellTag::kFloat32 || tag == CellTag::kFloat64) return number + 0.0;
  return static_cast<double>(integer);
}

std::string_view CellValue::Text(CellText* memory) const {
  switch (tag) {
    case CellTag::kInt32:
    case CellTag::kInt64:
      return Digits(integer, memory);
    case CellTag::kUint64:
      return Digits(static_cast<uint64_t>(integer), memory);
    case CellTag::kFloat32:
      return TextOfFloat(static_cast<float>(number), memory);
    case CellTag::kFloat64:
      return TextOfFloat(number, memory);
    case CellTag::kText:
      return text;
    case CellTag::kMissing:
    case CellTag::kList:
    case CellTag::kPacked:
      break;
  }
  return {};
}

std::optional<CellValue> TakeCell(std::string_view* line) {
  if (line->empty()) return std::nullopt;
  CellValue cell;
  const auto tag = static_cast<uint8_t>(line->front());
  line->remove_prefix(1);
  cell.tag = static_cast<CellTag>(tag);
  bool taken = false;
  switch (cell.tag) {
    case CellTag::kMissing:
      taken = true;
      break;
    case CellTag::kInt32:
      taken = TakeInteger<int32_t>(line, &cell.integer);
      break;
    case CellTag::kInt64:
      taken = TakeInteger<int64_t>(line, &cell.integer);
      break;
    case CellTag::kUint64:
      taken = TakeInteger<uint64_t>(line, &cell.integer);
      break;
    case CellTag::kFloat32:
      taken = TakeNumber<float>(line, &cell.number);
      break;
    case CellTag::kFloat64:
      taken = TakeNumber<double>(line, &cell.number);
      break;
    case CellTag::kText:
    case CellTag::kList:
      taken = TakeBytes(line, &cell.text);
      break;
    case CellTag::kPacked:
      break;
  }
  return taken ? std::optional(cell) : std::nullopt;
}

uint64_t HashOfCells(std::string_view line, const std::vector<uint32_t>& left_out, uint64_t seed) {
  uint64_t hash = seed;
  for (uint32_t number = 0; !line.empty(); ++number) {
    const std::optional<CellValue> cell = TakeCell(&line);
    if (!cell) return HashString(line, hash);
    if (std::ranges::binary_search(left_out, number)) continue;
    uint64_t values = 0;
    ForEachValue(*cell, [&](std::string_view value) {
      hash = HashString(value, hash);
      ++values;
    });
    hash = CombineKeys(hash, values);
  }
  return hash;
}

}  // namespace hdps
