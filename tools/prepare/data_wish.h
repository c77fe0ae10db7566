// Names what a user can tell about data files that their names and values do not show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_words.h"

namespace hdps {

// The task that a model learns from the label.
enum class TaskKind : uint8_t {
  kBinary,   // Label 0 or 1.
  kClasses,  // One of several classes, with softmax.
  kRating,   // A number, with squared error.
  // All rows have label 1; negatives are made from the items of other rows.
  kPositivesOnly,
};
constexpr auto WordsOf(TaskKind) {
  using enum TaskKind;
  return EnumWords(kBinary, "binary", kClasses, "classes", kRating, "rating", kPositivesOnly,
                   "ranking");
}

inline constexpr size_t kNoColumn = SIZE_MAX;

// The user's settings; what is empty is found from names and values.
struct DataWish {
  std::string label = {}, group = {}, weight = {};  // Names of columns.
  // Names of columns, by type.
  std::vector<std::string> categorical = {}, numeric = {}, multi = {}, skip = {};
  // Labels that mean 1: ">=4", "=text", "text1|text2".
  std::string positive = {};
  std::optional<TaskKind> task = {};
  std::optional<uint64_t> max_bad_rows = {};  // Bad rows to pass over; not set: one in a hundred.
};

}  // namespace hdps
