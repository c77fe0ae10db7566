// Tells how old the rows of pushes were, from what the servers count.
#pragma once

#include <optional>

namespace hdps {

struct Job;
class Membership;

// Returns the mean age in clocks of the rows of all pushes that the present servers have taken,
// over their tables; none if there were no pushes.
std::optional<double> PushStaleness(const Job& job, const Membership& members);

}  // namespace hdps
