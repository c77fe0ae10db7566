// Finds settings of the job file by a part of their path.
#pragma once

#include <string>
#include <vector>

namespace hdps {

// Returns the paths, as --set takes them, that are `name` or end in it: "train.epochs" of "epochs".
// Settings of the items of a list, and of objects with free names, are not among them.
std::vector<std::string> PathsOfSettings(const std::string& name);

}  // namespace hdps
