// What the names of columns say of their values, to a person.
#pragma once

#include <string>
#include <vector>

#include "common/base/enum_words.h"

namespace hdps {

enum class NameHint : uint8_t {
  kNothing,
  kIdentity,  // user, item_id, movie: whole numbers name something.
  kCode,      // zip, occupation, hour: likewise, but some use the word for a count.
  kQuantity,  // age, price, num_visits: numbers.
  kMoment     // timestamp.
};
NameHint HintOf(const std::string& name);

// "hoursPerWeek" and "hours-per-week" as hours, per, week.
std::vector<std::string> WordsOfName(const std::string& name);

bool NamesUser(const std::string& name);
bool NamesItem(const std::string& name);
// label, target, click, ...
bool NamesLabel(const std::string& name);
// rating, stars, price: a label of which nearer is better.
bool NamesRating(const std::string& name);

}  // namespace hdps
