// Describes a graph in lines of text for the log.
#pragma once

#include <string>

#include "kernels/dense_ops.h"
#include "worker/model/graph.h"

namespace hdps {

struct Job;

// Returns one line for each layer and each table, without a final line end.
std::string DescribeGraph(const Job& job, const Graph& graph, DeviceKind device);

}  // namespace hdps
