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

RowScorer::RowScorer(FileSystem& files, Executor& executor, RowForm form)
    : files_(files),
      executor_(executor),
      clock_(NewSystemClock()),
      alone_(NewInlineExecutor()),
      engine_executor_(form == RowForm::kFlat ? *alone_ : executor) {}

RowScorer::~RowScorer() = default;

Result<std::unique_ptr<RowScorer>> RowScorer::Open(FileSystem& files, const std::string& path,
                                                   WhichCheckpoint which, UnknownKeys unknown,
                                                   Executor& executor) {
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found, OpenCheckpoint(files, path, which));
  return Open(files, found, unknown, RowForm::kSaved, executor);
}

Result<std::unique_ptr<RowScorer>> RowScorer::Open(FileSystem& files, const FoundCheckpoint& found,
                                                   UnknownKeys unknown, RowForm form,
                                                   Executor& executor) {
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(found.manifest.job_json, found.folder, {}));
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, "a score"));
  job.train.micro_batches = 1;
  if (form == RowForm::kFlat) OnCpu(&job.model);
  std::unique_ptr<RowScorer> opened(new RowScorer(files, executor, form));
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
  const MemoryFor model("the dense layers of a call that runs beside others");
  auto engine = std::make_unique<Engine>();
  engine->model = &loaded_->model();
  if (!first) {
    HDPS_ASSIGN_OR_RETURN(engine->own, NewModel(loaded_->job(), engine_executor_));
    engine->model = engine->own.get();
  }
  {
    ReaderLock lock(loaded_->rows_mutex());
    BringDense(engine.get());
  }
  engine->keys = std::make_unique<KeyFinder>(loaded_->job(), &engine_executor_);
  engine->rows.resize(job_.tables.size());
  engine->inputs.resize(job_.tables.size());
  engine->has_row.resize(engine->keys->num_sets());
  return engine;
}

Result<std::unique_ptr<RowScorer::Engine>> RowScorer::Take() {
  {
    MutexLock lock(mutex_);
    while (idle_.empty() && made_ >= executor_.threads()) given_back_.wait(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Engine> engine = std::move(idle_.back());
      idle_.pop_back();
      return engine;
    }
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

void RowScorer::ReadRows(bool unknown_keys, Engine* engine) {
  ReaderLock lock(loaded_->rows_mutex());
  std::vector<bool> looked(engine->has_row.size());
  for (uint32_t t = 0; t < engine->inputs.size(); ++t) {
    engine->inputs[t] = {};
    if (engine->keys->table_keys()[t] < 0) continue;
    const auto set = static_cast<size_t>(engine->keys->table_keys()[t]);
    const KeySet& keys = engine->sets[set];
    engine->inputs[t].keys = &keys;
    engine->rows[t].resize(keys.unique.size() * job_.tables[t].dim);
    std::span<uint8_t> has_row;
    if (unknown_keys && !looked[set]) {
      engine->has_row[set].resize(keys.unique.size());
      has_row = engine->has_row[set];
      looked[set] = true;
    }
    loaded_->Read({t}, keys.unique, keys.field_shard, engine->rows[t], has_row);
    engine->inputs[t].rows = engine->rows[t];
  }
  BringDense(engine);
}

void RowScorer::BringDense(Engine* engine) {
  if (engine->step == loaded_->step()) return;
  engine->step = loaded_->step();
  if (engine->model->dense_floats() > 0) engine->model->SetDense(loaded_->DenseWeights());
}

Status RowScorer::Run(const Batch& batch, bool unknown_keys, Engine* engine) {
  HDPS_RETURN_IF_ERROR(engine->model->CheckBatch(batch));
  engine->keys->Find(batch, &engine->sets);
  ReadRows(unknown_keys, engine);
  PredictRows(*engine->model, batch, engine->inputs, &engine->scores);
  return {};
}

Status RowScorer::Append(uint64_t first_number, ScoreForm form, Model& model,
                         std::span<const float> of_batch, std::vector<float>* scores) const {
  const auto nan = std::ranges::find_if(of_batch, [](float score) { return std::isnan(score); });
  if (nan != of_batch.end()) {
    const auto row = static_cast<uint64_t>(nan - of_batch.begin()) / scores_a_row_;
    return {Code::kInvalidArgument, ScoreNotANumber(first_number + row)};
  }
  const size_t before = scores->size();
  if (form == ScoreForm::kLogits && job_.model.loss == LossKind::kSoftmax) {
    std::vector<float> logits = model.Logits();
    logits.resize(of_batch.size());  // Without those of a lone row's copy.
    scores->insert(scores->end(), logits.begin(), logits.end());
    return {};
  }
  scores->insert(scores->end(), of_batch.begin(), of_batch.end());
  if (form == ScoreForm::kPredictions) predictions_->Convert(std::span(*scores).subspan(before));
  return {};
}

Result<std::vector<float>> RowScorer::ScoreTable(std::shared_ptr<const ColumnTable> table,
                                                 ScoreForm form) {
  const MemoryFor scoring("rows to score, and their scores");
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TableRows> rows,
                        TableRows::Make(*columns_, std::move(table), kRowsOfProgram));
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, Take());
  const Lease engine(*this, std::move(taken));
  std::vector<float> scores;
  scores.reserve(rows->num_rows() * scores_a_row_);
  for (uint64_t begin = 0; begin < rows->num_rows(); begin += kEvaluationExamples) {
    const uint64_t end = std::min(begin + kEvaluationExamples, rows->num_rows());
    HDPS_ASSIGN_OR_RETURN(Batch batch, rows->Read(begin, end));
    batch.num_labels = num_labels_;
    batch.labels.assign(size_t{batch.num_examples} * num_labels_, 0.0f);
    HDPS_RETURN_IF_ERROR(Run(batch, /*unknown_keys=*/false, &*engine));
    HDPS_RETURN_IF_ERROR(Append(begin, form, *engine->model, engine->scores, &scores));
  }
  return scores;
}

void RowScorer::CountKeys(const Batch& batch, const Engine& engine, uint32_t begin, uint32_t end,
                          std::span<uint64_t> keys, std::span<uint64_t> unknown_keys) {
  for (size_t f = 0; f < batch.sparse.size(); ++f) {
    keys[f] += batch.sparse[f].offsets[end] - batch.sparse[f].offsets[begin];
  }
  // A feature of several sets counts by the first.
  std::vector<bool> counted(batch.sparse.size());
  for (size_t s = 0; s < engine.sets.size(); ++s) {
    for (size_t f = 0; f < batch.sparse.size(); ++f) {
      const std::vector<uint32_t>& rows = engine.sets[s].row_index[f];
      if (counted[f] || rows.empty()) continue;
      counted[f] = true;
      const std::vector<uint32_t>& offsets = batch.sparse[f].offsets;
      for (uint32_t at = offsets[begin]; at < offsets[end]; ++at) {
        unknown_keys[f] += engine.has_row[s][rows[at]] == 0 ? 1 : 0;
      }
    }
  }
}

void RowScorer::CountKeys(const Batch& batch, const Engine& engine, uint64_t first,
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
    CountKeys(batch, engine, static_cast<uint32_t>(begin - first),
              static_cast<uint32_t>(end - first),
              std::span(scored->keys).subspan(part * features, features),
              std::span(scored->unknown_keys).subspan(part * features, features));
    begin = end;
  }
}

Status RowScorer::UseTable(std::shared_ptr<const ColumnTable> table, Engine* engine) const {
  if (engine->reader != nullptr && engine->reader->Use(table)) return {};
  HDPS_ASSIGN_OR_RETURN(engine->reader,
                        TableRows::Make(*columns_, std::move(table), kRowsOfProgram));
  return {};
}

Result<bool> RowScorer::ScoreAll(const ScoreWants& wants, Engine* engine, ScoredRows* scored) {
  TableRows& rows = *engine->reader;
  scored->rows = rows.num_rows();
  scored->predictions.reserve(rows.num_rows() * scores_a_row_);
  if (wants.logits) scored->logits.reserve(rows.num_rows() * scores_a_row_);
  for (uint64_t begin = 0; begin < rows.num_rows(); begin += kEvaluationExamples) {
    const uint64_t end = std::min(begin + kEvaluationExamples, rows.num_rows());
    HDPS_ASSIGN_OR_RETURN(Batch batch, rows.Read(begin, end));
    batch.num_labels = num_labels_;
    batch.labels.assign(size_t{batch.num_examples} * num_labels_, 0.0f);
    HDPS_RETURN_IF_ERROR(Run(batch, wants.unknown_keys, engine));
    if (begin > 0 && engine->step != scored->step) return false;
    scored->step = engine->step;
    if (wants.unknown_keys) CountKeys(batch, *engine, begin, wants.part_ends, scored);
    HDPS_RETURN_IF_ERROR(Append(begin, ScoreForm::kPredictions, *engine->model, engine->scores,
                                &scored->predictions));
    if (!wants.logits) continue;
    HDPS_RETURN_IF_ERROR(
        Append(begin, ScoreForm::kLogits, *engine->model, engine->scores, &scored->logits));
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

Status RowScorer::Apply(const CheckpointPart& delta) {
  return loaded_->Apply(files_, delta, executor_);
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
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<StepPipeline> steps,
                        StepPipeline::Start(job_, files_, *clock_, reading));
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Engine> taken, Take());
  const Lease engine(*this, std::move(taken));
  {
    ReaderLock lock(loaded_->rows_mutex());
    BringDense(&*engine);
  }
  const auto fetch = [this](const PreparedStep& step, std::vector<std::vector<float>>* rows) {
    return loaded_->Fetch(step, rows);
  };
  std::vector<float> scores;
  const auto take = [&](const Batch& batch, std::span<const float> of_batch) {
    return Append(batch.first_row + 1, form, *engine->model, of_batch, &scores);
  };
  HDPS_RETURN_IF_ERROR(ScoreSteps(job_, *engine->model, *steps, {nullptr, fetch}, take).status());
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
