// Guesses from the name of a column what its values mean.
#pragma once

#include <string>
#include <vector>

#include "common/base/enum_words.h"

namespace hdps {

enum class NameHint : uint8_t {
  kNothing,
  kIdentity,  // user, item_id, movie: whole numbers are names.
  kCode,      // zip, occupation, hour: likewise, but the word may also name a count.
  kQuantity,  // age, price, num_visits: numbers.
  kMoment     // timestamp.
};
NameHint HintOf(const std::string& name);

// Splits a name into words: "hoursPerWeek" and "hours-per-week" into hours, per, week.
std::vector<std::string> WordsOfName(const std::string& name);

bool NamesUser(const std::string& name);
bool NamesItem(const std::string& name);
// Is true for label, target, click, ...
bool NamesLabel(const std::string& name);
// Is true for rating, stars, price: labels whose error is a distance.
bool NamesRating(const std::string& name);

}  // namespace hdps
