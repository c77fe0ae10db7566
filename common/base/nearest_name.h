// Finds the known name that a mistyped one was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hdps {

// Returns the known name with the fewest edits from `mistyped`, or an empty one if even that has
// too many edits for a slip. An edit inserts, drops or changes a letter, swaps two neighbors, or
// reorders the words; case does not count. Among equals, the first name wins.
std::string NearestName(std::string_view mistyped, const std::vector<std::string>& known);

// Returns `; did you mean "sync"?`, or nothing. If no name is near, it suggests names that contain
// all words of `mistyped`: `; did you mean "wide_loss_l2" or "deep_loss_l2"?`.
std::string DidYouMean(std::string_view mistyped, const std::vector<std::string>& known);

}  // namespace hdps
