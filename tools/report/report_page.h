// Makes an HTML page of one run, or of two side by side. It needs no network.
#pragma once

#include <string>
#include <vector>

#include "tools/report/run_files.h"

namespace hdps {

// Requires: one or two runs.
std::string ReportPage(const std::vector<RunFiles>& runs);

}  // namespace hdps
