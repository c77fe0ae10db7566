// Opens job, checkpoint and data, in this order, and says what does not fit.
#include "tools/scored_data.h"

#include <utility>

namespace hdps {
namespace {

Result<Job> JobOf(const ScoringOptions& options, FileSystem& files) {
  if (!options.job.empty()) return LoadJob(files, options.job, options.overrides);
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found, OpenCheckpoint(files, options.checkpoint));
  return ParseJob(found.manifest.job_json, found.folder, options.overrides);
}

}  // namespace

Result<std::unique_ptr<ScoredData>> ScoredData::Open(const ScoringOptions& options,
                                                     FileSystem& files, Executor& executor) {
  if (options.checkpoint.empty()) {
    return Status(Code::kInvalidArgument,
                  "--checkpoint is missing; give a checkpoint's folder or the --out of a run");
  }
  std::unique_ptr<ScoredData> opened(new ScoredData(files));
  HDPS_ASSIGN_OR_RETURN(opened->job_, JobOf(options, files));
  opened->paths_ = options.data.empty() ? opened->job_.data.eval : options.data;
  if (opened->paths_.empty()) {
    return Status(Code::kInvalidArgument,
                  "--data is missing and the job's data.eval is empty; give files to score, "
                  "--data=FILE,...");
  }
  opened->job_.train.micro_batches = 1;
  HDPS_ASSIGN_OR_RETURN(opened->loaded_,
                        CheckpointModel::Load(files, opened->job_, options.checkpoint, executor));
  return opened;
}

Result<ScoreSums> ScoredData::Score(bool labels, const TakeScores& take) {
  PipelineOptions reading = EvaluationOptions(job_, paths_, 0, 1);
  reading.labels = labels;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<StepPipeline> steps,
                        StepPipeline::Start(job_, files_, *clock_, reading));
  const auto fetch = [this](const PreparedStep& step, std::vector<std::vector<float>>* rows) {
    return loaded_->Fetch(step, rows);
  };
  return ScoreSteps(job_, loaded_->model(), *steps, {nullptr, fetch}, take);
}

}  // namespace hdps
