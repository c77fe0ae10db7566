// A graph as lines of text for the log.
#pragma once

#include <string>

#include "kernels/dense_ops.h"
#include "worker/model/graph.h"

namespace hdps {

struct Job;

// One line a layer and one a table, without a line end behind the last.
std::string DescribeGraph(const Job& job, const Graph& graph, DeviceKind device);

}  // namespace hdps
