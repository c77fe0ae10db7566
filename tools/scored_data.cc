// Opens job, checkpoint and data, in this order, and says what does not fit.
#include "tools/scored_data.h"

#include <filesystem>
#include <utility>

#include "common/job/data_paths.h"
#include "common/protocol/manifest.h"
#include "tools/warnings.h"

namespace hdps {
namespace {

// A job and where it was read from, as messages name it.
struct ReadJob {
  Job job;
  std::string origin;
};

Result<ReadJob> JobOf(const CommonFlags& flags, FileSystem& files) {
  ReadJob read;
  if (!flags.job.empty()) {
    read.origin = flags.job;
    // The files to score alone have to be there.
    HDPS_ASSIGN_OR_RETURN(read.job,
                          LoadJob(files, flags.job, flags.overrides, DataFiles::kNotNeeded));
    return read;
  }
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found, OpenCheckpoint(files, flags.checkpoint));
  read.origin = JoinPath(found.folder, kManifestName);
  HDPS_ASSIGN_OR_RETURN(read.job, ParseJob(found.manifest.job_json, found.folder, flags.overrides));
  return read;
}

// The files of the command line, or else those of the job; all are there.
Result<std::vector<std::string>> FindData(const CommonFlags& flags, const ReadJob& read,
                                          FileSystem& files) {
  const bool given = !flags.data.empty();
  std::vector<std::string> paths = given ? flags.data : read.job.data.eval;
  if (paths.empty()) {
    return Status(Code::kInvalidArgument,
                  "--data is missing and the job's data.eval is empty; give files to score, "
                  "--data=FILE,...");
  }
  std::vector<std::string> found;
  for (size_t i = 0; i < paths.size(); ++i) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, paths[i]));
    found.insert(found.end(), here.begin(), here.end());
    if (!here.empty()) continue;
    const std::string sought = std::filesystem::absolute(paths[i]).lexically_normal().string();
    if (given) {
      return Status(Code::kInvalidArgument, "--data: there is no file " + sought);
    }
    const std::string place = read.origin + ": data.eval." + std::to_string(i) + ": ";
    if (flags.job.empty()) {
      return Status(Code::kInvalidArgument,
                    place + "the job was trained with \"" + paths[i] + "\", and there is no file " +
                        sought +
                        "; give --job=FILE, beside which its data is sought too, or --data=FILE");
    }
    const std::string beside =
        (std::filesystem::absolute(flags.job).parent_path() / paths[i]).lexically_normal();
    return Status(Code::kInvalidArgument, place + "there is no such file; looked for " + beside +
                                              (beside == sought ? "" : " and " + sought) +
                                              "; give the files with --data=FILE,...");
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<ScoredData>> ScoredData::Open(const CommonFlags& flags, FileSystem& files,
                                                     Executor& executor) {
  if (flags.checkpoint.empty()) {
    return Status(Code::kInvalidArgument,
                  "--checkpoint is missing; give a checkpoint's folder or the --out of a run");
  }
  std::unique_ptr<ScoredData> opened(new ScoredData(files));
  HDPS_ASSIGN_OR_RETURN(ReadJob read, JobOf(flags, files));
  PrintWarnings(read.job.warnings);
  HDPS_ASSIGN_OR_RETURN(opened->paths_, FindData(flags, read, files));
  opened->job_ = std::move(read.job);
  opened->job_.train.micro_batches = 1;
  HDPS_ASSIGN_OR_RETURN(opened->loaded_,
                        CheckpointModel::Load(files, opened->job_, flags.checkpoint, executor));
  return opened;
}

std::string ScoredData::TextsHint(const LabelTally& labels) const {
  if (labels.texts != 0 || job_.data.format != DataFormat::kCsv) return "";
  std::string texts;
  for (const ColumnSpec& column : job_.data.columns) {
    for (const std::string& text : column.positive) {
      texts += (texts.empty() ? "" : ", ") + ("\"" + text + "\"");
    }
  }
  return texts.empty() ? "" : "; none of them is one of the job's positive texts " + texts;
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
