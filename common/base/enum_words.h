// The words of an enum's values, as they stand in job files and messages.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace hdps {

// An enum that people write has beside it `constexpr auto WordsOf(Enum)`, which gives an array of
// these, one for each value.
template <typename Enum>
struct EnumWord {
  Enum value;
  std::string_view word;
};

// EnumWords(kSync, "sync", kAsync, "async").
template <typename Enum, typename... Rest>
constexpr auto EnumWords(Enum value, std::string_view word, Rest... rest) {
  std::array<EnumWord<Enum>, 1 + sizeof...(Rest) / 2> words = {{{value, word}}};
  if constexpr (sizeof...(Rest) > 0) {
    const auto others = EnumWords(rest...);
    for (size_t i = 0; i < others.size(); ++i) words[i + 1] = others[i];
  }
  return words;
}

// The word of `value`; empty when the enum gives it none.
template <typename Enum>
constexpr std::string_view WordOf(Enum value) {
  for (const EnumWord<Enum>& word : WordsOf(Enum{})) {
    if (word.value == value) return word.word;
  }
  return "";
}

}  // namespace hdps
