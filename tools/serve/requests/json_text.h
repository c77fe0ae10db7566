// Writes numbers and texts of answers as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hdps {

// Appends the shortest text that reads back to the same bits; null for a number that is not finite,
// which JSON has no text for.
void AppendJsonNumber(float number, std::string* json);
// Appends a text in quotes. A byte that is not UTF-8 becomes U+FFFD.
void AppendJsonText(std::string_view text, std::string* json);
// Returns a text in quotes.
std::string JsonQuoted(std::string_view text);

}  // namespace hdps
