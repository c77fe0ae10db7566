// What somebody may have meant: the known name nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hdps {

// The known name with the fewest edits (insert, drop, change, swap neighbours; another order of its
// words) from `mistyped`, if they are few enough to be a slip; empty otherwise. Among equals the
// first. Capitals are no edit.
std::string NearestName(std::string_view mistyped, const std::vector<std::string>& known);

// `; did you mean "sync"?`, or nothing. Where none is near, names that have all its words: `; did
// you mean "wide_loss_l2" or "deep_loss_l2"?`.
std::string DidYouMean(std::string_view mistyped, const std::vector<std::string>& known);

}  // namespace hdps
