// What a person may say of data files, where names and values do not tell it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_words.h"

namespace hdps {

// The task that a model can learn of the label.
enum class TaskKind : uint8_t {
  kBinary,         // 0 or 1.
  kClasses,        // One of several classes: softmax.
  kRating,         // A number: squared error.
  kPositivesOnly,  // Every row is one of label 1: negative ones are made of the items of others.
};
constexpr auto WordsOf(TaskKind) {
  using enum TaskKind;
  return EnumWords(kBinary, "binary", kClasses, "classes", kRating, "rating", kPositivesOnly,
                   "ranking");
}

inline constexpr size_t kNoColumn = SIZE_MAX;

// What a person says of the data; what is empty is told from names and values.
struct DataWish {
  std::string label = {}, group = {}, weight = {};  // Columns' names.
  std::vector<std::string> categorical = {}, numeric = {}, multi = {}, skip = {};  // Likewise.
  std::string positive = {};  // ">=4", "=text", "text1|text2": which labels mean 1.
  std::optional<TaskKind> task = {};
  std::optional<uint64_t> max_bad_rows = {};  // To let pass; not given: one in a hundred.
};

}  // namespace hdps
