// A graph as lines of text for the log.
#pragma once

#include <string>

#include "common/job/job.h"
#include "kernels/dense_ops.h"
#include "worker/model/graph.h"

namespace hdps {

// One line a layer and one a table, without a line end behind the last.
std::string DescribeGraph(const Job& job, const Graph& graph, DeviceKind device);

}  // namespace hdps
