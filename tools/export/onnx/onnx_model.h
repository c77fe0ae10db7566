// Maps a job's model to an ONNX graph: inputs, tables, layers, and what its loss makes of the
// logits.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "tools/export/onnx/onnx_graph.h"
#include "tools/export/onnx/onnx_site.h"
#include "tools/export/onnx/onnx_tables.h"

namespace hdps {

// The outputs of a model, by its loss, where LABEL is the name of a task among several:
//   logloss           `probability`, LABEL.probability [n, 1]
//   squared_error     `score`, LABEL.score [n, 1]
//   bpr               `score` [n, 1]
//   softmax           `probabilities` [n, classes]
//   sampled_softmax   `score` [n, 1], and `vectors` [n, 2 * dim]: of the user and of the item
// Under all losses but the last there is `logit` too, the output of the last layer.
std::vector<std::string> OnnxOutputsOf(const Job& job);

// Adds all of the model to an empty graph. `tensors` [layers] are those of each layer in the order
// of its record, and `rows` [tables] as for OnnxTables. Errors: kInvalidArgument names a layer
// without a mapping, which is one of a program's own, or a feature that has the name of another
// input or output.
Status BuildOnnxModel(const Job& job, std::vector<std::vector<OnnxTensor>> tensors,
                      const std::vector<OnnxRows>* rows, OnnxGraph& graph);

}  // namespace hdps
