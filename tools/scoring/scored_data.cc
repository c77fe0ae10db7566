// Opens job, checkpoint and data, in this order, and reports what does not fit.
#include "tools/scoring/scored_data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/strategy_of_job.h"
#include "tools/scoring/scored_job.h"
#include "tools/warnings.h"
#include "worker/collective/folder_store.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/held_out/share_look.h"

namespace hdps {

Result<std::unique_ptr<ScoredData>> ScoredData::Open(const CommonFlags& flags, FileSystem& files,
                                                     Executor& executor) {
  if (flags.checkpoint.empty()) {
    return Status(Code::kInvalidArgument,
                  "--checkpoint is missing; give a checkpoint's folder or the --out of a run");
  }
  std::unique_ptr<ScoredData> opened(new ScoredData(files, executor));
  HDPS_ASSIGN_OR_RETURN(ReadJob read, JobOf(flags, files));
  HDPS_RETURN_IF_ERROR(NeedsLayers(read.job, "a score"));
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
                            flags.int8_rows ? RowForm::kInt8 : RowForm::kFlat));
  opened->int8_rows_ = flags.int8_rows;
  if (flags.unknown_are_zeros) opened->loaded_->set_unknown_keys(UnknownKeys::kZero);
  if (flags.count_unknown) opened->unknown_ = std::make_unique<UnknownCount>(*opened->loaded_);
  opened->job_ = opened->loaded_->job();
  TellWhichIsTaken(opened->loaded_->checkpoint());
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
  HDPS_RETURN_IF_ERROR(opened->MakeEngines());
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

bool ScoredData::softmax() const { return job_.model.loss == LossKind::kSoftmax; }

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
  if (labels.texts != 0 || !HasNamedColumns(job_.data.format)) return "";
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

Status ScoredData::MakeEngines() {
  // A GPU has one model, and so has a process that meets others in each batch.
  const bool one = ranks_ != nullptr || !loaded_->model().ops().on_host();
  const auto threads = one ? size_t{1} : static_cast<size_t>(executor_.threads());
  while (engines_.size() < threads) {
    HDPS_ASSIGN_OR_RETURN(engines_.emplace_back(),
                          ScoringEngine::New(*loaded_, /*owns_model=*/!engines_.empty()));
  }
  return {};
}

Status ScoredData::ScoreOne(ScoringEngine& engine, ScoredBatch* scored) {
  if (ranks_ != nullptr) {
    HDPS_RETURN_IF_ERROR(engine.model().CheckBatch(scored->batch));
    HDPS_ASSIGN_OR_RETURN(scored->loss_sum, ranks_->Score(scored->batch, &scored->scores));
    if (tells_ && unknown_ != nullptr) engine.FindKeys(scored->batch);
  } else {
    HDPS_ASSIGN_OR_RETURN(scored->loss_sum, engine.Score(scored->batch));
    scored->scores.swap(engine.scores());
  }
  if (!tells_ || unknown_ == nullptr) return {};
  MutexLock lock(counting_);
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    const int set = engine.table_sets()[t];
    if (set >= 0) unknown_->Add({t}, engine.sets()[static_cast<size_t>(set)]);
  }
  return {};
}

Result<ScoreSums> ScoredData::Score(const RowsWanted& rows_wanted, const TakeBatch& take,
                                    const ShapeBatch& shape) {
  PipelineOptions reading = EvaluationOptions(job_, set_, 0, 1);
  reading.labels = rows_wanted.labels;
  reading.reader.bad_rows = rows_wanted.bad_rows;
  RowCacheOptions kept = CacheOptionsOf(job_, files_, "");
  kept.repeats = false;
  reading.reader.cache = std::make_shared<RowCaches>(files_, kept);
  reading.executor = &executor_;
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<BatchReader> reader, ReaderOf(job_, files_, reading));
  BatchStream batches(std::move(reader), 0, 0, /*ahead=*/1, *clock_);
  const auto score = [&](size_t thread, ScoredBatch* scored) {
    const Status status = ScoreOne(*engines_[thread], scored);
    return status.ok() && shape ? shape(scored) : status;
  };
  return ScoreInOrder(batches, engines_.size(), score, take);
}

}  // namespace hdps
