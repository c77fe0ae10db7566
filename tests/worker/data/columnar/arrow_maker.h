// Makes Arrow streams by hand, as a library that exports its tables does.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "worker/data/columnar/arrow_abi.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// A column of one batch; a test may break any of its parts. Null buffers are absent.
struct MadeColumn {
  std::string format;
  std::string name;
  int64_t length = 0, null_count = 0, offset = 0;
  std::vector<std::optional<std::string>> buffers = {};
  std::vector<MadeColumn> children = {};
  std::vector<MadeColumn> dictionary = {};  // One, or none.
  // What is said in place of the truth.
  std::optional<int64_t> says_buffers = {}, says_children = {};
  bool no_array_children = false, no_array_dictionary = false, no_buffers = false;
  bool released = false;  // The array was released before.
};

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Arrow's format of a C++ type.
template <typename T>
std::string FormatOf() {
  constexpr const char* kSigned[] = {"c", "s", "i", "l"};
  constexpr const char* kUnsigned[] = {"C", "S", "I", "L"};
  constexpr int kSize = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? "f" : "g";
  return std::is_signed_v<T> ? kSigned[kSize] : kUnsigned[kSize];
}

using Cells = std::vector<std::optional<std::string>>;

// In all of these a missing cell is nullopt.
template <typename T>
MadeColumn Numbers(const std::string& name, const std::vector<std::optional<T>>& cells);
MadeColumn Bools(const std::string& name, const std::vector<std::optional<bool>>& cells);
// `format`: u, z, U, Z, vu or vz.
MadeColumn Texts(const std::string& name, const Cells& cells, const std::string& format = "u");
// The lists of `items`, each of the given length; nullopt: a missing list.
MadeColumn Lists(const std::string& name, const std::vector<std::optional<int>>& lengths,
                 MadeColumn items, const std::string& format = "+l");
template <typename T>
MadeColumn Dictionary(const std::string& name, const std::vector<std::optional<T>>& indices,
                      MadeColumn values);
// A column of the type that has no buffers.
MadeColumn Nulls(const std::string& name, int64_t length);

// Returns the column without its first `before` cells, which stay in its buffers.
MadeColumn Sliced(MadeColumn column, int64_t before);

// Batches of columns; the first one's are the schema.
using MadeBatches = std::vector<std::vector<MadeColumn>>;

struct MadeStream {
  MadeBatches batches;
  std::string schema_format = "+s";
  int fails_at = -1;  // The batch in whose place there is an error.
  bool fails_silently = false;
  int64_t row_offset = 0;  // Of each batch: so many rows of the columns come before it.
};

// Fills `stream`, which the caller releases or gives away.
void Export(MadeStream made, ArrowArrayStream* stream);
Result<std::unique_ptr<ColumnTable>> TableFrom(MadeStream made);
// Fails the test on an error.
std::shared_ptr<const ColumnTable> MadeTable(MadeBatches batches);
// Number of streams, schemas and arrays that were exported and not released.
int64_t ExportedNow();

std::string ValidityOf(const std::vector<bool>& valid);
void SetValidity(const std::vector<bool>& valid, MadeColumn* column);

template <typename T>
MadeColumn Numbers(const std::string& name, const std::vector<std::optional<T>>& cells) {
  MadeColumn column{FormatOf<T>(), name, static_cast<int64_t>(cells.size())};
  std::vector<T> values;
  std::vector<bool> valid;
  for (const std::optional<T>& cell : cells) {
    values.push_back(cell.value_or(T(77)));
    valid.push_back(cell.has_value());
  }
  column.buffers = {std::nullopt, BytesOf(values)};
  SetValidity(valid, &column);
  return column;
}

template <typename T>
MadeColumn Dictionary(const std::string& name, const std::vector<std::optional<T>>& indices,
                      MadeColumn values) {
  MadeColumn column = Numbers<T>(name, indices);
  column.dictionary.push_back(std::move(values));
  return column;
}

}  // namespace hdps
