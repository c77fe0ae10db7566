// The rows of the table of job keys.
#include "common/job/text/job_schema.h"

#include <iterator>

#include "common/job/text/layer_text.h"
#include "common/job/text/optimizer_text.h"

namespace hdps {

namespace {

using enum KeyKind;

constexpr double kU32 = 4294967295.0;
constexpr double kU64 = 18446744073709551615.0;
constexpr double kBig = 1e300;

constexpr std::string_view kTransforms = "none, log1p, standardize";
constexpr std::string_view kCsvOnly = "data.format=csv";
constexpr std::string_view kEmbeds = "type=wide_deep|deepfm|dcn_v2|dlrm";
constexpr std::string_view kLinear = "type=wide_deep|deepfm|logistic";
constexpr std::string_view kSparse = "type=wide_deep|deepfm|dcn_v2|dlrm|logistic";

// One row a key.
constexpr KeySpec kKeys[] = {
    {"job", "name", kText, "", 0, 0, "\"job\"", "", "For people; shown in summaries and logs."},
    {"job", "seed", kInteger, "", 0, kU64, "1", "",
     "Decides initial weights and the order of rows."},
    {"job", "data", kObject, "data", 0, 0, "", "", "What to read. Required."},
    {"job", "model", kObject, "model", 0, 0, "", "", "What to train. Required."},
    {"job", "train", kObject, "train", 0, 0, "", "", "How to train."},
    {"job", "parallel", kObject, "parallel", 0, 0, "", "",
     "How the work is split, in MindSpore's words."},
    {"job", "checkpoint", kObject, "checkpoint", 0, 0, "", "", "What is kept for later."},
    {"job", "cluster", kObject, "cluster", 0, 0, "", "", "Shards, deadlines and windows."},

    {"data", "format", kChoice, "csv, criteo, libsvm, libffm, libfm", 0, 0, "\"csv\"", "",
     "criteo: label, I1..I13, C1..C26 between tabs. libsvm: one sparse feature `features`. libffm "
     "and libfm: `field0`, `field1`, ..., by the number before an index, or by the place of an "
     "entry "
     "in its row."},
    {"data", "train", kTexts, "", 0, 0, "[]", "",
     "Files, read in this order; .gz and .zst are unpacked on the way. Relative paths are sought "
     "from the job file's folder, then from the working directory. At least one."},
    {"data", "eval", kTexts, "", 0, 0, "[]", "", "Files that are never trained on."},
    {"data", "delimiter", kText, "", 0, 0, "\",\"", kCsvOnly,
     "One character between cells; \"\\t\" for TSV."},
    {"data", "header", kBool, "", 0, 0, "false", "data.format=csv|criteo",
     "The first line of each file holds the names of the columns, in the job's order."},
    {"data", "missing", kText, "", 0, 0, "\"\"", kCsvOnly,
     "A cell with this text, blanks trimmed, is missing."},
    {"data", "comment", kText, "", 0, 0, "\"\"", kCsvOnly,
     "Lines that begin with this are passed over; empty: none."},
    {"data", "columns", kObjects, "column", 0, 0, "[]", kCsvOnly,
     "One entry a column, in the file's order; exactly one is the label."},
    {"data", "features", kObjects, "feature", 0, 0, "[]", "data.format=csv|criteo",
     "Categorical features derived from columns and from features before them."},
    {"data", "num_fields", kInteger, "", 1, 65536, "1", "format=libffm|libfm",
     "Fields 0..n-1, one sparse feature each; a libfm row has exactly so many entries."},
    {"data", "numeric_transform", kChoice, kTransforms.substr(0, 11), 0, 0, "\"log1p\"",
     "format=criteo", "Of I1..I13; log1p is sign(x) log(1 + |x|)."},
    {"data", "shuffle_rows", kInteger, "", 0, 1e8, "65536", "",
     "Rows in the shuffle window of training data; 0: the files' order."},
    {"data", "max_bad_rows", kInteger, "", 0, 9e15, "0", "",
     "More bad rows than this end the job."},

    {"column", "name", kText, "", 0, 0, "", "",
     "Required; all names of columns and features differ."},
    {"column", "type", kChoice, "label, numeric, categorical, multi, skip", 0, 0, "\"categorical\"",
     "", "multi: several values in one cell."},
    {"column", "transform", kChoice, kTransforms, 0, 0, "\"none\"", "type=numeric",
     "log1p is sign(x) log(1 + |x|); standardize is (x - mean) / scale."},
    {"column", "mean", kNumber, "", -kBig, kBig, "0", "transform=standardize", ""},
    {"column", "scale", kNumber, "", -kBig, kBig, "1", "transform=standardize", "Not 0."},
    {"column", "separator", kText, "", 0, 0, "\"|\"", "type=multi",
     "One character between the values of a cell."},
    {"column", "positive", kTexts, "", 0, 0, "[]", "type=label",
     "Texts that mean 1, all others 0; empty: the cell is a number."},
    {"column", "repeat", kInteger, "", 1, 65536, "", "",
     "Stands for that many columns of this kind: pixel0, pixel1, ..."},

    {"feature", "name", kText, "", 0, 0, "", "", "Required."},
    {"feature", "kind", kChoice, "bucketized, crossed", 0, 0, "\"crossed\"", "", ""},
    {"feature", "from", kTexts, "", 0, 0, "", "",
     "bucketized: one numeric column. crossed: two or more categorical columns or bucketized "
     "features before this one."},
    {"feature", "boundaries", kNumbers, "", 0, 0, "[]", "kind=bucketized",
     "Ascending, of the number as it stands in the file; v falls into the bucket given by how many "
     "are <= v."},
    {"feature", "hash_buckets", kInteger, "", 0, kU64, "0", "kind=crossed",
     "Values modulo this many; 0: all 64 bits."},

    {"model", "type", kChoice, "wide_deep, deepfm, dcn_v2, dlrm, logistic, mlp, graph", 0, 0,
     "\"wide_deep\"", "",
     "The recipe `layers` are made from; graph: they are spelled out. A recipe with `layers` is "
     "taken as spelled out too."},
    {"model", "embedding_dim", kInteger, "", 1, 4096, "16", kEmbeds,
     "Floats of one row of the table `deep`."},
    {"model", "hidden", kIntegers, "", 1, 65536, "[64, 32]",
     "type=wide_deep|deepfm|dcn_v2|dlrm|mlp",
     "Hidden layers of the MLP, each with relu. For dlrm the top one."},
    {"model", "bottom_hidden", kIntegers, "", 1, 65536, "[64]", "type=dlrm",
     "Hidden layers between the numbers and the dot products."},
    {"model", "cross_layers", kInteger, "", 1, 64, "3", "type=dcn_v2", ""},
    {"model", "classes", kInteger, "", 1, 65536, "1", "type=mlp",
     "More than 1: softmax over as many classes."},
    {"model", "wide_features", kTexts, "", 0, 0, "", kLinear, "Default: all sparse features."},
    {"model", "deep_features", kTexts, "", 0, 0, "", kEmbeds, "Default: all sparse features."},
    {"model", "numeric", kBool, "", 0, 0, "true", kSparse, "The numeric columns take part."},
    {"model", "wide_optimizer", kObject, "optimizer", 0, 0, "", kLinear,
     "Default: ftrl 0.05, l1 = l2 = 1e-8, initial accumulator 1e-6."},
    {"model", "deep_optimizer", kObject, "optimizer", 0, 0, "", kEmbeds,
     "Default: lazy_adam 0.00035."},
    {"model", "wide_init", kObject, "init", 0, 0, "", kLinear, "Default: zeros."},
    {"model", "embedding_init", kObject, "init", 0, 0, "", kEmbeds, "Default: normal, scale 0.01."},
    {"model", "policy", kObject, "policy", 0, 0, "", kSparse,
     "Which keys get rows and which rows leave, in each table of the recipe."},
    {"model", "weights", kChoice, "fp32, fp16, bf16", 0, 0, "\"fp32\"", kSparse,
     "How the servers keep the weights of rows, in each table of the recipe with a dim above 1. In "
     "16 bits updates are rounded up or down at random, from seed, table, key and step, so that "
     "small ones are not lost; the optimizer's state stays in 32 bits."},
    {"model", "vocab_cache_size", kInteger, "", 0, 1e9, "0", kSparse,
     "Rows of each table that are seen most, kept with their optimizer state at every worker, on "
     "its device (MindSpore's name); 0: none. Only in sync mode, where it changes no result."},
    {"model", "tables", kObjects, "table", 0, 0, "[]", "", "With `layers`: the tables they use."},
    {"model", "layers", kObjects, "layer", 0, 0, "[]", "",
     "The graph, inputs before users; the last layer gives the logits."},
    {"model", "dense_optimizer", kObject, "optimizer", 0, 0, "", "",
     "Of the weights of all dense layers. Default: adam 0.00035."},
    {"model", "loss", kChoice, "logloss, softmax", 0, 0, "", "",
     "Default: softmax for an mlp of several classes, else logloss."},
    {"model", "device", kChoice, "auto, cpu, cuda", 0, 0, "\"auto\"", "",
     "Where the dense layers are computed; auto: cuda if there is one."},
    {"model", "first_layer", kChoice, "auto, plain, unique_rows", 0, 0, "\"auto\"", "",
     "Of a dense layer on an embedding on the CPU: multiply every example's rows, or each distinct "
     "row of the batch once; auto: what is cheaper for the batch."},

    {"table", "name", kText, "", 0, 0, "", "", "Required; \"dense\" is taken."},
    {"table", "dim", kInteger, "", 1, 65536, "16", "", ""},
    {"table", "optimizer", kObject, "optimizer", 0, 0, "", "", "Default: lazy_adam 0.00035."},
    {"table", "init", kObject, "init", 0, 0, "", "", ""},
    {"table", "weights", kChoice, "fp32, fp16, bf16", 0, 0, "\"fp32\"", "", "As `model.weights`."},
    {"table", "vocab_cache_size", kInteger, "", 0, 1e9, "0", "", "As `model.vocab_cache_size`."},

    {"table", "policy", kObject, "policy", 0, 0, "", "",
     "Which keys get rows and which rows leave."},

    {"policy", "admit_after", kInteger, "", 1, 15, "1", "",
     "A key gets a row with its n-th update; until then it reads as its initial row and its "
     "gradients are dropped. 1: at once."},
    {"policy", "admit_probability", kNumber, "", 1e-9, 1, "1", "",
     "From then on each update gives it a row with this probability, drawn from seed, table, key "
     "and step."},
    {"policy", "admit_sketch_bytes", kBytes, "", 4096, 1e15, "16777216", "",
     "With admit_after above 1: memory that counts the keys without a row, over all shards. Four "
     "bytes a key hold one wrong admission in fifty; keys that come no more are forgotten."},
    {"policy", "evict_after_steps", kInteger, "", 0, 4e9, "0", "",
     "A row that no update has changed for more steps than this leaves; 0: none does."},
    {"policy", "max_rows", kInteger, "", 0, 9e15, "0", "",
     "More rows than this in the table, and some leave; 0: any number. Split evenly over shards."},
    {"policy", "max_bytes", kBytes, "", 0, 9e15, "0", "",
     "The same, in bytes of rows with their state."},
    {"policy", "evict_by", kChoice, "age, use, norm", 0, 0, "\"age\"", "",
     "Who leaves then: those whose last update is the oldest, those with the fewest updates, or "
     "those whose weights are the smallest."},


    {"init", "kind", kChoice, "zeros, constant, uniform, normal", 0, 0, "\"uniform\"", "",
     "uniform: in [-scale, scale). normal: scale is the deviation."},
    {"init", "scale", kNumber, "", -1e6, 1e6, "0.01", "kind=constant|uniform|normal", ""},

    {"train", "mode", kChoice, "sync, async, ssp", 0, 0, "\"sync\"", "",
     "sync: one combined update a step. async: each worker's as it comes. ssp: async, no worker "
     "more than the bound ahead."},
    {"train", "staleness_bound", kInteger, "", 0, kU32, "0", "mode=ssp",
     "In steps; ssp with 0 is sync."},
    {"train", "batch_size", kInteger, "", 1, 16777216, "1024", "",
     "Examples of one step over all workers."},
    {"train", "epochs", kInteger, "", 1, 1e6, "1", "", ""},
    {"train", "max_steps", kInteger, "", 0, 9e15, "0", "", "0: as many as the epochs have."},
    {"train", "micro_batches", kInteger, "", 1, 65536, "1", "",
     "Parts a worker cuts its batch into, summed before the push; at most batch_size."},
    {"train", "lookahead", kInteger, "", 0, 16, "0", "",
     "Steps whose rows a worker asks for before their turn; 1 pays where rows take as long to come "
     "as a step takes to compute, as over a thin link. sync: what changes meanwhile is asked for "
     "again, the result is the same. async and ssp: such rows may lack as many of the worker's own "
     "steps."},
    {"train", "eval_each_epoch", kBool, "", 0, 0, "true", "", "Otherwise only at the end."},
    {"train", "cache_refresh_steps", kInteger, "", 0, 9e15, "0", "",
     "With vocab_cache_size: steps between two choices of the rows; 0: 4, 12, 48, ... up to 4096."},

    {"parallel", "parallel_mode", kChoice, "stand_alone, data_parallel", 0, 0, "\"data_parallel\"",
     "", "stand_alone: one worker. MindSpore's other three modes are refused."},
    {"parallel", "device_num", kInteger, "", 1, 4096, "", "",
     "Workers; not given: as many as join."},
    {"parallel", "gradients_mean", kBool, "", 0, 0, "true", "",
     "true: the mean over all examples of the step, so the number of workers changes nothing. "
     "false, MindSpore's own default: the sum over workers of their means, as if the learning rate "
     "were that many times higher."},
    {"parallel", "cross_batch", kBool, "", 0, 0, "false", "gradients_mean=true",
     "Each worker's mean counts the same, whatever its rows."},
    {"parallel", "dataset_strategy", kChoice, "data_parallel, full_batch", 0, 0,
     "\"data_parallel\"", "", "full_batch: every worker gets the whole batch."},
    {"parallel", "full_batch", kBool, "", 0, 0, "", "",
     "true is another way to say dataset_strategy = full_batch."},
    {"parallel", "dense_exchange", kChoice, "servers, allreduce", 0, 0, "\"servers\"", "",
     "How gradients of dense layers meet. allreduce only in sync mode."},
    {"parallel", "collective", kChoice, "auto, gloo, nccl", 0, 0, "\"auto\"",
     "dense_exchange=allreduce", "auto: nccl with a GPU per worker, else gloo."},
    {"parallel", "wire", kChoice, "fp32, fp16, bf16", 0, 0, "\"fp32\"", "",
     "In which format weights pulled to train and gradients pushed travel between workers and "
     "servers, of all tables and of dense layers that servers hold. 16 bits halve the bytes; "
     "values "
     "are rounded to the nearest, servers add up and keep in 32 bits, evaluation and checkpoints "
     "see those. A value too large for fp16 travels as 65504, one that is no number still ends the "
     "job. What an allreduce moves stays in 32 bits."},

    {"checkpoint", "every_steps", kInteger, "", 0, 9e15, "0", "",
     "0: only at the end and when told to stop."},
    {"checkpoint", "keep", kInteger, "", 1, 1000, "2", "", "Older ones are removed."},

    {"cluster", "shards", kInteger, "", 1, 65536, "32", "",
     "A power of two; fixed for the life of a table."},
    {"cluster", "heartbeat_ms", kInteger, "", 10, 3.6e6, "500", "", ""},
    {"cluster", "dead_after_ms", kInteger, "", 20, 3.6e6, "10000", "",
     "At least twice heartbeat_ms."},
    {"cluster", "rendezvous_timeout_s", kInteger, "", 1, 86400, "600", "", ""},
    {"cluster", "request_retry_ms", kInteger, "", 10, 3.6e6, "2000", "",
     "A pull or push is sent again after this long."},
    {"cluster", "request_timeout_s", kInteger, "", 1, 86400, "120", "",
     "And given up after this long; more than request_retry_ms."},
    {"cluster", "pushes_in_flight_max", kInteger, "", 1, 1024, "8", "",
     "A worker's unacknowledged pushes at one server."},
    {"cluster", "memory_limit", kBytes, "", 0, 9e15, "0", "",
     "Of one server, for all it owns: rows beyond it go to disk. 0: what the machine has."},
    {"cluster", "spill_path", kText, "", 0, 0, "\"\"", "",
     "Folder for those rows, emptied first; on a disk of the server's machine, and no other job's. "
     "Empty: below the run's --out, else below /tmp."},
};

}  // namespace

KeyTable::KeyTable(const LayerRegistry& layers) : keys_(std::begin(kKeys), std::end(kKeys)) {
  AddLayerKeys(layers, &texts_, &keys_);
  const std::span<const KeySpec> optimizer = OptimizerKeys();
  keys_.insert(keys_.end(), optimizer.begin(), optimizer.end());
}

const KeySpec* KeyTable::Find(std::string_view section, std::string_view key) const {
  for (const KeySpec& spec : keys_) {
    if (spec.section == section && spec.key == key) return &spec;
  }
  return nullptr;
}

std::span<const KeySpec> JobKeys() {
  static const KeyTable built_in(BuiltInLayers());
  return built_in.keys();
}

}  // namespace hdps
