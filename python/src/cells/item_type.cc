// Reads the formats of Python's struct module.
#include "python/src/cells/item_type.h"

#include <bit>
#include <string_view>

namespace hdps::python {
namespace {

ItemType WholeNumbersOf(size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? ItemType{CellKind::kInt8, "int8"} : ItemType{CellKind::kUint8, "uint8"};
    case 2:
      return is_signed ? ItemType{CellKind::kInt16, "int16"}
                       : ItemType{CellKind::kUint16, "uint16"};
    case 4:
      return is_signed ? ItemType{CellKind::kInt32, "int32"}
                       : ItemType{CellKind::kUint32, "uint32"};
    case 8:
      return is_signed ? ItemType{CellKind::kInt64, "int64"}
                       : ItemType{CellKind::kUint64, "uint64"};
  }
  return {};
}

ItemType NumbersOf(size_t bytes) {
  switch (bytes) {
    case 2:
      return {CellKind::kFloat16, "float16"};
    case 4:
      return {CellKind::kFloat32, "float32"};
    case 8:
      return {CellKind::kFloat64, "float64"};
  }
  return {};
}

}  // namespace

ItemType ItemTypeOf(const Py_buffer& view) {
  std::string_view format = view.format == nullptr ? "B" : view.format;
  static_assert(std::endian::native == std::endian::little);
  bool swapped = false;
  if (!format.empty() && std::string_view("@=<>!").find(format[0]) != std::string_view::npos) {
    swapped = format[0] == '>' || format[0] == '!';
    format.remove_prefix(1);
  }
  const size_t digits = format.find_first_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 != format.size()) return {};
  const auto bytes = static_cast<size_t>(view.itemsize);
  const char code = format[digits];
  ItemType type;
  if (code == 's' || (code == 'w' && bytes % sizeof(Py_UCS4) == 0)) {
    type = {.kind = CellKind::kText, .name = "text", .wide = code == 'w'};
  } else if (digits > 0) {
    return {};
  } else if (code == '?' && bytes == 1) {
    type = {CellKind::kBool, "bool"};
  } else if (std::string_view("bhilqn").find(code) != std::string_view::npos) {
    type = WholeNumbersOf(bytes, true);
  } else if (std::string_view("BHILQN").find(code) != std::string_view::npos) {
    type = WholeNumbersOf(bytes, false);
  } else if (std::string_view("efd").find(code) != std::string_view::npos) {
    type = NumbersOf(bytes);
  }
  type.swapped = swapped && (bytes > 1 || type.wide);
  return type;
}

}  // namespace hdps::python
