// Turns a part of the data into the options of its reader.
#include "worker/step/job_data.h"

#include <glog/logging.h>

#include <optional>
#include <utility>

#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/vocabulary.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/data_preview.h"
#include "worker/data/item_pool.h"
#include "worker/step/evaluation.h"
#include "worker/step/step_pipeline.h"

namespace hdps {
namespace {

constexpr size_t kBatchesAhead = 4;
// No position in data that can be read; the product with a batch's rows stays within 64 bits.
constexpr uint64_t kStepsMax = uint64_t{1} << 32;

Status CheckPart(const Job& job, const DataPart& part) {
  const std::string workers = std::to_string(part.workers);
  if (part.rank >= part.workers) {
    return {Code::kInvalidArgument,
            "part=(" + std::to_string(part.rank) + ", " + workers +
                "): expected the rank of a worker and the number of workers, the rank from 0 on "
                "and below the number"};
  }
  if (part.skip_steps >= kStepsMax) {
    return {Code::kInvalidArgument, "skip_steps=" + std::to_string(part.skip_steps) +
                                        " is out of range; give the steps of the epoch that are "
                                        "behind you, below " +
                                        std::to_string(kStepsMax)};
  }
  const size_t parts = job.data.parts.size();
  if (part.set == kTrainedName && parts > 0 && parts != part.workers) {
    return {Code::kInvalidArgument, "data.parts has " + std::to_string(parts) +
                                        " numbers, but the part is one of " + workers +
                                        " workers; give one number for each worker"};
  }
  return {};
}

Status RefuseSet(const Job& job, const std::string& name) {
  std::string known = kTrainedName;
  for (const EvalSet& set : EvalSetsOf(job.data)) known += ", " + set.name;
  return {Code::kInvalidArgument,
          "this job has no rows named '" + name + "'; it may have " + known};
}

}  // namespace

JobData::JobData(Job job, FileSystem& files, MonotonicClock& clock, Executor* executor)
    : job_(std::move(job)), files_(files), clock_(clock), executor_(executor) {
  RowCacheOptions keeping = CacheOptionsOf(job_, files_, "");
  keeping.all_workers = false;
  rows_ = std::make_shared<RowCaches>(files_, keeping);
}

JobData::~JobData() = default;

Status JobData::Look(const DataPart& part, const std::vector<std::string>& paths) {
  if (!seen_.insert(part.set).second) return {};
  if (part.set == kTrainedName && job_.data.follow) return {};
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview,
                        PreviewData(files_, job_.data, paths, LabelsOf(job_)));
  for (const std::string& warning : preview.warnings) LOG(WARNING) << "data: " << warning;
  return {};
}

Result<std::unique_ptr<BatchStream>> JobData::Read(const DataPart& part) {
  HDPS_RETURN_IF_ERROR(CheckPart(job_, part));
  PipelineOptions options;
  if (part.set == kTrainedName) {
    options = TrainingOptions(job_, part.rank, part.workers);
    if (items_ == nullptr && job_.data.negatives.per_positive > 0) {
      items_ = std::make_shared<ItemPool>(files_, job_);
    }
    options.reader.items = items_;
  } else {
    const Result<EvalSet> set = FindEvalSet(job_, part.set);
    if (part.set.empty() || !set.ok()) return RefuseSet(job_, part.set);
    options = EvaluationOptions(job_, *set, part.rank, part.workers);
  }
  options.executor = executor_;
  options.reader.cache = rows_;
  if (!job_.data.vocabulary.file.empty() && job_.data.vocabulary.values == nullptr) {
    HDPS_RETURN_IF_ERROR(LoadVocabulary(files_, &job_.data));
  }
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<BatchReader> reader, ReaderOf(job_, files_, options));
  HDPS_RETURN_IF_ERROR(Look(part, options.paths));
  return std::make_unique<BatchStream>(std::move(reader), part.epoch, part.skip_steps,
                                       kBatchesAhead, clock_);
}

}  // namespace hdps
