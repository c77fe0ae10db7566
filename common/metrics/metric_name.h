// The names of figures for people.
#pragma once

#include <string>

namespace hdps {

// The name of a figure for people: "PR AUC" for "pr_auc", "hit rate@10" for "hr@10", "click: AUC"
// for "click.auc". A word that is none of a metric stays what it is.
std::string MetricName(const std::string& figure);

}  // namespace hdps
