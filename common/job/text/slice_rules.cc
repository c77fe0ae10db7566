// Rules for tables cut over the servers and data cut over the workers.
#include <algorithm>
#include <bit>
#include <set>

#include "common/job/dataset_slices.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/layer_shard.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/table_slices.h"
#include "common/job/text/job_sections.h"
#include "common/parallel/slices.h"

namespace hdps {

namespace {

ShardBy ShardByOf(SliceMode mode) {
  switch (mode) {
    case SliceMode::kBatch:
      return ShardBy::kKey;
    case SliceMode::kRow:
      return ShardBy::kRange;
    case SliceMode::kField:
    case SliceMode::kColumn:
      break;
  }
  return ShardBy::kGiven;
}

// Returns what is wrong and what would be right; empty if nothing is wrong.
std::string FieldProblem(const Job& job, const TableSpec& table) {
  if (table.policy.capped()) {
    return "limits its rows (policy), evenly over shards, which have the rows of one feature or "
           "two "
           "then; leave max_rows and max_bytes out, or take batch_slice";
  }
  const size_t features = FeaturesOfTable(job, table.name).size();
  if (table.manual_shapes.empty()) return "";
  uint64_t sum = 0;
  for (const uint32_t count : table.manual_shapes) {
    if (count == 0) return "has an empty slice in manual_shapes; every slice has a feature or more";
    sum += count;
  }
  if (sum != features) {
    return "has " + std::to_string(features) + " features, and manual_shapes is of " +
           std::to_string(sum) + " in " + std::to_string(table.manual_shapes.size()) +
           " slices; give so many as there are";
  }
  if (table.manual_shapes.size() > job.cluster.shards) {
    return "has " + std::to_string(table.manual_shapes.size()) +
           " slices in manual_shapes, more than cluster.shards, " +
           std::to_string(job.cluster.shards) + "; raise that, or give fewer";
  }
  return "";
}

std::string ColumnProblem(const Job& job, const TableSpec& table) {
  const uint32_t slices = table.column_slices;
  if (!std::has_single_bit(slices) || slices > job.cluster.shards || table.dim % slices != 0) {
    return "has dim " + std::to_string(table.dim) + ", which cannot be cut into " +
           std::to_string(slices) +
           " parts; column_slices is a power of two that divides the dim, and at "
           "most cluster.shards, " +
           std::to_string(job.cluster.shards);
  }
  const OptimizerRecord& rule = RecordOf(table.optimizer);
  if (rule.kind == OptimizerKind::kRowwiseAdagrad || rule.is_own()) {
    return "has the optimizer " + std::string(rule.name) +
           ", which may look at all columns of a row; take another, such as adagrad, or "
           "batch_slice";
  }
  if (table.policy != PolicySpec()) {
    return "has a policy, which looks at whole rows; leave it out, or take batch_slice";
  }
  if (table.weights != WeightFormat::kFp32) {
    return "keeps its weights in 16 bits, rounded by draws for whole rows; leave `weights` out, or "
           "take batch_slice";
  }
  return "";
}

// Returns the first layer other than a dense one that takes numeric columns, whose order a dense
// layer alone follows by the rows of its weight; null if there is none.
const LayerSpec* FirstInOrder(const ModelSpec& model) {
  const auto cut_of = [&model](const LayerSpec& layer) {
    return CutOfLayer(layer, *RegistryOf(model).layers.Find(layer.kind));
  };
  std::set<std::string> numbers;
  for (const LayerSpec& layer : model.layers) {
    const bool reads = std::ranges::any_of(
        layer.inputs, [&](const std::string& input) { return numbers.contains(input); });
    if (reads && cut_of(layer) != LayerCut::kMatrix) return &layer;
    if (cut_of(layer) == LayerCut::kNumbers) numbers.insert(layer.name);
  }
  const LayerSpec& last = model.layers.back();
  return numbers.contains(last.name) ? &last : nullptr;
}

bool ReadsNumbers(const ModelSpec& model) {
  return std::ranges::any_of(model.layers, [&](const LayerSpec& layer) {
    return CutOfLayer(layer, *RegistryOf(model).layers.Find(layer.kind)) == LayerCut::kNumbers;
  });
}

// Returns why the tuples of dataset_strategy cut inputs of the job in a way that workers cannot
// read them; empty if they can.
std::string ProblemOfInputs(const Job& job) {
  const ShardTuples& tuples = job.parallel.dataset_slices;
  const FeatureNames names = FeaturesOf(job.data);
  const std::vector<uint32_t>*const sparse = SparseTuple(job), *const numeric = NumericTuple(job);
  const std::string shown = ShowTuples(tuples);
  if (CutsColumns(sparse) && names.sparse.empty()) {
    return shown + " cuts sparse features, and the job has none; give them [1, 1]";
  }
  if (CutsColumns(numeric)) {
    if (names.numeric.empty() || !ReadsNumbers(job.model)) {
      return shown + " cuts numeric columns, and " +
             (names.numeric.empty() ? "the job has none" : "no layer of the model reads them") +
             "; give them [1, 1]";
    }
    if (!names.sparse.empty() && !CutsColumns(sparse)) {
      return shown +
             " cuts the numeric columns and not the sparse features, and a worker reads either its "
             "own examples or its columns of all; give the first [1, " +
             std::to_string(*std::ranges::max_element(*numeric)) + "] too";
    }
    const LayerSpec* const other = NumericOrder(job).blocks > 1 ? FirstInOrder(job.model) : nullptr;
    if (other != nullptr) {
      return shown + " cuts an axis of images with others before it, which only dense layers can " +
             "read, and \"" + other->name + "\" is of kind " + other->kind +
             "; cut the first axis of the image, or its pixels: [1, N]";
    }
  }
  if (!names.sparse.empty() && tuples[0] == std::vector<uint32_t>{1, 1} && numeric != nullptr &&
      (*numeric)[0] > 1) {
    return shown + " cuts the numeric columns by examples and the sparse features not at all; " +
           "both are of the same examples, so give the first " + ShowTuples({*numeric}) + " too";
  }
  return "";
}

}  // namespace

Status SliceTables(const JobSource& source, Job* job) {
  for (TableSpec& table : job->tables) {
    if (table.dense) continue;
    table.shard_by = ShardByOf(table.slice_mode);
    std::string problem;
    if (table.shard_by == ShardBy::kGiven && table.vocab_cache_size > 0) {
      problem =
          "keeps rows at the workers (vocab_cache_size), which find them by their keys alone; "
          "leave that out, or take batch_slice";
    } else if (table.slice_mode == SliceMode::kField) {
      problem = FieldProblem(*job, table);
    } else if (table.slice_mode == SliceMode::kColumn) {
      problem = ColumnProblem(*job, table);
    }
    if (problem.empty()) continue;
    return Refuse(source, "model",
                  "table " + Quoted(table.name) + " (slice_mode " +
                      std::string(WordOf(table.slice_mode)) + ") " + problem);
  }
  return {};
}

Status CheckDatasetSlices(const JobSource& source, const Job& job) {
  const ParallelSpec& parallel = job.parallel;
  if (parallel.dataset_slices.empty()) return {};
  const bool images = job.data.format == DataFormat::kIdx;
  std::string problem = ProblemOfSlices(parallel.dataset_slices, parallel.device_num,
                                        images ? job.data.image_shape : std::vector<uint32_t>());
  if (problem.empty()) problem = ProblemOfInputs(job);
  if (parallel.parallel_mode == ParallelMode::kData ||
      parallel.parallel_mode == ParallelMode::kStandAlone) {
    problem = "under parallel_mode " + std::string(WordOf(parallel.parallel_mode)) +
              " every worker reads its own examples; leave it out, or take hybrid_parallel, "
              "semi_auto_parallel or auto_parallel";
  }
  return problem.empty() ? Status() : Refuse(source, "parallel.dataset_strategy", problem);
}

}  // namespace hdps
