// The rows of a table for each key of one feature, in order.
#include <cmath>

#include "common/job/layers/layer_record.h"

namespace hdps {

LayerRecord SequenceRecord() {
  LayerRecord record;
  record.kind = "sequence";
  record.cut = LayerCut::kOwnRows;  // It needs the rows of keys that its worker read.
  record.gives =
      "[n, length x dim]: the rows of one feature's keys in their order, not pooled; 0 behind the "
      "last";
  record.inputs_min = record.inputs_max = 0;
  record.fields.embedding = true;
  const LayerNumber length = {
      "length", 1, 4096, 50,
      "Keys of an example; of more, the last ones count (a log tells when that happens first)."};
  record.numbers = {length};
  record.measure =
      [length](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    std::variant<LayerShape, LayerProblem> row = EmbeddingRecord().measure(question);
    if (std::holds_alternative<LayerProblem>(row)) return row;
    auto& shape = std::get<LayerShape>(row);
    if (shape.width != shape.vector_dim) {
      return LayerProblem{"features", "a sequence is that of one feature; name it alone"};
    }
    const double keys = NumberOf(question.spec, length);
    if (keys != std::floor(keys)) return LayerProblem{"length", "has to be a whole number"};
    shape.width *= static_cast<uint64_t>(keys);
    shape.sequence = true;
    return row;
  };
  return record;
}

}  // namespace hdps
