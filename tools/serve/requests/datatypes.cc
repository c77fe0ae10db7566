// Holds the list.
#include "tools/serve/requests/datatypes.h"

#include <algorithm>
#include <limits>

namespace hdps {
namespace {

template <typename Whole>
constexpr Datatype WholeOf(std::string_view name, CellKind cells, CellKind binary) {
  using Limits = std::numeric_limits<Whole>;
  return {name, cells, binary, sizeof(Whole), Limits::min(), uint64_t{Limits::max()}};
}

constexpr Datatype kDatatypes[] = {
    {"BOOL", CellKind::kUint64, CellKind::kUint8, 1, 1, 0},
    WholeOf<int8_t>("INT8", CellKind::kInt64, CellKind::kInt8),
    WholeOf<int16_t>("INT16", CellKind::kInt64, CellKind::kInt16),
    WholeOf<int32_t>("INT32", CellKind::kInt64, CellKind::kInt32),
    WholeOf<int64_t>("INT64", CellKind::kInt64, CellKind::kInt64),
    WholeOf<uint8_t>("UINT8", CellKind::kUint64, CellKind::kUint8),
    WholeOf<uint16_t>("UINT16", CellKind::kUint64, CellKind::kUint16),
    WholeOf<uint32_t>("UINT32", CellKind::kUint64, CellKind::kUint32),
    WholeOf<uint64_t>("UINT64", CellKind::kUint64, CellKind::kUint64),
    {"FP32", CellKind::kFloat64, CellKind::kFloat32, sizeof(float)},
    {"FP64", CellKind::kFloat64, CellKind::kFloat64, sizeof(double)},
    {"BYTES", CellKind::kText, CellKind::kText, 0}};

}  // namespace

std::string Datatype::Wanted() const {
  if (cells == CellKind::kText) return "a text or a whole number";
  if (cells == CellKind::kFloat64) return "a number";
  if (is_bool()) return "true or false";
  return "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
}

const Datatype* FindDatatype(std::string_view name) {
  const auto* found = std::ranges::find(kDatatypes, name, &Datatype::name);
  return found == std::end(kDatatypes) ? nullptr : found;
}

std::string DatatypeNames() {
  std::string names;
  for (const Datatype& type : kDatatypes) {
    names += (names.empty() ? "" : ", ") + std::string(type.name);
  }
  return names;
}

}  // namespace hdps
