// Reads the short and the full form of `shard`.
#include "common/job/layer_shard.h"

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizer_rule.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/pooling.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

std::string Tuple(const std::vector<uint32_t>& tuple) {
  std::string text = "[";
  for (const uint32_t parts : tuple) {
    text += (text.size() == 1 ? "" : ", ") + std::to_string(parts);
  }
  return text + "]";
}

// A dense layer has one input and one weight.
std::variant<ShardWanted, std::string> ReadDense(const ShardTuples& shard) {
  if (shard.size() == 1) return ShardWanted{.inputs = shard[0][0], .columns = shard[0][1]};
  if (shard.size() != 2) {
    return std::to_string(shard.size()) +
           " tuples, but a dense layer has one input and one weight; give [rows, columns] of its "
           "weight, or [[a, b], [b, c]]";
  }
  if (shard[0][1] != shard[1][0]) {
    return "the input has " + std::to_string(shard[0][1]) +
           " parts of its columns and the weight " + std::to_string(shard[1][0]) +
           " of its rows, which are multiplied with each other; make them equal";
  }
  return ShardWanted{shard[0][0], shard[0][1], shard[1][1]};
}

// Is true if the rule shares a number among all weights of a row, other than the count of updates.
bool KeepsWholeRows(const OptimizerSpec& optimizer) {
  const OptimizerRecord& record = *optimizer.record;
  if (record.is_own()) return record.state_more > 0;
  return WithOptimizer(record.kind, [](const auto& rule) {
    return std::decay_t<decltype(rule)>::kFactorOf == FactorOf::kSquares;
  });
}

}  // namespace

LayerCut CutOfLayer(const LayerSpec& layer, const LayerRecord& record) {
  const bool added = record.cut == LayerCut::kFeatures && layer.combine == Combine::kSum;
  return added ? LayerCut::kFeatureSums : record.cut;
}

std::variant<ShardWanted, std::string> ReadShard(const LayerSpec& layer, const LayerRecord& record,
                                                 const ShardTuples& shard) {
  for (const std::vector<uint32_t>& tuple : shard) {
    if (tuple.size() == 2) continue;
    return "a tuple of " + std::to_string(tuple.size()) +
           " numbers, but the matrices of a layer have rows and columns; give two";
  }
  const LayerCut cut = CutOfLayer(layer, record);
  if (cut == LayerCut::kMatrix) return ReadDense(shard);
  const size_t inputs = std::max<size_t>(layer.inputs.size(), 1);
  if (shard.size() != 1 && shard.size() != inputs) {
    return std::to_string(shard.size()) + " tuples, but it has " + std::to_string(inputs) +
           (inputs == 1 ? " input" : " inputs") + "; give one for all, or as many as inputs";
  }
  for (const std::vector<uint32_t>& tuple : shard) {
    if (tuple != shard[0]) {
      return Tuple(shard[0]) + " and " + Tuple(tuple) +
             ", but its inputs have to lie alike; make them equal";
    }
  }
  if (cut == LayerCut::kOwnRows) {
    return "a layer of kind " + layer.kind +
           " cannot be cut: each worker computes it on its own rows; leave shard out";
  }
  const bool columns = cut != LayerCut::kExamples;
  if (!columns && shard[0][1] != 1) {
    return std::to_string(shard[0][1]) + " parts of the columns of a layer of kind " + layer.kind +
           ", of which only the examples can be cut; give [" + std::to_string(shard[0][0]) + ", 1]";
  }
  return ShardWanted{.examples = shard[0][0], .columns = shard[0][1]};
}

CutConflict ConflictWithCuts(const Job& job) {
  for (const TableSpec& table : job.tables) {
    if (table.vocab_cache_size > 0) {
      return {"model.vocab_cache_size", "it keeps rows at all workers alike"};
    }
  }
  for (size_t i = 0; i < job.model.layers.size(); ++i) {
    const LayerSpec& layer = job.model.layers[i];
    const std::string path = "model.layers." + std::to_string(i);
    if (layer.layerwise_parallel) {
      return {path + ".layerwise_parallel",
              "every worker has a layer \"" + layer.name + "\" of its own"};
    }
    if (layer.dense_exchange == "servers") {
      return {path + ".dense_exchange", "servers hold layer \"" + layer.name + "\" whole"};
    }
    if (layer.dense_target != "auto") {
      return {path + ".dense_target", "all layers of a cut model are updated in one place"};
    }
  }
  if (!job.parallel.gradients_mean || job.parallel.cross_batch) {
    return {job.parallel.cross_batch ? "parallel.cross_batch" : "parallel.gradients_mean",
            "it weighs the workers' own rows"};
  }
  if (job.parallel.optimizer.enabled) {
    return {"parallel.enable_parallel_optimizer", "it splits the update of layers that are whole"};
  }
  const TableSpec* const dense = job.tables.empty() ? nullptr : &job.tables.back();
  if (dense == nullptr || !dense->dense) return {};
  const OptimizerRecord& rule = RecordOf(dense->optimizer);
  if (!rule.whole_tensors && !KeepsWholeRows(dense->optimizer)) return {};
  return {"model.dense_optimizer",
          std::string(rule.name) +
              " has one number for many weights, of which workers with a part of a layer know only "
              "some (adagrad and adam have none)"};
}

std::string ShowTuples(const ShardTuples& tuples) {
  if (tuples.size() == 1) return Tuple(tuples[0]);
  std::string text = "[";
  for (const auto& tuple : tuples) text += (text.size() == 1 ? "" : ", ") + Tuple(tuple);
  return text + "]";
}

}  // namespace hdps
