// Opens job, checkpoint and data, in this order, and reports what does not fit.
#include "tools/scoring/scored_data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "common/job/data_paths.h"
#include "common/job/job_file.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/vocabulary.h"
#include "common/planning/strategy_of_job.h"
#include "tools/inputs/file_names.h"
#include "tools/warnings.h"
#include "worker/collective/folder_store.h"
#include "worker/data/held_out/share_look.h"

namespace hdps {
namespace {

// A job and its source as messages name it.
struct ReadJob {
  Job job;
  std::string origin;
};

Result<ReadJob> JobOf(const CommonFlags& flags, FileSystem& files) {
  ReadJob read;
  if (!flags.job.empty()) {
    read.origin = flags.job;
    // Only the files to score have to exist.
    HDPS_ASSIGN_OR_RETURN(read.job,
                          LoadJob(files, flags.job, flags.overrides, DataFiles::kNotNeeded));
    return read;
  }
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found,
                        OpenCheckpoint(files, flags.checkpoint, flags.which));
  read.origin = JoinPath(found.folder, kManifestName);
  HDPS_ASSIGN_OR_RETURN(read.job, ParseJob(found.manifest.job_json, found.folder, flags.overrides));
  return read;
}

// Returns where the job file names the files of a set.
std::string PlaceOf(const EvalSet& set, const DataSpec& data) {
  if (set.held_out) return "data.train.";
  for (size_t s = 0; s < data.eval_sets.size(); ++s) {
    if (data.eval_sets[s].name == set.name) {
      return "data.eval_sets." + std::to_string(s) + ".files.";
    }
  }
  return "data.eval.";
}

// Returns the set that the flags name, or the first of the job.
Result<EvalSet> SetOf(const CommonFlags& flags, const Job& job) {
  const std::vector<EvalSet> sets = EvalSetsOf(job.data);
  if (flags.eval_set.empty() && !sets.empty()) return sets.front();
  if (flags.eval_set.empty()) {
    return Status(Code::kInvalidArgument,
                  "--data is missing and the job's data.eval is empty; give files to score, "
                  "--data=FILE,...");
  }
  std::vector<std::string> names;
  for (const EvalSet& set : sets) {
    if (set.name == flags.eval_set) return set;
    names.push_back(set.name);
  }
  return Status(Code::kInvalidArgument, "--eval_set=" + flags.eval_set +
                                            ": the job has no such evaluation set" +
                                            DidYouMean(flags.eval_set, names));
}

// Returns the files of the command line, or of a set of the job. All of them exist.
Result<EvalSet> FindData(const CommonFlags& flags, const ReadJob& read, FileSystem& files) {
  const std::vector<std::string> named = SplitFileList(files, flags.data);
  const bool given = !named.empty();
  if (given && !flags.eval_set.empty()) {
    return Status(Code::kInvalidArgument,
                  "--eval_set=" + flags.eval_set + " contradicts --data; give one of them");
  }
  EvalSet found{.name = "", .files = named};
  if (!given) {
    HDPS_ASSIGN_OR_RETURN(found, SetOf(flags, read.job));
  }
  const std::vector<std::string> paths = std::exchange(found.files, {});
  for (size_t i = 0; i < paths.size(); ++i) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files, paths[i]));
    found.files.insert(found.files.end(), here.begin(), here.end());
    if (!here.empty()) continue;
    const std::string sought = std::filesystem::absolute(paths[i]).lexically_normal().string();
    if (given) {
      return Status(Code::kInvalidArgument, "--data: there is no file " + sought);
    }
    const std::string place =
        read.origin + ": " + PlaceOf(found, read.job.data) + std::to_string(i) + ": ";
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

// Reads the job's vocabulary: the checkpoint's copy, so that a checkpoint is enough to score rows,
// or else the file that the job names.
Status LoadVocabularyOf(const std::string& origin, const FoundCheckpoint& checkpoint,
                        FileSystem& files, DataSpec* data) {
  if (data->vocabulary.file.empty()) return {};
  for (const CheckpointPart& part : checkpoint.chain) {
    const std::string copy = JoinPath(part.folder, kVocabularyName);
    if (files.Exists(copy)) data->vocabulary.file = copy;
  }
  const Status loaded = LoadVocabulary(files, data);
  if (loaded.ok()) return loaded;
  return {Code::kInvalidArgument, origin + ": data.vocabulary.file: " + loaded.message() + "; " +
                                      kVocabularyName + " lies in full checkpoints and beside " +
                                      "the prepared job, --set=data.vocabulary.file=FILE"};
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
  HDPS_ASSIGN_OR_RETURN(opened->set_, FindData(flags, read, files));
  opened->job_file_ = flags.job;
  opened->job_ = std::move(read.job);
  opened->job_.train.micro_batches = 1;
  if (opened->set_.held_out) {
    Job here = opened->job_;
    here.data.train = opened->set_.files;
    HDPS_ASSIGN_OR_RETURN(const ShareLook look, LookAtShare(files, here));
    PrintWarnings(WhyNotShare(look, here.data.validation_share));
  }
  HDPS_ASSIGN_OR_RETURN(
      opened->loaded_,
      CheckpointModel::Load(files, opened->job_, flags.checkpoint, flags.which, executor,
                            flags.int8_rows ? RowForm::kInt8 : RowForm::kSaved));
  opened->int8_rows_ = flags.int8_rows;
  if (flags.unknown_are_zeros) opened->loaded_->set_unknown_keys(UnknownKeys::kZero);
  opened->unknown_ = std::make_unique<UnknownCount>(*opened->loaded_);
  opened->job_ = opened->loaded_->job();
  WarnUnlessNewest(opened->loaded_->checkpoint());
  HDPS_RETURN_IF_ERROR(
      LoadVocabularyOf(read.origin, opened->loaded_->checkpoint(), files, &opened->job_.data));
  if (flags.workers > 1) {
    HDPS_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(opened->job_, flags.workers));
    std::vector<ScoringRank> here;
    if (flags.process < 0) {
      here = AllRanksHere(flags.workers);
    } else {
      HDPS_ASSIGN_OR_RETURN(here.emplace_back(), opened->Meet(flags));
    }
    HDPS_ASSIGN_OR_RETURN(
        opened->ranks_, RankScoring::New(opened->job_, strategy, std::move(here), *opened->loaded_,
                                         executor, *opened->clock_));
  }
  opened->tells_ = flags.process <= 0;
  return opened;
}

Result<ScoringRank> ScoredData::Meet(const CommonFlags& flags) {
  CollectiveOptions options;
  options.rank = static_cast<uint32_t>(flags.process);
  options.size = flags.workers;
  options.host = flags.collective_host;
  options.timeout_ms = int64_t{job_.cluster.request_timeout_s} * 1000;
  FolderStore folder(files_, *clock_, flags.meet, options.timeout_ms);
  // First, so that a process that is missing or there twice is told as such.
  HDPS_RETURN_IF_ERROR(folder.Put("process_" + std::to_string(flags.process), ""));
  for (uint32_t r = 0; r < flags.workers; ++r) {
    HDPS_RETURN_IF_ERROR(folder.Get("process_" + std::to_string(r)).status());
  }
  ScoringRank met{options.rank, nullptr, nullptr};
  options.group = "batch";
  HDPS_ASSIGN_OR_RETURN(met.group, NewCollective("gloo", options, folder));
  options.group = "layers";
  HDPS_ASSIGN_OR_RETURN(met.lane_group, NewCollective("gloo", options, folder));
  HDPS_RETURN_IF_ERROR(met.group->Barrier());  // Now all have read what is in the folder.
  HDPS_RETURN_IF_ERROR(folder.Leave());
  return met;
}

std::string ScoredData::DescribePlacement() const {
  std::string text;
  if (ranks_ != nullptr) {
    text = ranks_->Describe();
  } else {
    const size_t bytes = loaded_->model().dense_floats() * sizeof(float);
    text = "worker 0: all dense weights, " + ShowByteCount(bytes) + "\n";
  }
  const std::vector<uint64_t> rows = loaded_->RowsOfTables();
  const std::vector<CheckpointModel::RowBytes> bytes = loaded_->BytesOfTables();
  for (size_t t = 0; t < job_.tables.size(); ++t) {
    const TableSpec& table = job_.tables[t];
    if (table.dense) continue;
    text += "table " + EscapeUntrusted(table.name) + ": " + std::to_string(rows[t]) + " rows of " +
            std::to_string(table.dim) + " weights, " + ShowByteCount(bytes[t].held) + ", in " +
            std::to_string(job_.cluster.shards) + " shards of this process\n";
  }
  return text;
}

std::string ScoredData::RowsInInt8() const {
  if (!int8_rows_) return "";
  CheckpointModel::RowBytes sum;
  const std::vector<CheckpointModel::RowBytes> bytes = loaded_->BytesOfTables();
  for (size_t t = 0; t < bytes.size(); ++t) {
    if (job_.tables[t].dense) continue;
    sum.held += bytes[t].held;
    sum.saved += bytes[t].saved;
  }
  const double share =
      static_cast<double>(sum.held) / std::max(1.0, static_cast<double>(sum.saved));
  return "int8: " + ShowByteCount(sum.held) + " of rows instead of " + ShowByteCount(sum.saved) +
         ", " + ShowNumber("%.3f", share) + " of them";
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

std::string ScoredData::WhatScoresAre() const {
  if (job_.model.loss == LossKind::kBpr) {
    return "model.loss is bpr: a score is a logit that orders the rows of one group, the higher "
           "the "
           "better; it is no probability, and between groups it says nothing";
  }
  if (job_.model.loss == LossKind::kSampledSoftmax) {
    return "model.loss is sampled_softmax: a score is the product of two vectors, which orders the "
           "items of one user, the higher the better; it is no probability";
  }
  return "";
}

Result<std::vector<InputFile>> ScoredData::Inputs() const {
  std::vector<InputFile> inputs;
  for (const std::string& path : set_.files) {
    inputs.push_back(
        {set_.name.empty() ? "a file of --data" : "a file of the rows to score", path});
  }
  if (!job_file_.empty()) inputs.push_back({"the job file", job_file_});
  if (job_.parallel.kept_strategy) {
    inputs.push_back({"the strategy that the job loads", job_.parallel.kept_strategy->path});
  }
  if (!job_.data.vocabulary.file.empty()) {
    inputs.push_back({"the vocabulary of the job", job_.data.vocabulary.file});
  }
  for (const CheckpointPart& part : loaded_->checkpoint().chain) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(part.folder));
    for (const std::string& name : names) {
      inputs.push_back({"a file of the checkpoint", JoinPath(part.folder, name)});
    }
  }
  return inputs;
}

Result<ScoreSums> ScoredData::Score(const RowsWanted& rows_wanted, const TakeScores& take) {
  PipelineOptions reading = EvaluationOptions(job_, set_, 0, 1);
  reading.labels = rows_wanted.labels;
  reading.reader.bad_rows = rows_wanted.bad_rows;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<StepPipeline> steps,
                        StepPipeline::Start(job_, files_, *clock_, reading));
  const auto fetch = [this](const PreparedStep& step, std::vector<std::vector<float>>* rows) {
    return loaded_->Fetch(step, rows);
  };
  RowSource source = {nullptr, fetch};
  // Here, so that several workers count as one does: each step comes whole, once.
  if (tells_) {
    source.ask = [this](const PreparedStep& step) { unknown_->Add(step.parts); };
  }
  if (ranks_ != nullptr) {
    source.score = [this](const Batch& batch, std::vector<float>* scores) {
      return ranks_->Score(batch, scores);
    };
  }
  return ScoreSteps(job_, loaded_->model(), *steps, source, take);
}

}  // namespace hdps
