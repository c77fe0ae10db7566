// The exchange of dense gradients under allreduce: its settings, and the rules that involve
// several.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/setting_table.h"

namespace hdps {

namespace {

using enum Note;
using enum OnResume;
using Kind = JsonValue::Kind;

bool IsIndexList(const JsonValue& value) {
  constexpr uint64_t kIndexMax = 1u << 20;
  return value.kind == Kind::kList && std::ranges::all_of(value.items, [](const JsonValue& item) {
           return item.kind == Kind::kInteger && !item.negative && item.magnitude > 0 &&
                  item.magnitude <= kIndexMax;
         });
}

std::vector<uint32_t> IndexIn(const JsonValue& value) {
  std::vector<uint32_t> index;
  for (const JsonValue& item : value.items) index.push_back(static_cast<uint32_t>(item.magnitude));
  return index;
}

// Returns the section for one kind of collective. `index` says if tensors may be counted.
Section FusionSection(const std::string& kind, bool index) {
  constexpr uint64_t kMebibytesMax = 1u << 20;
  SettingTable<FusionSpec> fusion("fusion_" + kind, "parallel.comm_fusion." + kind);
  std::vector<std::string> words = {"auto", "size"};
  if (index) words.emplace_back("index");
  fusion.Add("mode", &FusionSpec::mode,
             std::string("auto: up to 64 MiB together. size: up to so many.") +
                 (index ? " index: by their numbers, in the order of backward." : ""),
             OneOf{words});
  const Checked config = {std::string("null, a whole number of MiB from 1 to 1048576") +
                              (index ? ", or a list of whole numbers of at least 1" : ""),
                          [index](const JsonValue& value) {
                            if (value.kind == Kind::kNull || (index && IsIndexList(value)))
                              return true;
                            return value.kind == Kind::kInteger && !value.negative &&
                                   value.magnitude > 0 && value.magnitude <= kMebibytesMax;
                          }};
  fusion.AddConverted(
      "config", ValueKind::kInteger,
      std::string("auto: null, or left out. size: MiB; a larger tensor travels alone.") +
          (index ? " index: [20, 35] puts the first 20 tensors together, the 15 behind them, and "
                   "the rest."
                 : ""),
      [](const JsonValue& value, FusionSpec* spec) {
        if (value.kind == Kind::kInteger) spec->mebibytes = static_cast<uint32_t>(value.magnitude);
        if (value.kind == Kind::kList) spec->index = IndexIn(value);
      },
      [](const FusionSpec& spec) {
        if (spec.mode == FusionMode::kIndex) return PrintValue(spec.index);
        return JsonValue::Integer(spec.mebibytes);
      },
      config, kNoDefault, [](const FusionSpec& spec) { return spec.mode != FusionMode::kAuto; });
  return fusion.Done();
}

Section CommFusionSection() {
  SettingTable<CommFusionSpec> fusion("comm_fusion", "parallel.comm_fusion");
  fusion.Add("openstate", &CommFusionSpec::openstate, "false: every tensor travels alone.");
  fusion.AddObject("allreduce", &CommFusionSpec::allreduce, FusionSection("allreduce", true),
                   "Of gradients of tensors that every worker updates.", kPrintedUnlessDefault);
  fusion.AddObject("allgather", &CommFusionSpec::allgather, FusionSection("allgather", false),
                   "Of weights that one worker has updated for all.", kPrintedUnlessDefault);
  fusion.AddObject("reducescatter", &CommFusionSpec::reducescatter,
                   FusionSection("reducescatter", false), "Of their gradients.",
                   kPrintedUnlessDefault);
  return fusion.Done();
}

Section OptimizerShardSection() {
  SettingTable<OptimizerShardSpec> shards("parallel_optimizer",
                                          "parallel.parallel_optimizer_config");
  shards.Add("parallel_optimizer_threshold", &OptimizerShardSpec::threshold_kib,
             "In KiB: smaller tensors are updated by every worker.", Range{0, 4e6});
  const Checked size = {"-1 or a whole number from 1 to 4096", [](const JsonValue& value) {
                          if (value.kind != Kind::kInteger) return false;
                          return value.negative ? value.magnitude == 1
                                                : value.magnitude > 0 && value.magnitude <= 4096;
                        }};
  shards.Add("optimizer_weight_shard_size", &OptimizerShardSpec::weight_shard_size,
             "Workers over which a tensor is split, which divides their number; -1: all.", size);
  // CheckOptimizerShards says why level3 is refused.
  const Checked level = {"one of level1, level2", [](const JsonValue& value) {
                           return value.text == "level1" || value.text == "level2" ||
                                  value.text == "level3";
                         }};
  shards.AddConverted(
      "optimizer_level", ValueKind::kChoice,
      "level1: weights and optimizer state are split. level2: gradients too. Here a worker keeps "
      "the reduced gradient of its own part alone under both. level3, which gathers the weights "
      "once more before backward, is refused: a worker keeps them whole.",
      [](const JsonValue& value, OptimizerShardSpec* spec) {
        spec->level = value.text.back() - '0';
      },
      [](const OptimizerShardSpec& spec) {
        return JsonValue::Text("level" + std::to_string(spec.level));
      },
      level);
  shards.AddSpelling("gradient_accumulation_shard", ValueKind::kBool,
                     "Changes nothing here: gradients of `train.micro_batches` are added before "
                     "they are reduced.",
                     [](const JsonValue&, OptimizerShardSpec*) {});
  return shards.Done();
}

// Counts the dense tensors of the job for which `counts` holds, by the fusion ids of their layers.
size_t CountTensors(const GraphShape& shape, const ModelSpec& model) {
  size_t count = 0;
  for (size_t n = 0; n < shape.nodes.size(); ++n) {
    const LayerSpec& layer = model.layers[n];
    const bool alone = layer.layerwise_parallel || layer.dense_exchange == "servers";
    if (layer.fusion < 0 && !alone) count += shape.nodes[n].shape.tensors.size();
  }
  return count;
}

Status CheckIndex(const JobSource& source, const std::string& place, const Job& job,
                  const GraphShape& shape) {
  const std::vector<uint32_t>& index = job.parallel.comm_fusion.allreduce.index;
  const auto fall = std::ranges::adjacent_find(index, std::greater_equal<>());
  if (fall != index.end()) {
    return Refuse(source, place,
                  std::to_string(fall[1]) + " after " + std::to_string(fall[0]) +
                      "; the numbers have to ascend");
  }
  const size_t tensors = CountTensors(shape, job.model);
  if (index.empty() || index.back() < tensors) return {};
  return Refuse(source, place,
                std::to_string(index.back()) + " leaves no tensor behind it; the job has " +
                    std::to_string(tensors) +
                    " tensors of dense layers without a fusion id, so at most " +
                    std::to_string(std::max<size_t>(tensors, 1) - 1));
}

const JsonValue* Below(const JsonValue* object, const char* key) {
  return object == nullptr ? nullptr : object->Find(key);
}

// Checks that `config` gives what the mode needs.
Status CheckFusions(const JobSource& source, const Job& job, const GraphShape& shape) {
  const JsonValue* const parallel = source.root.Find("parallel");
  const JsonValue* const fusion = Below(parallel, "comm_fusion");
  const char* const config_key = "all_reduce_fusion_config";
  if (Below(parallel, config_key) != nullptr) {
    const std::string place = std::string("parallel.") + config_key;
    if (fusion != nullptr) {
      return Refuse(source, place,
                    "comm_fusion says it already; leave one of the two out, such as this one for "
                    "comm_fusion.allreduce = {\"mode\": \"index\", \"config\": [20, 35]}");
    }
    return CheckIndex(source, place, job, shape);
  }
  const CommFusionSpec& of = job.parallel.comm_fusion;
  const std::pair<const char*, const FusionSpec*> kinds[] = {{"allreduce", &of.allreduce},
                                                             {"allgather", &of.allgather},
                                                             {"reducescatter", &of.reducescatter}};
  for (const auto& [kind, spec] : kinds) {
    const JsonValue* const config = Below(Below(fusion, kind), "config");
    const Kind given = config == nullptr ? Kind::kNull : config->kind;
    const Kind wanted = spec->mode == FusionMode::kAuto   ? Kind::kNull
                        : spec->mode == FusionMode::kSize ? Kind::kInteger
                                                          : Kind::kList;
    const std::string place = std::string("parallel.comm_fusion.") + kind + ".config";
    if (given != wanted) {
      const char* const mend = wanted == Kind::kNull      ? "auto takes none: leave it out"
                               : wanted == Kind::kInteger ? "size takes a number of MiB"
                                                          : "index takes a list such as [20, 35]";
      return Refuse(source, place,
                    (config == nullptr ? "nothing" : PrintJsonLine(*config)) +
                        " does not fit the mode; " + mend);
    }
  }
  return of.allreduce.mode == FusionMode::kIndex
             ? CheckIndex(source, "parallel.comm_fusion.allreduce.config", job, shape)
             : Status();
}

Status CheckOptimizerShards(const JobSource& source, const Job& job) {
  const OptimizerShardSpec& shards = job.parallel.optimizer;
  if (shards.level > 2) {
    return Refuse(source, "parallel.parallel_optimizer_config.optimizer_level",
                  "\"level3\" drops weights after forward and gathers them again before backward, "
                  "and here each worker keeps the weights whole; take level2, or cut the layers "
                  "themselves (parallel.parallel_mode, docs/parallel.md)");
  }
  if (!shards.enabled) return {};
  if (job.parallel.dense_exchange != DenseExchange::kAllreduce) {
    return Refuse(source, "parallel.enable_parallel_optimizer",
                  "true, but dense_exchange is servers, which split the update already; set "
                  "dense_exchange = allreduce, or leave it out");
  }
  const uint32_t workers = job.parallel.device_num;
  const int32_t size = shards.weight_shard_size;
  if (size > 0 && workers > 0 && workers % static_cast<uint32_t>(size) != 0) {
    return Refuse(source, "parallel.parallel_optimizer_config.optimizer_weight_shard_size",
                  std::to_string(size) + " does not divide the " + std::to_string(workers) +
                      " workers of device_num; take a divisor, or -1 for all");
  }
  return {};
}

// Checks the exchange and the target that a layer names for its dense parameters.
Status CheckLayerPlace(const JobSource& source, const Job& job, const GraphShape& shape, size_t n) {
  const LayerSpec& layer = job.model.layers[n];
  const auto place = [&](const char* key) { return PlaceOfLayer(source, job, n, key); };
  for (const char* key : {"dense_exchange", "dense_target"}) {
    const std::string& word = key == std::string("dense_target") ? layer.dense_target  //
                                                                 : layer.dense_exchange;
    if (word != "auto" && shape.nodes[n].shape.tensors.empty()) {
      return Refuse(source, place(key),
                    word + ", but layer " + Quoted(layer.name) +
                        " has no dense parameters; leave it out (servers keep and update tables)");
    }
  }
  const bool all_at_servers = job.parallel.dense_exchange == DenseExchange::kServers;
  if (layer.dense_exchange == "allreduce" && all_at_servers) {
    return Refuse(source, place("dense_exchange"),
                  "allreduce, but parallel.dense_exchange is servers, for all layers; set that to "
                  "allreduce, and servers for each layer that servers are to keep");
  }
  if (layer.dense_exchange != "auto" && job.parallel.parallel_mode == ParallelMode::kAuto) {
    return Refuse(source, place("dense_exchange"),
                  layer.dense_exchange +
                      ", but under auto_parallel the search chooses one exchange for all layers; "
                      "set parallel.parallel_mode = data_parallel, or leave it out");
  }
  if (layer.dense_target == "cuda") {
    const std::string why =
        job.model.device == "cpu" ? "model.device is cpu" : WhyDenseOnHost(job, layer);
    if (!why.empty()) {
      return Refuse(source, place("dense_target"),
                    "cuda: its weights cannot be updated on a GPU: " + why +
                        "; change that, or set it to auto");
    }
  }
  return {};
}

Status CheckOwnLayers(const JobSource& source, const GraphShape& shape, Job* of) {
  const Job& job = *of;
  std::string own;
  for (size_t n = 0; n < job.model.layers.size(); ++n) {
    const LayerSpec& layer = job.model.layers[n];
    if (!layer.layerwise_parallel) continue;
    const std::string place = PlaceOfLayer(source, job, n, "layerwise_parallel");
    if (shape.nodes[n].shape.tensors.empty()) {
      return Refuse(source, place,
                    "layer " + Quoted(layer.name) + " has no dense parameters; leave it out");
    }
    if (job.parallel.dense_exchange != DenseExchange::kAllreduce) {
      return Refuse(source, place,
                    "true, but dense_exchange is servers, which keep one copy; set "
                    "parallel.dense_exchange = allreduce");
    }
    if (layer.dense_exchange == "servers") {
      return Refuse(source, place,
                    "true, but its dense_exchange is servers, which keep one copy; leave one of "
                    "the two out");
    }
    if (job.train.clip_norm > 0) {
      return Refuse(source, place,
                    "true, but train.clip_norm is one norm of all gradients, and every worker "
                    "would have another; leave one of the two out");
    }
    own += (own.empty() ? "" : ", ") + layer.name;
  }
  if (!own.empty()) {
    of->warnings.push_back("layerwise_parallel of " + own +
                           ": every worker has its own weights there; checkpoints keep those of "
                           "worker 0, and a job that goes on gives them to all");
  }
  return {};
}

}  // namespace

void AddDenseExchange(SettingTable<ParallelSpec>* parallel) {
  const Where allreduce(&ParallelSpec::dense_exchange, {DenseExchange::kAllreduce});
  parallel->Add("reduction", &ParallelSpec::reduction,
                "ordered: sums are in the order of the workers, so N workers have the bits of one "
                "with N parts. library: sums are NCCL's or Gloo's own, in an order of theirs.",
                allreduce, kPrintedUnlessDefault, kMayChange);
  parallel->AddObject("comm_fusion", &ParallelSpec::comm_fusion, CommFusionSection(),
                      "Which tensors of dense layers travel together. With several buckets, one "
                      "is reduced while the gradients of the next are computed. The result is the "
                      "same.",
                      allreduce, Hashed::kNothing, kPrintedUnlessDefault);
  parallel->AddSpelling(
      "all_reduce_fusion_config", ValueKind::kInteger,
      "[20, 35] is another way to say comm_fusion.allreduce = {\"mode\": \"index\", \"config\": "
      "[20, 35]}.",
      [](const JsonValue& value, ParallelSpec* spec) {
        spec->comm_fusion.allreduce.mode =
            value.items.empty() ? FusionMode::kAuto : FusionMode::kIndex;
        spec->comm_fusion.allreduce.index = IndexIn(value);
      },
      Checked{"a list of whole numbers of at least 1", IsIndexList}, allreduce);
  parallel->Add(
      "gradient_fp32_sync", &ParallelSpec::gradient_fp32_sync,
      "false: dense gradients travel in 16 bits, bf16 where `wire` is bf16, else fp16; "
      "sums are made in 32 bits, in the order of the workers, and rounded once; by the library as "
      "it does (`reduction`). Under servers see `wire`.",
      allreduce, kPrintedUnlessDefault, kMayChange);
  const auto enabled = [](auto& spec) -> auto& { return spec.optimizer.enabled; };
  parallel->Add("enable_parallel_optimizer", enabled,
                "The update of dense tensors is split over the workers: each keeps the optimizer "
                "state of its part, gets the sum of its gradients and gives its weights to all. "
                "Needs dense_exchange = allreduce. The result is the same.",
                Hashed::kNothing, kPrintedUnlessDefault);
  parallel->AddObject("parallel_optimizer_config", &ParallelSpec::optimizer,
                      OptimizerShardSection(), "How it is split.", Hashed::kNothing,
                      [enabled](const ParallelSpec& spec) { return enabled(spec); });
}

Status CheckDenseExchange(const JobSource& source, Job* of) {
  const Job& job = *of;
  GraphShape shape;
  // The graph was checked before.
  MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &shape);
  if (job.parallel.dense_exchange == DenseExchange::kAllreduce) {
    HDPS_RETURN_IF_ERROR(CheckFusions(source, job, shape));
  }
  HDPS_RETURN_IF_ERROR(CheckOptimizerShards(source, job));
  for (size_t n = 0; n < job.model.layers.size(); ++n) {
    HDPS_RETURN_IF_ERROR(CheckLayerPlace(source, job, shape, n));
  }
  return CheckOwnLayers(source, shape, of);
}

}  // namespace hdps
