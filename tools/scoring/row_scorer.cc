// Lends an engine to each call, and scores its rows batch by batch.
#include "tools/scoring/row_scorer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/data_paths.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_file.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/table_slices.h"
#include "common/job/vocabulary.h"
#include "common/platform/memory_full.h"
#include "tools/scoring/feature_keys.h"
#include "tools/scoring/ordered_scores.h"
#include "tools/scoring/scored_job.h"
#include "worker/data/columnar/table_rows.h"
#include "worker/step/evaluation.h"

namespace hdps {

namespace {

DataSpec ByColumns(const DataSpec& data) {
  if (data.format != DataFormat::kCriteo) return data;
  DataSpec columns = data;
  columns.format = DataFormat::kCsv;
  columns.missing.clear();
  columns.columns.clear();
  const FeatureNames names = FeaturesOf(data);
  for (const std::string& name : names.numeric) {
    ColumnSpec& column = columns.columns.emplace_back();
    column.name = name;
    column.type = ColumnType::kNumeric;
    column.transform = data.numeric_transform;
  }
  for (const std::string& name : BaseFeatures(data)) columns.columns.emplace_back().name = name;
  return columns;
}

// Adds the keys of the examples [begin, end) of a batch that the engine has scored, and those
// without a row, to the numbers of one part, [sparse features].
void CountKeysOfPart(const Batch& batch, const ScoringEngine& engine, uint32_t begin, uint32_t end,
                     std::span<uint64_t> keys, std::span<uint64_t> unknown_keys) {
  for (size_t f = 0; f < batch.sparse.size(); ++f) {
    keys[f] += batch.sparse[f].offsets[end] - batch.sparse[f].offsets[begin];
  }
  // A feature of several sets counts by the first.
  std::vector<bool> counted(batch.sparse.size());
  for (size_t s = 0; s < engine.sets().size(); ++s) {
    for (size_t f = 0; f < batch.sparse.size(); ++f) {
      const std::vector<uint32_t>& rows = engine.sets()[s].row_index[f];
      if (counted[f] || rows.empty()) continue;
      counted[f] = true;
      const std::vector<uint32_t>& offsets = batch.sparse[f].offsets;
      for (uint32_t at = offsets[begin]; at < offsets[end]; ++at) {
        unknown_keys[f] += engine.has_row()[s][rows[at]] == 0 ? 1 : 0;
      }
    }
  }
}

// Does the same for a batch whose first row is `first`, part by part.
void CountKeys(const Batch& batch, const ScoringEngine& engine, uint64_t first,
               std::span<const uint64_t> part_ends, ScoredRows* scored) {
  const uint64_t last = first + batch.num_examples;
  const std::span<const uint64_t> ends = part_ends.empty() ? std::span(&last, 1) : part_ends;
  const size_t features = batch.sparse.size();
  scored->keys.resize(ends.size() * features);
  scored->unknown_keys.resize(ends.size() * features);
  uint64_t begin = first;
  for (size_t part = 0; part < ends.size() && begin < last; ++part) {
    if (ends[part] <= begin) continue;
    const uint64_t end = std::min(ends[part], last);
    CountKeysOfPart(batch, engine, static_cast<uint32_t>(begin - first),
                    static_cast<uint32_t>(end - first),
                    std::span(scored->keys).subspan(part * features, features),
                    std::span(scored->unknown_keys).subspan(part * features, features));
    begin = end;
  }
}

void OnCpu(ModelSpec* model) {
  model->device = "cpu";
  for (LayerSpec& layer : model->layers) layer.device.clear();
}

}  // namespace

// An engine during one call.
class RowScorer::Lease {
 public:
  Lease(RowScorer& scorer, std::unique_ptr<Engine> engine)
      : scorer_(scorer), engine_(std::move(engine)) {}
  ~Lease() {
    if (engine_->reader != nullptr) engine_->reader->Leave();
    scorer_.GiveBack(std::move(engine_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Engine& operator*() const { return *engine_; }
  Engine* operator->() const { return engine_.get(); }

 private:
  RowScorer& scorer_;
  std::unique_ptr<Engine> engine_;
};

RowScorer::RowScorer(FileSystem& files, Executor& executor)
    : files_(files), executor_(executor), clock_(NewSystemClock()) {}

RowScorer::~RowScorer() = default;

Result<std::unique_ptr<RowScorer>> RowScorer::Open(FileSystem& files, const std::string& path,
                                                   WhichCheckpoint which, UnknownKeys unknown,
                                                   Executor& executor) {
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found, OpenNamedCheckpoint(files, path, which));
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(found.manifest.job_json, found.folder, {}));
  return OpenJob(files, found, std::move(job), unknown, RowForm::kFlat, executor);
}

Result<std::unique_ptr<RowScorer>> RowScorer::Open(FileSystem& files, const FoundCheckpoint& found,
                                                   UnknownKeys unknown, RowForm form,
                                                   Executor& executor) {
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(found.manifest.job_json, found.folder, {}));
  OnCpu(&job.model);
  return OpenJob(files, found, std::move(job), unknown, form, executor);
}

Result<std::unique_ptr<RowScorer>> RowScorer::OpenJob(FileSystem& files,
                                                      const FoundCheckpoint& found, Job job,
                                                      UnknownKeys unknown, RowForm form,
                                                      Executor& executor) {
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, "a score"));
  job.train.micro_batches = 1;
  std::unique_ptr<RowScorer> opened(new RowScorer(files, executor));
  HDPS_ASSIGN_OR_RETURN(opened->loaded_, CheckpointModel::Load(files, job, found, executor, form));
  opened->loaded_->set_unknown_keys(unknown);
  opened->job_ = opened->loaded_->job();
  const std::string origin = JoinPath(found.folder, kManifestName);
  HDPS_RETURN_IF_ERROR(
      LoadVocabularyOf(origin, opened->loaded_->checkpoint(), files, &opened->job_.data));
  opened->columns_ = std::make_unique<const DataSpec>(ByColumns(opened->job_.data));
  opened->predictions_ = std::make_unique<Predictions>(opened->job_);
  const std::vector<LabelSpec> labels = LabelsOf(opened->job_);
  const bool softmax = opened->job_.model.loss == LossKind::kSoftmax;
  opened->num_labels_ = static_cast<uint32_t>(labels.size());
  opened->scores_a_row_ = softmax ? labels[0].num_classes : opened->num_labels_;
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> first, opened->NewEngine(/*first=*/true));
  {
    MutexLock lock(opened->mutex_);
    opened->made_ = 1;
    opened->idle_.push_back(std::move(first));
  }
  return opened;
}

Result<std::unique_ptr<RowScorer::Engine>> RowScorer::NewEngine(bool first) {
  auto engine = std::make_unique<Engine>();
  HDPS_ASSIGN_OR_RETURN(engine->scoring, ScoringEngine::New(*loaded_, /*owns_model=*/!first));
  return engine;
}

Result<std::unique_ptr<RowScorer::Engine>> RowScorer::Take() {
  while (true) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, TakeIdle());
    if (taken != nullptr) return taken;
    MutexLock lock(mutex_);
    while (idle_.empty() && made_ >= executor_.threads()) given_back_.wait(mutex_);
  }
}

Result<std::unique_ptr<RowScorer::Engine>> RowScorer::TakeIdle() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Engine> engine = std::move(idle_.back());
      idle_.pop_back();
      return engine;
    }
    if (made_ >= executor_.threads()) return std::unique_ptr<Engine>();
    ++made_;
  }
  Result<std::unique_ptr<Engine>> made = NewEngine(/*first=*/false);
  if (!made.ok()) {
    MutexLock lock(mutex_);
    --made_;
    given_back_.notify_one();
  }
  return made;
}

void RowScorer::GiveBack(std::unique_ptr<Engine> engine) {
  {
    MutexLock lock(mutex_);
    idle_.push_back(std::move(engine));
  }
  given_back_.notify_one();
}

Result<std::vector<float>> RowScorer::InForm(uint64_t first_number, ScoreForm form,
                                             ScoringEngine& engine) const {
  const std::span<const float> of_batch = engine.scores();
  const auto nan = std::ranges::find_if(of_batch, [](float score) { return std::isnan(score); });
  if (nan != of_batch.end()) {
    const auto row = static_cast<uint64_t>(nan - of_batch.begin()) / scores_a_row_;
    return Status(Code::kInvalidArgument, ScoreNotANumber(first_number + row));
  }
  if (form == ScoreForm::kLogits && job_.model.loss == LossKind::kSoftmax) {
    return engine.model().Logits(0);
  }
  std::vector<float> scores(of_batch.begin(), of_batch.end());
  if (form == ScoreForm::kPredictions) predictions_->Convert(scores);
  return scores;
}

Result<Batch> RowScorer::ReadBatch(TableRows& rows, uint64_t begin, uint64_t end) const {
  HDPS_ASSIGN_OR_RETURN(Batch batch, rows.Read(begin, end));
  batch.num_labels = num_labels_;
  batch.labels.assign(size_t{batch.num_examples} * num_labels_, 0.0f);
  return batch;
}

Result<std::vector<float>> RowScorer::ScoreTable(std::shared_ptr<const ColumnTable> table,
                                                 ScoreForm form) {
  const MemoryFor scoring("rows to score, and their scores");
  uint64_t num_rows = 0;
  {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, Take());
    const Lease engine(*this, std::move(taken));
    HDPS_RETURN_IF_ERROR(UseTable(table, &*engine));
    num_rows = engine->reader->num_rows();
  }
  std::vector<float> scores(num_rows * scores_a_row_);
  const auto score = [&](uint64_t begin) -> Status {
    const uint64_t end = std::min(begin + kEvaluationExamples, num_rows);
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, Take());
    const Lease engine(*this, std::move(taken));
    HDPS_RETURN_IF_ERROR(UseTable(table, &*engine));
    HDPS_ASSIGN_OR_RETURN(const Batch batch, ReadBatch(*engine->reader, begin, end));
    HDPS_RETURN_IF_ERROR(engine->scoring->Score(batch).status());
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> made, InForm(begin, form, *engine->scoring));
    std::ranges::copy(made, scores.begin() + static_cast<ptrdiff_t>(begin * scores_a_row_));
    return {};
  };
  std::vector<Status> scored((num_rows + kEvaluationExamples - 1) / kEvaluationExamples);
  const auto score_part = [&](size_t part) { scored[part] = score(part * kEvaluationExamples); };
  if (scored.size() == 1) {
    score_part(0);
  } else {
    executor_.ParallelFor(scored.size(), score_part);
  }
  for (const Status& status : scored) HDPS_RETURN_IF_ERROR(status);
  return scores;
}

Status RowScorer::UseTable(std::shared_ptr<const ColumnTable> table, Engine* engine) const {
  if (engine->reader != nullptr && engine->reader->Use(table)) return {};
  HDPS_ASSIGN_OR_RETURN(engine->reader,
                        TableRows::Make(*columns_, std::move(table), kRowsOfProgram));
  return {};
}

Result<bool> RowScorer::ScoreAll(const ScoreWants& wants, Engine* engine, ScoredRows* scored) {
  TableRows& rows = *engine->reader;
  ScoringEngine& scoring = *engine->scoring;
  scored->rows = rows.num_rows();
  const auto append = [&](uint64_t begin, ScoreForm form, std::vector<float>* to) -> Status {
    to->reserve(rows.num_rows() * scores_a_row_);
    HDPS_ASSIGN_OR_RETURN(const std::vector<float> made, InForm(begin, form, scoring));
    to->insert(to->end(), made.begin(), made.end());
    return {};
  };
  for (uint64_t begin = 0; begin < rows.num_rows(); begin += kEvaluationExamples) {
    const uint64_t end = std::min(begin + kEvaluationExamples, rows.num_rows());
    HDPS_ASSIGN_OR_RETURN(const Batch batch, ReadBatch(rows, begin, end));
    HDPS_RETURN_IF_ERROR(scoring.Score(batch, wants.unknown_keys).status());
    if (begin > 0 && scoring.step() != scored->step) return false;
    scored->step = scoring.step();
    if (wants.unknown_keys) CountKeys(batch, scoring, begin, wants.part_ends, scored);
    HDPS_RETURN_IF_ERROR(append(begin, ScoreForm::kPredictions, &scored->predictions));
    if (wants.logits) HDPS_RETURN_IF_ERROR(append(begin, ScoreForm::kLogits, &scored->logits));
  }
  return true;
}

Result<ScoredRows> RowScorer::Score(std::shared_ptr<const ColumnTable> table,
                                    const ScoreWants& wants) {
  const MemoryFor scoring("rows to score, and their scores");
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, Take());
  const Lease engine(*this, std::move(taken));
  HDPS_RETURN_IF_ERROR(UseTable(std::move(table), &*engine));
  while (true) {
    ScoredRows scored;
    scored.step = step();
    HDPS_ASSIGN_OR_RETURN(const bool of_one_step, ScoreAll(wants, &*engine, &scored));
    if (of_one_step) return scored;
  }
}

Status RowScorer::Apply(const CheckpointPart& delta, const DeltaHooks& hooks) {
  return loaded_->Apply(files_, delta, executor_, hooks);
}

Result<std::vector<float>> RowScorer::ScoreFiles(const std::vector<std::string>& paths,
                                                 ScoreForm form) {
  EvalSet set;
  for (const std::string& path : paths) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> here, FilesOf(files_, path));
    if (here.empty()) {
      return Status(Code::kInvalidArgument, "there is no file \"" + path + "\"");
    }
    set.files.insert(set.files.end(), here.begin(), here.end());
  }
  PipelineOptions reading = EvaluationOptions(job_, set, 0, 1);
  reading.labels = false;
  reading.reader.bad_rows = BadRows::kRefused;
  reading.executor = &executor_;
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<BatchReader> reader, ReaderOf(job_, files_, reading));
  std::vector<std::unique_ptr<Lease>> engines;
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, Take());
  while (taken != nullptr) {
    engines.push_back(std::make_unique<Lease>(*this, std::move(taken)));
    HDPS_ASSIGN_OR_RETURN(taken, TakeIdle());
  }
  const auto score = [&](size_t thread, ScoredBatch* scored) -> Status {
    ScoringEngine& engine = *(*engines[thread])->scoring;
    HDPS_RETURN_IF_ERROR(engine.Score(scored->batch).status());
    HDPS_ASSIGN_OR_RETURN(scored->scores, InForm(scored->batch.first_row + 1, form, engine));
    return {};
  };
  std::vector<float> scores;
  const auto take = [&](const ScoredBatch& scored) {
    scores.insert(scores.end(), scored.scores.begin(), scored.scores.end());
    return Status();
  };
  BatchStream batches(std::move(reader), 0, 0, /*ahead=*/1, *clock_);
  HDPS_RETURN_IF_ERROR(ScoreInOrder(batches, engines.size(), score, take).status());
  return scores;
}

Result<std::vector<Key>> RowScorer::KeysOf(const std::string& feature,
                                           std::shared_ptr<const ColumnTable> values) const {
  return KeysOfFeature(job_.data, feature, std::move(values));
}

std::vector<uint32_t> RowScorer::FieldShardsOf(TableId table, std::span<const Key> keys) const {
  const TableSpec& spec = job_.tables[table.value];
  if (spec.slice_mode != SliceMode::kField || spec.dense) return {};
  // A key does not name its feature, so each shard of the table's features is asked for it.
  std::vector<uint32_t> shards = FieldShards(job_, spec, FeaturesOfTable(job_, spec.name));
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  std::vector<uint32_t> of_keys;
  for (const Key key : keys) {
    const auto has = [&](uint32_t shard) {
      return loaded_->FindRow(table, key, shard).has_value();
    };
    const auto at = std::ranges::find_if(shards, has);
    of_keys.push_back(at == shards.end() ? shards.front() : *at);
  }
  return of_keys;
}

void RowScorer::Lookup(TableId table, std::span<const Key> keys, std::span<float> rows) {
  ReaderLock lock(loaded_->rows_mutex());
  loaded_->Read(table, keys, FieldShardsOf(table, keys), rows);
}

std::vector<bool> RowScorer::Contains(TableId table, std::span<const Key> keys) const {
  ReaderLock lock(loaded_->rows_mutex());
  const std::vector<uint32_t> shards = FieldShardsOf(table, keys);
  std::vector<bool> there;
  for (size_t k = 0; k < keys.size(); ++k) {
    const auto shard = shards.empty() ? std::nullopt : std::optional(shards[k]);
    there.push_back(loaded_->FindRow(table, keys[k], shard).has_value());
  }
  return there;
}

}  // namespace hdps
