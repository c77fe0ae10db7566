// A layer that the host computes in the middle of a model on another device.
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

// Whether the layer at `place` says so (LayerSpec::device), of a model on the device of `ops`.
bool ComputedOnHost(const Job& job, const DenseOps& ops, size_t place);

// Which tables are read by such layers alone, [tables]: their rows stay in the host's memory.
// kInvalidArgument where layers on both sides read one, or its rows are kept on the device.
Result<std::vector<bool>> TablesOnHost(const Job& job, const DenseOps& ops);

// The layer of `site`, whose ops are those of the model, computed by `host`. What it reads, and the
// gradient of what it gives, is fetched; what it gives is uploaded, and so are the gradients of its
// tensors, whose weights it fetches anew in every pass. kInvalidArgument where its workers meet in
// the middle of it.
Result<std::unique_ptr<Layer>> NewHostLayer(const LayerSite& site, DenseOps& host);

}  // namespace hdps
