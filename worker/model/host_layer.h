// Runs a layer on the host in the middle of a model on another device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "kernels/dense_ops.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// Returns true if the job assigns the layer at `place` to the CPU (LayerSpec::device) while `ops`
// is another device.
bool ComputedOnHost(const Job& job, const DenseOps& ops, size_t place);

// Returns which tables are read by such layers only [tables]; their rows stay in host memory.
// kInvalidArgument if layers on both sides read a table, or its rows are cached on the device.
Result<std::vector<bool>> TablesOnHost(const Job& job, const DenseOps& ops);

// Makes the layer of `site`, whose ops are the model's, computed by `host`. Its inputs and the
// gradient of its output are fetched from the device; its output and the gradients of its tensors
// are uploaded. The weights are fetched in every pass. kInvalidArgument if the layer exchanges
// values between workers.
Result<std::unique_ptr<Layer>> NewHostLayer(const LayerSite& site, DenseOps& host);

}  // namespace hdps
