// Rules of a job that involve several settings.
#include <algorithm>
#include <bit>
#include <map>

#include "common/base/nearest_name.h"
#include "common/job/eval_sets.h"
#include "common/job/job.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"

namespace hdps {

namespace {

// The kinds of names that derived features may use.
enum class Source : uint8_t { kNumeric, kCategorical, kBucketized, kOther };

// Checks data.columns and data.features in order.
class DataCheck {
 public:
  DataCheck(const JobSource& source, const DataSpec& data, bool several_labels,
            bool positives_alone)
      : source_(source),
        data_(data),
        several_labels_(several_labels),
        positives_alone_(positives_alone) {}

  Status Run() {
    if (data_.train.empty()) {
      return Refuse(source_, "data.train", "there is no file to train on; name at least one");
    }
    const bool images = data_.format == DataFormat::kIdx;
    if (HasNamedColumns(data_.format) || (images && !data_.columns.empty())) {
      HDPS_RETURN_IF_ERROR(CheckColumns());
    }
    if (data_.format == DataFormat::kCriteo) NameCriteoColumns();
    if (images) HDPS_RETURN_IF_ERROR(CheckImages(source_, data_));
    HDPS_RETURN_IF_ERROR(CheckVocabulary(data_.vocabulary));
    for (size_t f = 0; f < data_.features.size(); ++f) HDPS_RETURN_IF_ERROR(CheckFeature(f));
    return {};
  }

 private:
  Status CheckVocabulary(const VocabularySpec& vocabulary) const {
    if (vocabulary.file.empty() && vocabulary.checksum.empty()) return {};
    if (vocabulary.file.empty()) {
      return Refuse(source_, "data.vocabulary.file", "\"\" is no file; give one");
    }
    constexpr size_t kDigits = 16;
    const std::string& digits = vocabulary.checksum;
    if (digits.size() == kDigits && digits.find_first_not_of("0123456789abcdef") == digits.npos) {
      return {};
    }
    return Refuse(source_, "data.vocabulary.checksum",
                  Quoted(digits) +
                      " is not the 16 hexadecimal digits of a checksum; hdps prepare "
                      "writes them beside the file");
  }

  Status CheckColumns() {
    HDPS_RETURN_IF_ERROR(CheckOneByte("data.delimiter", data_.delimiter));
    if (data_.columns.empty()) {
      return Refuse(source_, "data.columns", "csv data needs its columns, in the file's order");
    }
    size_t labels = 0, weights = 0, groups = 0;
    size_t item = 0, left = 0;  // Index in the text; columns that its `repeat` still makes.
    const JsonValue* list = source_.root.Find("data")->Find("columns");
    for (const ColumnSpec& column : data_.columns) {
      if (left == 0) {
        const JsonValue* repeat = list->items[item++].Find("repeat");
        left = repeat == nullptr ? 1 : repeat->magnitude;
      }
      --left;
      const std::string place = "data.columns." + std::to_string(item - 1);
      HDPS_RETURN_IF_ERROR(CheckColumn(place, column));
      labels += column.type == ColumnType::kLabel ? 1 : 0;
      weights += column.type == ColumnType::kWeight ? 1 : 0;
      groups += column.type == ColumnType::kGroup ? 1 : 0;
    }
    if (weights > 1 || groups > 1) {
      return Refuse(source_, "data.columns",
                    std::to_string(weights > 1 ? weights : groups) + " columns are of type " +
                        (weights > 1 ? "weight" : "group") + "; at most one can be");
    }
    const bool fits = several_labels_ ? labels > 0 : labels == 1;
    if (fits || (labels == 0 && positives_alone_)) {
      HDPS_RETURN_IF_ERROR(CheckSharedCells(source_, data_));
      return CheckVocabularies(source_, data_);
    }
    return Refuse(source_, "data.columns",
                  std::to_string(labels) +
                      " columns are of type label; exactly one has to be, or one for each of "
                      "model.tasks; none where all rows are positive ones, beside data.negatives "
                      "or the loss sampled_softmax");
  }

  Status CheckColumn(const std::string& place, const ColumnSpec& column) {
    const bool numeric = column.type == ColumnType::kNumeric;
    const bool categorical = column.type == ColumnType::kCategorical;
    HDPS_RETURN_IF_ERROR(Name(place + ".name", column.name,
                              numeric       ? Source::kNumeric
                              : categorical ? Source::kCategorical
                                            : Source::kOther));
    if (column.type == ColumnType::kMulti) {
      HDPS_RETURN_IF_ERROR(CheckOneByte(place + ".separator", column.separator));
      if (column.separator == data_.delimiter) {
        return Refuse(source_, place + ".separator",
                      Quoted(column.separator) +
                          " is the delimiter of cells already; "
                          "take another");
      }
    }
    if (column.transform == Transform::kStandardize && column.scale == 0) {
      return Refuse(source_, place + ".scale",
                    "0 cannot divide; give the deviation, or leave it out");
    }
    return {};
  }

  Status CheckOneByte(const std::string& place, const std::string& text) {
    if (text.size() == 1 && text != "\n" && text != "\r" && text != "\"") return {};
    return Refuse(source_, place,
                  Quoted(text) + " is not one character such as \",\" (and no quote or line end)");
  }

  Status Name(const std::string& place, const std::string& name, Source is) {
    if (!name.empty() && known_.emplace(name, is).second) {
      names_.push_back(name);
      return {};
    }
    return Refuse(source_, place,
                  Quoted(name) + (name.empty() ? " is no name; give one"
                                               : " is the name of another column "
                                                 "or feature; all have to differ"));
  }

  void NameCriteoColumns() {
    known_.emplace("label", Source::kOther);
    const FeatureNames names = FeaturesOf(data_);
    for (const std::string& name : names.numeric) known_.emplace(name, Source::kNumeric);
    for (const std::string& name : names.sparse) known_.emplace(name, Source::kCategorical);
    for (const FeatureSpec& feature : data_.features) known_.erase(feature.name);
    for (const auto& [name, is] : known_) names_.push_back(name);
  }

  Status CheckFeature(size_t number) {
    const FeatureSpec& feature = data_.features[number];
    const std::string place = "data.features." + std::to_string(number);
    const bool bucketized = feature.kind == FeatureKind::kBucketized;
    for (const std::string& from : feature.from) {
      HDPS_RETURN_IF_ERROR(CheckFrom(place + ".from", from, bucketized));
    }
    if (bucketized ? feature.from.size() != 1 : feature.from.size() < 2) {
      return Refuse(
          source_, place + ".from",
          std::to_string(feature.from.size()) + " names, but " +
              (bucketized ? "bucketized takes one numeric column" : "crossed takes two or more"));
    }
    if (bucketized) {
      const auto& bounds = feature.boundaries;
      const auto fall = std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>());
      if (bounds.empty() || fall != bounds.end()) {
        return Refuse(source_, place + ".boundaries",
                      bounds.empty() ? "a bucketized feature needs at least one"
                                     : PrintJsonLine(JsonValue::Number(fall[1])) + " after " +
                                           PrintJsonLine(JsonValue::Number(fall[0])) +
                                           "; boundaries have to ascend");
      }
    }
    return Name(place + ".name", feature.name, bucketized ? Source::kBucketized : Source::kOther);
  }

  Status CheckFrom(const std::string& place, const std::string& from, bool bucketized) {
    const auto found = known_.find(from);
    if (found == known_.end()) {
      return Refuse(
          source_, place,
          Quoted(from) + " is no column or feature before this one" + DidYouMean(from, names_));
    }
    const Source is = found->second;
    if (bucketized && is != Source::kNumeric) {
      return Refuse(source_, place, Quoted(from) + " is no numeric column");
    }
    if (!bucketized && is == Source::kNumeric) {
      return Refuse(source_, place,
                    Quoted(from) +
                        " is numeric; make a bucketized feature of it and cross "
                        "that");
    }
    if (!bucketized && is == Source::kOther) {
      return Refuse(source_, place,
                    Quoted(from) + " is neither a categorical column nor a bucketized feature");
    }
    return {};
  }

  const JobSource& source_;
  const DataSpec& data_;
  const bool several_labels_;
  const bool positives_alone_;  // Rows without a label have label 1.
  std::map<std::string, Source> known_;
  std::vector<std::string> names_;
};

Status CheckTrain(const JobSource& source, Job* job) {
  TrainSpec& train = job->train;
  const uint32_t workers = std::max(job->parallel.device_num, 1u);
  if (train.mode == Mode::kSsp && train.staleness_bound == 0) train.mode = Mode::kSync;
  const bool split = job->parallel.dataset_strategy == DatasetStrategy::kDataParallel;
  if (split && train.batch_size < workers) {
    return Refuse(source, "train.batch_size",
                  std::to_string(train.batch_size) + " examples cannot be split over " +
                      std::to_string(workers) +
                      " workers; raise it, or set parallel.dataset_strategy = full_batch");
  }
  HDPS_RETURN_IF_ERROR(CheckDataParts(source, *job));
  const std::vector<uint32_t>& parts = job->data.parts;
  const uint32_t least =
      parts.empty() ? train.batch_size / workers : *std::ranges::min_element(parts);
  return CheckStepParts(source, split ? least : train.batch_size, job);
}

Status CheckEvalSets(const JobSource& source, const DataSpec& data) {
  std::vector<std::string> taken;
  if (!data.eval.empty()) taken.emplace_back(kEvalName);
  if (data.validation_share > 0) taken.emplace_back(kValidationName);
  for (size_t s = 0; s < data.eval_sets.size(); ++s) {
    const EvalSetSpec& set = data.eval_sets[s];
    const std::string place = "data.eval_sets." + std::to_string(s);
    if (set.name.empty()) return Refuse(source, place + ".name", "\"\" is no name; give one");
    constexpr size_t kNameBytesMax = 255;  // It is used in commands, log lines and files.
    if (set.name.size() > kNameBytesMax) {
      return Refuse(source, place + ".name",
                    Quoted(set.name.substr(0, 32) + "...") + " has " +
                        std::to_string(set.name.size()) + " bytes; a name has at most " +
                        std::to_string(kNameBytesMax));
    }
    if (std::ranges::find(taken, set.name) != taken.end()) {
      return Refuse(
          source, place + ".name",
          Quoted(set.name) + " is the name of another evaluation set; all have to differ");
    }
    if (set.files.empty()) {
      return Refuse(source, place + ".files", "there is no file to evaluate; name at least one");
    }
    taken.push_back(set.name);
  }
  return {};
}

// Is true if the job is evaluated before its end, so that evaluations can have consequences.
bool IsEvaluatedMeanwhile(const TrainSpec& train) {
  return train.evals_per_epoch > 0 || train.eval_every_steps > 0 ||
         (train.eval_each_epoch && train.epochs > 1);
}

// `key` is the setting that watches.
Status CheckWatch(const JobSource& source, const std::string& key, Job* job, WatchSpec* watch) {
  const std::string place = "train." + key;
  const JsonValue* const train = source.root.Find("train");
  const JsonValue* const given = train == nullptr ? nullptr : train->Find(key);
  const bool chosen = given != nullptr && given->Find("metric") != nullptr;
  if (IsTablesJob(*job)) return CheckOwnWatch(source, place, chosen, *job, watch);
  if (!chosen && watch->patience > 0) watch->metric = UsualMetric(*job);
  const std::vector<std::string> measured = MeasuredMetrics(*job);
  if (chosen && std::ranges::find(measured, watch->metric) == measured.end()) {
    const ScoreKind kind = MetricsOf(*job).front().kind;
    std::string mend =
        " is no figure of this job's evaluations" + DidYouMean(watch->metric, measured);
    if (IsMetric(watch->metric)) {
      mend = HasMeaning(watch->metric, kind)
                 ? " is not measured in this job; add it to train.metrics"
                 : " is not measured under this loss; use " + Quoted(UsualMetric(*job));
    }
    return Refuse(source, place + ".metric", Quoted(watch->metric) + mend);
  }
  if (watch->patience == 0) return {};
  const std::vector<EvalSet> sets = EvalSetsOf(job->data);
  if (sets.empty()) {
    return Refuse(source, place,
                  "there is nothing to evaluate; give data.eval, data.eval_sets or "
                  "data.validation_share");
  }
  if (!watch->set.empty() && std::ranges::find(sets, watch->set, &EvalSet::name) == sets.end()) {
    std::vector<std::string> names;
    for (const EvalSet& set : sets) names.push_back(set.name);
    return Refuse(
        source, place + ".set",
        Quoted(watch->set) + " is no evaluation set of this job" + DidYouMean(watch->set, names));
  }
  if (!IsEvaluatedMeanwhile(job->train)) {
    job->warnings.push_back(place +
                            " has no effect: the job is evaluated at its end alone; see "
                            "train.eval_each_epoch, eval_every_steps and evals_per_epoch");
  }
  return {};
}

Status CheckEvaluation(const JobSource& source, Job* job) {
  HDPS_RETURN_IF_ERROR(CheckEvalSets(source, job->data));
  HDPS_RETURN_IF_ERROR(CheckWatch(source, "early_stop", job, &job->train.early_stop));
  HDPS_RETURN_IF_ERROR(CheckWatch(source, "plateau", job, &job->train.plateau));
  return {};
}

// Checks the hot rows kept at the workers. All workers apply the same updates to them, so there
// must be one update for each step, and no server may drop or withhold a row.
Status CheckCache(const JobSource& source, const Job& job) {
  for (const TableSpec& table : job.tables) {
    if (table.vocab_cache_size == 0) continue;
    const struct {
      bool given;
      const char* place;
      const char* why;
    } conflicts[] = {
        {job.train.mode != Mode::kSync, "train.mode",
         ", which takes one combined update a step; use sync, or leave vocab_cache_size out"},
        {table.policy != PolicySpec(), "model",
         " and has a policy of admission or eviction, which only servers can follow; leave one of "
         "the two out"},
        {job.parallel.wire != DType::kFp32, "parallel.wire",
         ", whose values do not travel and so have 32 bits; use fp32, or leave out "
         "vocab_cache_size"},
        {table.weights != WeightFormat::kFp32, "model",
         ", where they have 32 bits, and its weights have 16 bits; leave out weights or "
         "vocab_cache_size"}};
    for (const auto& conflict : conflicts) {
      if (!conflict.given) continue;
      return Refuse(source, conflict.place,
                    "table " + Quoted(table.name) + " keeps rows at the workers " +
                        "(vocab_cache_size = " + std::to_string(table.vocab_cache_size) + ")" +
                        conflict.why);
    }
  }
  return {};
}

Status CheckCluster(const JobSource& source, const Job& job) {
  // A request gives the number of its keys for each table and shard, which must fit into a frame.
  constexpr uint64_t kCountsMax = 3'500'000;
  const ClusterSpec& cluster = job.cluster;
  if (!std::has_single_bit(cluster.shards)) {
    return Refuse(source, "cluster.shards",
                  std::to_string(cluster.shards) + " is no power of two; " +
                      std::to_string(std::bit_ceil(cluster.shards)) + " is");
  }
  if (job.tables.size() * cluster.shards > kCountsMax) {
    return Refuse(source, "cluster.shards",
                  std::to_string(cluster.shards) + " is too many for " +
                      std::to_string(job.tables.size()) + " tables; at most " +
                      std::to_string(std::bit_floor(kCountsMax / job.tables.size())) +
                      " shards can be told in a request");
  }
  if (cluster.dead_after_ms < 2 * cluster.heartbeat_ms) {
    return Refuse(source, "cluster.dead_after_ms",
                  std::to_string(cluster.dead_after_ms) +
                      " is less than two heartbeats; raise it to at least " +
                      std::to_string(2 * cluster.heartbeat_ms));
  }
  if (uint64_t{cluster.request_timeout_s} * 1000 <= cluster.request_retry_ms) {
    return Refuse(source, "cluster.request_timeout_s",
                  std::to_string(cluster.request_timeout_s) +
                      " s leave no time for a retry after request_retry_ms = " +
                      std::to_string(cluster.request_retry_ms));
  }
  return {};
}

}  // namespace

Status CheckJob(const JobSource& source, const JobText& text, Job* job) {
  const bool tables_alone = text.model_text.type == kTablesType;
  const bool positives_alone = tables_alone || job->data.negatives.per_positive > 0 ||
                               text.model_text.loss == LossKind::kSampledSoftmax;
  DataCheck data(source, job->data, tables_alone || !text.model_text.tasks.empty(),
                 positives_alone);
  if (!tables_alone || !job->data.train.empty()) HDPS_RETURN_IF_ERROR(data.Run());
  HDPS_RETURN_IF_ERROR(CheckDistinct(source, job));
  HDPS_RETURN_IF_ERROR(BuildJobModel(source, text.model_text, job));
  HDPS_RETURN_IF_ERROR(FillSchedules(source, text.train_text.schedule, job));
  HDPS_RETURN_IF_ERROR(CheckLosses(source, job));
  HDPS_RETURN_IF_ERROR(CheckTrain(source, job));
  HDPS_RETURN_IF_ERROR(CheckMeetings(source, *job));
  HDPS_RETURN_IF_ERROR(CheckEvaluation(source, job));
  HDPS_RETURN_IF_ERROR(CheckParallel(source, job));
  HDPS_RETURN_IF_ERROR(CheckStrategySettings(source, *job));
  HDPS_RETURN_IF_ERROR(CheckDenseExchange(source, job));
  HDPS_RETURN_IF_ERROR(SliceTables(source, job));
  HDPS_RETURN_IF_ERROR(CheckCache(source, *job));
  HDPS_RETURN_IF_ERROR(CheckTablesJob(source, *job));
  HDPS_RETURN_IF_ERROR(CheckFollow(source, *job));
  const std::string not_on_cuda = job->model.device == "cuda" ? WhyNotOnCuda(*job) : "";
  if (!not_on_cuda.empty()) return Refuse(source, "model.device", not_on_cuda);
  WarnOfInputs(job);
  WarnOfIdle(source, job);
  return CheckCluster(source, *job);
}

}  // namespace hdps
