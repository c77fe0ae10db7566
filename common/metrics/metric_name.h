// Display names of figures.
#pragma once

#include <string>

namespace hdps {

// Returns the display name of a figure: "PR AUC" for "pr_auc", "hit rate@10" for "hr@10", "click:
// AUC" for "click.auc". An unknown word is returned unchanged.
std::string MetricName(const std::string& figure);

}  // namespace hdps
