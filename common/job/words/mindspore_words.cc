// Holds the table, and finds words in it.
#include "common/job/words/mindspore_words.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace hdps {

namespace {

using Kind = JsonValue::Kind;
using Word = MindSporeWord;

constexpr Word kServers[] = {
    {"enable_ps"}, {"set_ps_context"}, {"set_param_ps"}, {"parameter_server"}};
constexpr Word kCache[] = {{"vocab_cache_size", "parallel."}, {"vocab_cache_size", "train."}};
constexpr Word kLookups[] = {{"EmbeddingLookup", "layer.kind", "embedding"}};
constexpr Word kOptimizers[] = {{"AdamWeightDecay", "optimizer.kind", "adamw"},
                                {"adam_weight_decay", "optimizer.kind", "adamw"},
                                {"ProximalAdagrad", "optimizer.kind"},
                                {"LARS", "optimizer.kind"},
                                {"AdaFactor", "optimizer.kind"}};
constexpr Word kOptimizerKeys[] = {{"eps", "optimizer.", "epsilon"},
                                   {"initial_accum", "optimizer.", "initial_accumulator"}};
constexpr Word kModes[] = {{"semi_auto", "parallel.parallel_mode", "semi_auto_parallel"},
                           {"hybrid", "parallel.parallel_mode", "hybrid_parallel"},
                           {"data_paralel", "parallel.parallel_mode", "data_parallel"}};
constexpr Word kSearches[] = {{"sharding_propagation", "parallel.parallel_mode"},
                              {"recursive_programming", "parallel.parallel_mode"},
                              {"dynamic_programming", "parallel.parallel_mode"},
                              {"strategy_search_mode"}};
constexpr Word kMeans[] = {{"mirror_mean"}, {"loss_repeated_mean"}};
constexpr Word kShards[] = {{"in_strategy"}, {"out_strategy"}, {"strategy"}};
constexpr Word kFusions[] = {
    {"comm_fusion", "layer."}, {"set_comm_fusion"}, {"all_reduce_fusion_split_indices"}};
constexpr Word kShardedOptimizer[] = {
    {"hsdp"},
    {"shard_size"},
    {"shard_size", "parallel_optimizer.", "optimizer_weight_shard_size"},
    {"optimizer_level", "parallel."},
    {"threshold", "parallel_optimizer.", "parallel_optimizer_threshold"}};
constexpr Word kCopies[] = {{"MicroBatchInterleaved"}, {"micro_batch_interleaved"}};
constexpr Word kMicroBatches[] = {{"accumulation_step"},
                                  {"accumulation_steps"},
                                  {"gradient_accumulation_step"},
                                  {"grad_accumulation_steps"}};
constexpr Word kDatasets[] = {{"data_paralel", "parallel.dataset_strategy", "data_parallel"}};
constexpr Word kParts[] = {{"num_shards"}, {"shard_id"}, {"num_parallel_workers"}};
constexpr Word kStrategies[] = {{"strategy_ckpt_config"}, {"load_file"}, {"save_file"}};
constexpr Word kDevices[] = {{"device_target"}};
constexpr Word kGpus[] = {{"GPU", "model.device", "cuda"},
                          {"GPU", "model.dense_target", "cuda"},
                          {"GPU", "layer.device", "cuda"},
                          {"GPU", "block.device", "cuda"}};
constexpr Word kAscend[] = {{"Ascend", "model.device"},
                            {"Ascend", "model.dense_target"},
                            {"Ascend", "layer.device"},
                            {"Ascend", "block.device"},
                            {"Davinci", "model.device"}};
constexpr Word kPlaces[] = {{"primitive_target"}, {"set_device"}, {"target", "optimizer."}};
constexpr Word kBackends[] = {{"backend"},
                              {"backend_name"},
                              {"hccl", "parallel.collective"},
                              {"mccl", "parallel.collective"}};
constexpr Word kDeviceIds[] = {{"device_id"}};
constexpr Word kCheckpoints[] = {{"save_checkpoint_steps"},
                                 {"save_checkpoint_seconds"},
                                 {"keep_checkpoint_max"},
                                 {"CheckpointConfig"}};
constexpr Word kEpochs[] = {{"epoch_size"}, {"epoch_num"}, {"epoch"}};
constexpr Word kSinks[] = {{"dataset_sink_mode"}, {"sink_size"}, {"sink_mode"}};
constexpr Word kScales[] = {
    {"loss_scale"}, {"loss_scale_manager"}, {"FixedLossScaleManager"}, {"DynamicLossScaleManager"}};
constexpr Word kAmp[] = {{"amp_level"},
                         {"O2", "model.precision"},
                         {"O3", "model.precision"},
                         {"float16", "model.precision"},
                         {"float32", "model.precision", "fp32"},
                         {"bfloat16", "model.precision", "bf16"}};
constexpr Word kSoftmax[] = {{"SoftmaxCrossEntropyWithLogits", "model.loss", "softmax"},
                             {"CrossEntropyLoss", "model.loss", "softmax"},
                             {"cross_entropy", "model.loss", "softmax"}};
constexpr Word kLogloss[] = {{"SigmoidCrossEntropyWithLogits", "model.loss", "logloss"},
                             {"BCEWithLogitsLoss", "model.loss", "logloss"},
                             {"SigmoidCrossEntropyWithLogits", "task.loss", "logloss"},
                             {"BCEWithLogitsLoss", "task.loss", "logloss"}};
constexpr Word kSquares[] = {{"MSELoss", "model.loss", "squared_error"},
                             {"mse", "model.loss", "squared_error"},
                             {"MSELoss", "task.loss", "squared_error"}};
constexpr Word kLosses[] = {{"loss_fn"}};
constexpr Word kInits[] = {{"weight_init", "layer.", "init"}};
constexpr Word kDense[] = {
    {"MatMul", "layer.kind"}, {"out_channels"}, {"in_channels"}, {"has_bias"}};
constexpr Word kActivations[] = {{"ReLU", "layer.kind"},
                                 {"Sigmoid", "layer.kind"},
                                 {"Tanh", "layer.kind"},
                                 {"GELU", "layer.kind"}};
constexpr Word kDropout[] = {{"keep_prob"}, {"dropout_flag"}};
constexpr Word kZoo[] = {{"emb_dim"}, {"deep_layer_dim"}};
constexpr Word kFields[] = {{"field_size"}};
constexpr Word kVocabularies[] = {{"vocab_size"}};
constexpr Word kPenalties[] = {{"l2_coef"}};
constexpr Word kSeeds[] = {{"set_seed"}, {"random_seed"}};
constexpr Word kGraphMode[] = {{"GRAPH_MODE", "train.mode"}, {"PYNATIVE_MODE", "train.mode"}};
constexpr Word kLossMonitors[] = {{"LossMonitor"}};
constexpr Word kMonitors[] = {{"TimeMonitor"}, {"callbacks"}};
constexpr Word kGraphs[] = {{"save_graphs"}};
constexpr Word kPipelines[] = {{"pipeline_stages"}, {"pipeline_config"}};
constexpr Word kShuffles[] = {{"shuffle"}, {"shuffle_size"}};

constexpr MindSporeRow kRows[] = {
    {"`MS_ROLE` = `MS_SCHED`, `MS_PSERVER`, `MS_WORKER`",
     "`hdps-scheduler`, `hdps-server`, `hdps-worker`"},
    {"`msrun`, `dynamic_cluster` scripts", "`scripts/local_cluster.sh`, `scripts/cluster.sh`"},
    {"`set_ps_context(enable_ps=True)`, `set_param_ps()`",
     "nothing to set: rows of tables are always at servers", kServers},
    {"parameters by AllReduce beside those at servers",
     "`parallel.dense_exchange` = `allreduce`, and `dense_exchange` = `servers` of layers with "
     "`set_param_ps()`"},
    {"`EmbeddingLookup`", "a layer of kind `embedding`, and its table", kLookups},
    {"`EmbeddingLookup(..., vocab_cache_size=N)`", "`model.vocab_cache_size`, or a table's",
     kCache},
    {"`slice_mode` of `EmbeddingLookup`", "a table's `slice_mode`, with the same four words"},
    {"`LazyAdam`, `FTRL`, `Adam`, `Lamb`, `Momentum`, `SGD`, `RMSProp`, `Adagrad`",
     "an optimizer's `kind`, with the same words in any letters"},
    {"`AdamWeightDecay`, `adam_weight_decay`",
     "`adamw`; both are read. `ProximalAdagrad`, `LARS` and `AdaFactor` are not there",
     kOptimizers},
    {"`eps`, `initial_accum`", "`epsilon`, `initial_accumulator`; both are read", kOptimizerKeys},
    {"`set_auto_parallel_context(parallel_mode=...)`",
     "`parallel.parallel_mode`, with the same five words; `semi_auto` and `hybrid` are read too",
     kModes},
    {"`AutoParallel(net, parallel_mode=\"sharding_propagation\")`",
     "`parallel.parallel_mode` = `auto_parallel`, and the word in `parallel.search_mode`",
     kSearches},
    {"`gradients_mean` (False), `mirror_mean`", "`parallel.gradients_mean` (true)", kMeans},
    {"`shard(in_strategy)`", "a layer's `shard`, or `parallel.blocks`", kShards},
    {"`comm_fusion`, `all_reduce_fusion_config`", "the same, below `parallel`"},
    {"`set_comm_fusion(n)`, `add_prim_attr(\"fusion\", n)`", "a layer's `fusion` = n", kFusions},
    {"`enable_parallel_optimizer`, `parallel_optimizer_config`", "the same, below `parallel`"},
    {"`hsdp(shard_size, threshold, optimizer_level)`",
     "`parallel.enable_parallel_optimizer`, and these three in "
     "`parallel.parallel_optimizer_config`",
     kShardedOptimizer},
    {"`MicroBatchInterleaved(net, n)`", "`parallel.interleave_num` = n", kCopies},
    {"`grad_accumulation_step`, `accumulation_steps`",
     "`train.micro_batches`; the first is read in `parallel` too", kMicroBatches},
    {"`full_batch`, `dataset_strategy`", "the same, below `parallel`", kDatasets},
    {"`MnistDataset(..., num_shards, shard_id)`",
     "nothing to set: each worker reads its own part of `data.train`", kParts},
    {"`shuffle` of a dataset", "`data.shuffle_rows`, the rows of its window", kShuffles},
    {"`strategy_ckpt_config`, `save_file`, `load_file`",
     "`parallel.strategy_ckpt_save_file`, `parallel.strategy_ckpt_load_file`", kStrategies},
    {"`global_rank`", "a worker's `--rank`, or `parallel.global_rank` in its job"},
    {"`get_rank()`, `get_group_size()`",
     "`rank()` and `group_size()` of a `SteppedRun` in a program of your own"},
    {"`device_target`", "`model.device` = `auto`, `cpu` or `cuda`", kDevices},
    {"`\"GPU\"`", "`cuda`; `GPU` is read too", kGpus},
    {"`\"Ascend\"`", "not there: take `cuda`, `cpu` or `auto`", kAscend},
    {"`Primitive.set_device(\"CPU\")`, `Optimizer.target`",
     "a layer's `device`, and its `dense_target` or `model.dense_target`; rows are updated by "
     "servers",
     kPlaces},
    {"`init(\"nccl\")`, `init(\"hccl\")`", "`parallel.collective` = `nccl`, `gloo` or `auto`",
     kBackends},
    {"`device_id`", "`--gpu` of `hdps-worker`", kDeviceIds},
    {"`CheckpointConfig(save_checkpoint_steps or _seconds, keep_checkpoint_max)`",
     "`checkpoint.every_steps`, `checkpoint.every_seconds`, `checkpoint.keep`", kCheckpoints},
    {"`model.train(epoch, dataset)`", "`train.epochs`, `hdps train`", kEpochs},
    {"`dataset_sink_mode`, `sink_size`", "nothing to set: rows are read while others are computed",
     kSinks},
    {"`LossMonitor(k)`", "`train.log_every_steps` = k, with the same line, of worker 0",
     kLossMonitors},
    {"`TimeMonitor`, `callbacks`",
     "nothing to set: loss and speed are in `metrics.jsonl` of `--out`", kMonitors},
    {"a sampler that fills the last shard with its first rows", "`train.last_batch` = `filled`"},
    {"`FixedLossScaleManager(s)`, `DynamicLossScaleManager`",
     "`train.loss_scale` = s or `dynamic`, for gradients that travel as fp16; others are in "
     "32 bits",
     kScales},
    {"`amp_level`, `float16`", "`model.precision` = `fp32`, `tf32` or `bf16`", kAmp},
    {"`SoftmaxCrossEntropyWithLogits`, `CrossEntropyLoss`",
     "`model.loss` = `softmax`; both are read", kSoftmax},
    {"`SigmoidCrossEntropyWithLogits`, `BCEWithLogitsLoss`",
     "`model.loss` = `logloss`; both are read", kLogloss},
    {"`MSELoss`", "`model.loss` = `squared_error`; `MSELoss` is read too", kSquares},
    {"`loss_fn`", "`model.loss`", kLosses},
    {"`nn.Dense(in_channels, out_channels)`, `MatMul`",
     "a layer of kind `dense` with `units`; it takes the width of its inputs, and has a bias",
     kDense},
    {"`weight_init`, `bias_init`",
     "a dense layer's `init` and `bias_init`; `weight_init` is read too", kInits},
    {"`nn.ReLU`, `Sigmoid`, `Tanh`, `GELU`",
     "`activation` of a dense layer, or a layer of kind `activation` with it", kActivations},
    {"`keep_prob`", "`model.dropout`, the part that is left out: 1 - keep_prob", kDropout},
    {"`emb_dim`, `deep_layer_dim` of Wide&Deep", "`model.embedding_dim`, `model.hidden`", kZoo},
    {"`field_size`", "nothing to set: features are those of `data`", kFields},
    {"`vocab_size`",
     "`vocab_size` of a column of ids, else nothing to set: rows are made by their first update",
     kVocabularies},
    {"`l2_coef`", "`model.deep_loss_l2`, `model.wide_loss_l2`, `model.dense_loss_l2`", kPenalties},
    {"`set_seed(n)`", "`seed` = n", kSeeds},
    {"`mode=GRAPH_MODE`", "nothing to set: a job is a graph; `train.mode` is sync, async or ssp",
     kGraphMode},
    {"`save_graphs`", "`hdps plan --strategy --dot=FILE`", kGraphs},
    {"`pipeline_stages`", "not there: layers lie over workers by `shard` and `parallel.blocks`",
     kPipelines},
};

// Returns the letters and digits of a word, small: "LeakyReLU" and "leaky_relu" are one.
std::string Folded(std::string_view word) {
  std::string folded;
  for (const char c : word) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) continue;
    folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

bool Alike(std::string_view a, std::string_view b) { return Folded(a) == Folded(b); }

// Returns the word that is met at `where`, and its row; nulls if there is none.
struct Found {
  const MindSporeRow* row = nullptr;
  const MindSporeWord* word = nullptr;
};
Found Find(std::string_view spelled, std::string_view where) {
  for (const MindSporeRow& row : kRows) {
    for (const MindSporeWord& word : row.words) {
      if (word.where == where && Alike(word.spelled, spelled)) return {&row, &word};
    }
  }
  return {};
}

std::string WhereOfKeys(const Section& section) { return section.name + "."; }
std::string WhereOfValues(const Section& section, const Setting& setting) {
  return section.name + "." + setting.key;
}

Found FindKey(const Section& section, std::string_view key) {
  const Found here = Find(key, WhereOfKeys(section));
  return here.word != nullptr ? here : Find(key, "");
}

std::string Answer(const Found& found, std::string_view given) {
  if (found.word == nullptr) return "";
  std::string here(found.row->here);
  std::erase(here, '`');
  return "\"" + std::string(given) + "\" is a word of MindSpore; here: " + here;
}

// Replaces one word of a choice by the setting's own.
void TakeWord(const Section& section, const Setting& setting, JsonValue* value) {
  if (value->kind != Kind::kText || std::ranges::count(setting.words, value->text) > 0) return;
  for (const std::string& word : setting.words) {
    if (!Folded(word).empty() && Alike(word, value->text)) {
      value->text = word;
      return;
    }
  }
  const Found found = Find(value->text, WhereOfValues(section, setting));
  if (found.word != nullptr && !found.word->taken_as.empty()) value->text = found.word->taken_as;
}

void TakeValue(const Section& section, const Setting& setting, JsonValue* value) {
  if (setting.kind == ValueKind::kObject) {
    if (!setting.is_list && !setting.by_name) return TakeForeignWords(*setting.section, value);
    if (value->kind != (setting.is_list ? Kind::kList : Kind::kObject)) return;
    for (JsonValue& item : value->items) TakeForeignWords(*setting.section, &item);
    return;
  }
  if (setting.words.empty()) return;
  TakeWord(section, setting, value);
  if (!setting.is_list || value->kind != Kind::kList) return;
  for (JsonValue& item : value->items) TakeWord(section, setting, &item);
}

}  // namespace

std::span<const MindSporeRow> MindSporeRows() { return kRows; }

void TakeForeignWords(const Section& section, JsonValue* object) {
  if (object->kind != Kind::kObject) return;
  for (size_t i = 0; i < object->names.size(); ++i) {
    if (section.Find(object->names[i]) == nullptr) {
      const Found found = FindKey(section, object->names[i]);
      const std::string own(found.word == nullptr ? "" : found.word->taken_as);
      // A job that gives both spellings is refused with the foreign one.
      if (own.empty() || object->Find(own) != nullptr) continue;
      object->names[i] = own;
    }
    const Setting* const setting = section.Find(object->names[i]);
    if (setting != nullptr) TakeValue(section, *setting, &object->items[i]);
  }
}

std::string AnswerToKey(const Section& section, std::string_view key) {
  return Answer(FindKey(section, key), key);
}

std::string AnswerToValue(const Section& section, const Setting& setting, std::string_view word) {
  return Answer(Find(word, WhereOfValues(section, setting)), word);
}

}  // namespace hdps
