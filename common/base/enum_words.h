// The words that stand for an enum's values in job files and messages.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace hdps {

// One value and its word. An enum with words has a function `constexpr auto WordsOf(Enum)` beside
// it, which returns an array of these with one element for each value.
template <typename Enum>
struct EnumWord {
  Enum value;
  std::string_view word;
};

// Builds that array: EnumWords(kSync, "sync", kAsync, "async").
template <typename Enum, typename... Rest>
constexpr auto EnumWords(Enum value, std::string_view word, Rest... rest) {
  std::array<EnumWord<Enum>, 1 + sizeof...(Rest) / 2> words = {{{value, word}}};
  if constexpr (sizeof...(Rest) > 0) {
    const auto others = EnumWords(rest...);
    for (size_t i = 0; i < others.size(); ++i) words[i + 1] = others[i];
  }
  return words;
}

// Returns the word of `value`, or an empty one if the enum has none for it.
template <typename Enum>
constexpr std::string_view WordOf(Enum value) {
  for (const EnumWord<Enum>& word : WordsOf(Enum{})) {
    if (word.value == value) return word.word;
  }
  return "";
}

}  // namespace hdps
