// What to train, on what, and how: the job file as the program sees it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/float_format.h"
#include "common/ids.h"
#include "common/shard_map.h"
#include "common/status.h"

namespace hdps {

// ---- data --------------------------------------------------------------------------------------

enum class DataFormat : uint8_t { kCsv, kCriteo, kLibsvm, kLibffm };
enum class ColumnType : uint8_t { kLabel, kNumeric, kCategorical, kMulti, kSkip };
enum class Transform : uint8_t { kNone, kLog1p, kStandardize };  // log1p: sign(x) log(1 + |x|).

// One column of a CSV/TSV file, in the file's order.
struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kCategorical;
  Transform transform = Transform::kNone;  // Numeric columns.
  double mean = 0, scale = 1;              // kStandardize: (x - mean) / scale.
  std::string separator = "|";             // kMulti: between the values of one cell.
  std::vector<std::string> positive;  // kLabel: texts that mean 1, all others 0; empty: a number.
};

enum class FeatureKind : uint8_t { kBucketized, kCrossed };

// A categorical feature derived from columns (or, for Criteo, from I1..I13 and C1..C26).
struct FeatureSpec {
  std::string name;
  FeatureKind kind = FeatureKind::kCrossed;
  std::vector<std::string> from;   // kBucketized: one numeric column. kCrossed: two or more
                                   // categorical columns or bucketized features.
  std::vector<double> boundaries;  // kBucketized: ascending; value v falls into the number of
                                   // boundaries that are <= v.
  uint64_t hash_buckets = 0;       // kCrossed: values modulo this many; 0 = all 64 bits.
};

struct DataSpec {
  DataFormat format = DataFormat::kCsv;
  std::vector<std::string>
      train;  // Paths, read in this order; .gz and .zst are unpacked on the way.
  std::vector<std::string> eval;
  std::string delimiter = ",";
  bool header = false;                // The first line of each file is not data.
  std::string missing = "";           // A cell with this text (after trimming blanks) is missing.
  std::string comment = "";           // Lines that begin with this are passed over; empty: none.
  std::vector<ColumnSpec> columns;    // kCsv
  std::vector<FeatureSpec> features;  // Derived.
  uint32_t num_fields = 0;            // kLibffm: fields 0..num_fields-1, one sparse feature each.
  Transform numeric_transform = Transform::kLog1p;  // kCriteo: of I1..I13.
  uint64_t shuffle_rows = 65536;  // Rows in the shuffle window of training data; 0 = file order.
  int64_t max_bad_rows = 0;       // More bad rows than this end the job.
};

// ---- model -------------------------------------------------------------------------------------

enum class OptimizerKind : uint8_t {
  kSgd,
  kMomentum,
  kAdagrad,
  kRowwiseAdagrad,
  kAdam,
  kLazyAdam,
  kAdamW,
  kFtrl,
  kLamb
};

// Names and defaults as in the papers; see embedding/optimizer.h for the formulas.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdagrad;
  float learning_rate = 0.01f;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0;            // AdamW and LAMB: decoupled.
  float l1 = 0, l2 = 0;              // FTRL.
  float initial_accumulator = 0.1f;  // Adagrad, row-wise Adagrad, FTRL.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

enum class InitKind : uint8_t { kZeros, kConstant, kUniform, kNormal };
// A row's first weights: a function of (seed, table, key). kUniform: [-scale, scale).
struct InitSpec {
  InitKind kind = InitKind::kUniform;
  float scale = 0.01f;
  friend bool operator==(const InitSpec&, const InitSpec&) = default;
};

enum class EvictBy : uint8_t { kAge, kUse, kNorm };

// Which keys of a table get a row, and which rows leave it for good. A key without a row reads as
// its initial row, and its gradients are dropped.
struct PolicySpec {
  uint32_t admit_after = 1;                 // A key gets a row with the update that is its n-th.
  double admit_probability = 1;             // And then with this chance at each update.
  uint64_t admit_sketch_bytes = 16u << 20;  // Counts updates of keys without a row; of all shards.
  uint64_t evict_after_steps = 0;    // A row without an update for longer leaves; 0: none does.
  uint64_t max_rows = 0;             // Of the table, over all shards; 0: any number.
  uint64_t max_bytes = 0;            // The same, in bytes of rows with their state; 0: any number.
  EvictBy evict_by = EvictBy::kAge;  // Who leaves when there are more than that.
  bool capped() const { return max_rows > 0 || max_bytes > 0; }
  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

// Floats in a row of the dense table. A dense tensor is cut into chunks of this many; chunk c of
// tensor t has the key (t << 32 | c), and the last chunk of a tensor is filled up with zeros.
inline constexpr uint32_t kDenseChunkFloats = 1024;

// How the weights of a row are kept; the state of its rule is always kept in 32 bits.
using WeightFormat = FloatFormat;

struct TableSpec {
  std::string name;
  uint32_t dim = 16;
  OptimizerSpec optimizer;
  InitSpec init;
  bool dense = false;  // Holds the chunks of dense tensors; at most one such table, the last.
  ShardBy shard_by =
      ShardBy::kKey;              // kGroup for a dense table under LAMB, which needs whole tensors.
  PolicySpec policy = {};         // Not of the dense table.
  uint64_t vocab_cache_size = 0;  // Hot rows kept at every worker, on its device; 0: none.
  WeightFormat weights = WeightFormat::kFp32;  // Not of the dense table.
};

enum class LayerKind : uint8_t {
  kEmbedding,  // [n, F * dim] pooled rows of the features, or [n, dim] with combine = sum.
  kNumeric,    // [n, numeric columns] as read.
  kConcat,     // inputs side by side
  kSum,        // elementwise; all inputs of one width
  kDense,      // x W + b, then activation
  kBias,       // x + b
  kFm,         // input [n, F * dim] of an embedding -> [n, 1] (Rendle 2010, as in DeepFM)
  kCross,      // DCN-v2 (Wang et al. 2021, eq. 1), `units` layers, full-rank W
  kDot,  // DLRM (Naumov et al. 2019): dot products of all pairs; inputs: embedding, dense vector
};
enum class Activation : uint8_t { kNone, kRelu };
enum class Pooling : uint8_t { kSum, kMean };
enum class Combine : uint8_t { kConcat, kSum };

struct LayerSpec {
  std::string name;
  LayerKind kind = LayerKind::kDense;
  std::vector<std::string> inputs;     // Names of layers before this one.
  std::string table;                   // kEmbedding
  std::vector<std::string> features;   // kEmbedding; empty = all sparse features.
  Pooling pooling = Pooling::kSum;     // kEmbedding: of the keys of one feature.
  Combine combine = Combine::kConcat;  // kEmbedding: of the features.
  uint32_t units = 0;                  // kDense: outputs. kCross: number of layers.
  Activation activation = Activation::kNone;
};

enum class LossKind : uint8_t { kLogloss, kSoftmax };

// How a dense layer that alone reads an embedding multiplies: every example's pooled rows, or each
// distinct row of the batch once. kAuto: what a cost rule says of the batch; unique rows on CPUs
// only.
enum class FirstLayer : uint8_t { kAuto, kPlain, kUniqueRows };

// A graph of layers; the last one gives the logits, [n, 1] for logloss, [n, classes] for softmax.
struct ModelSpec {
  std::string type = "wide_deep";  // The recipe the graph was built from; else "graph".
  std::vector<LayerSpec> layers;
  LossKind loss = LossKind::kLogloss;
  std::string device = "auto";  // auto | cpu | cuda: where the dense layers are computed.
  FirstLayer first_layer = FirstLayer::kAuto;
};

// ---- running -----------------------------------------------------------------------------------

enum class Mode : uint8_t { kSync, kAsync, kSsp };
enum class DenseExchange : uint8_t { kServers, kAllreduce };

struct TrainSpec {
  Mode mode = Mode::kSync;
  uint32_t staleness_bound = 0;  // kSsp, in clocks. ssp with bound 0 is sync.
  uint32_t batch_size = 1024;    // Examples of one step over all workers.
  uint32_t epochs = 1;
  uint64_t max_steps = 0;        // 0 = as many as the epochs have.
  uint32_t micro_batches = 1;    // Parts a worker cuts its batch into, summed before the push.
  uint32_t lookahead = 1;        // Steps whose rows are asked for before their turn.
  bool lookahead_given = false;  // Else a sync worker asks as far or not at all, as it measures.
  bool eval_each_epoch = true;
  uint64_t cache_refresh_steps = 0;  // Between choices of the hot rows; 0: at growing distances.
};

enum class DatasetStrategy : uint8_t { kDataParallel, kFullBatch };

// Names as MindSpore's users know them.
struct ParallelSpec {
  std::string parallel_mode = "data_parallel";  // stand_alone | data_parallel
  uint32_t device_num = 0;                      // Workers; 0 = as many as join.
  bool gradients_mean = false;  // false: sum over workers of means; true: mean over all examples.
  bool cross_batch = false;     // true: each worker's mean counts the same, whatever its rows.
  DatasetStrategy dataset_strategy =
      DatasetStrategy::kDataParallel;  // full_batch: same data to all.
  DenseExchange dense_exchange = DenseExchange::kServers;
  std::string collective = "auto";  // auto | gloo | nccl
  // Of weights pulled to train and of gradients pushed, of all tables, between workers and servers.
  FloatFormat wire = FloatFormat::kFp32;
};

struct CheckpointSpec {
  uint64_t every_steps = 0;  // 0 = only at the end and when told to stop.
  uint32_t keep = 2;
};

struct ClusterSpec {
  uint32_t shards = 32;  // A power of two; fixed for the life of a table.
  uint32_t heartbeat_ms = 500;
  uint32_t dead_after_ms = 10000;
  uint32_t rendezvous_timeout_s = 600;
  uint32_t request_retry_ms = 2000;   // A pull or push is sent again after this long.
  uint32_t request_timeout_s = 120;   // And given up after this long.
  uint32_t pushes_in_flight_max = 8;  // A worker's unacknowledged pushes at one server.
  uint64_t memory_limit = 0;  // Bytes of one server for all it owns; 0: what the machine has.
  std::string spill_path;     // Folder for rows beyond it; empty: the server picks one.
};

// Invariant of a job that LoadJob returned: every name refers to something, every number is in its
// range, layers are in order, `tables` holds what the layers use, and the dense table is last.
struct Job {
  std::string name = "job";
  uint64_t seed = 1;
  DataSpec data;
  ModelSpec model;
  std::vector<TableSpec> tables;
  TrainSpec train;
  ParallelSpec parallel;
  CheckpointSpec checkpoint;
  ClusterSpec cluster;
  std::vector<std::string> warnings;  // Keys that count for nothing, and the like; for the log.
};

// The features a job's data gives, in the order of the batch's columns.
struct FeatureNames {
  std::vector<std::string> sparse;
  std::vector<std::string> numeric;
};
FeatureNames FeaturesOf(const DataSpec& data);

// Labels are whole numbers below this: 2 under logloss, the width of the logits under softmax. The
// job has passed ParseJob.
uint32_t NumClasses(const Job& job);

// Whether who loads a job will read its data: a server's or scheduler's machine need not have it.
enum class DataFiles : uint8_t { kMustExist, kNotRead };

// Reads a job file (JSON, one schema; docs/job_file.md), applies `overrides` ("key.path=value"
// each) and checks the whole. Relative data paths are sought from the folder of the job file, then
// from the working directory, and stored as found; under kMustExist each has to be there. ParseJob
// takes paths as they are and looks for nothing. kInvalidArgument names the file, the line, the
// field, the value, and what would be right.
Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides,
                    DataFiles needed = DataFiles::kMustExist);
Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides);

// "a.b=1,c=[2,3]" as "a.b=1" and "c=[2,3]": the value of --set, cut at the commas that stand in no
// brackets and no quotes.
std::vector<std::string> SplitOverrides(const std::string& text);

// The job as JSON with every default written out and the model as a graph; ParseJob of it gives the
// same job.
std::string PrintJob(const Job& job);

// Equal for two jobs exactly when they train the same thing: all that PrintJob shows but the name,
// the paths, how many bad rows are borne, how far to train (epochs, max_steps) and when to
// evaluate, the device, which rows it keeps, the checkpoint and the cluster's timings. Checkpoints
// and joining members are matched by it.
uint64_t JobDigest(const Job& job);

// What follows from the job's tables and layers for checkpoints: tables, dims, rules, shards, seed.
uint64_t TablesDigest(const Job& job);

}  // namespace hdps
