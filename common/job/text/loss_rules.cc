// Checks that the data provides what losses, tasks, metrics and negative sampling need.
#include <algorithm>
#include <set>

#include "common/base/enum_words.h"
#include "common/base/nearest_name.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/metrics/metric.h"

namespace hdps {

namespace {

class LossCheck {
 public:
  LossCheck(const JobSource& source, Job* job) : source_(source), job_(*job) {
    for (const ColumnSpec& column : job_.data.columns) {
      if (column.type == ColumnType::kLabel) labels_.push_back(&column);
    }
  }

  Status Run() {
    if (IsTablesJob(job_)) {  // What labels mean is up to the program.
      HDPS_RETURN_IF_ERROR(CheckItems());
      return CheckNegatives();
    }
    HDPS_RETURN_IF_ERROR(CheckTasks());
    for (const TaskSpec& task : TasksOf(job_.model)) {
      HDPS_RETURN_IF_ERROR(CheckPositive(task));
      HDPS_RETURN_IF_ERROR(CheckClasses(task));
    }
    HDPS_RETURN_IF_ERROR(CheckItems());
    HDPS_RETURN_IF_ERROR(CheckNegatives());
    if (job_.model.loss == LossKind::kBpr && !HasColumn(job_.data, ColumnType::kGroup)) {
      return Refuse(source_, "model.loss",
                    "bpr compares examples of one group, and no column of data.columns is of type "
                    "group; add one, such as the user");
    }
    WarnOfWeight();
    HDPS_RETURN_IF_ERROR(CheckMetrics());
    return job_.train.progressive.window > 0 ? CheckProgressive() : Status();
  }

 private:
  std::vector<std::string> LabelNames() const {
    std::vector<std::string> names;
    for (const ColumnSpec* label : labels_) names.push_back(label->name);
    return names;
  }

  Status CheckTasks() {
    const std::vector<TaskSpec>& tasks = job_.model.tasks;
    if (tasks.empty()) return {};
    if (!HasNamedColumns(job_.data.format)) {
      return Refuse(source_, "model.tasks",
                    "rows of " + std::string(WordOf(job_.data.format)) +
                        " have one label; tasks need csv with a label column for each");
    }
    std::set<std::string> taken;
    for (size_t t = 0; t < tasks.size(); ++t) {
      const std::string place = "model.tasks." + std::to_string(t) + ".label";
      const std::vector<std::string> names = LabelNames();
      if (std::ranges::find(names, tasks[t].label) == names.end()) {
        return Refuse(
            source_, place,
            Quoted(tasks[t].label) + " is no label column" + DidYouMean(tasks[t].label, names));
      }
      if (!taken.insert(tasks[t].label).second) {
        return Refuse(source_, place, Quoted(tasks[t].label) + " is the label of another task");
      }
    }
    for (const ColumnSpec* label : labels_) {
      if (taken.contains(label->name)) continue;
      return Refuse(source_, "data.columns",
                    "the label " + Quoted(label->name) +
                        " is that of no task; name it in model.tasks, or set its type to skip");
    }
    const JsonValue& model = *source_.root.Find("model");
    for (const char* key : {"loss", "positive_weight"}) {
      if (model.Find(key) == nullptr) continue;
      job_.warnings.push_back(std::string("model.") + key +
                              " is ignored: each of model.tasks has its own");
    }
    return {};
  }

  Status CheckPositive(const TaskSpec& task) const {
    if (task.loss != LossKind::kSoftmax && task.loss != LossKind::kSquared) return {};
    for (const ColumnSpec* label : labels_) {
      const bool of_task = task.label.empty() || task.label == label->name;
      if (!of_task || label->positive.empty()) continue;
      return Refuse(source_, "data.columns",
                    "the label \"" + label->name + "\" has positive texts, but under " +
                        std::string(WordOf(task.loss)) + " it is " +
                        (task.loss == LossKind::kSoftmax ? "the number of a class" : "a number"));
    }
    return {};
  }

  Status CheckClasses(const TaskSpec& task) const {
    for (const ColumnSpec* label : labels_) {
      const bool of_task = task.label.empty() || task.label == label->name;
      if (!of_task || label->classes.empty()) continue;
      if (task.loss != LossKind::kSoftmax) {
        return Refuse(source_, "data.columns",
                      "the label " + Quoted(label->name) + " has texts of classes, and under " +
                          std::string(WordOf(task.loss)) +
                          " it is no class; leave them out, or take the loss softmax");
      }
      const std::set<std::string> texts(label->classes.begin(), label->classes.end());
      if (texts.size() == label->classes.size() && !texts.contains("")) continue;
      return Refuse(source_, "data.columns",
                    "the label " + Quoted(label->name) +
                        " has an empty text or one twice among its classes; each is one class");
    }
    return {};
  }

  Status CheckItems() const {
    DataSpec plain = job_.data;
    plain.features.clear();
    const std::vector<std::string> known = FeaturesOf(plain).sparse;
    std::set<std::string> taken;
    for (const std::string& name : job_.data.item_features) {
      if (std::ranges::find(known, name) == known.end()) {
        return Refuse(
            source_, "data.item_features",
            Quoted(name) + " is no sparse feature of the files" + DidYouMean(name, known));
      }
      if (!taken.insert(name).second) {
        return Refuse(source_, "data.item_features", Quoted(name) + " stands there twice");
      }
    }
    const bool sampled = job_.model.loss == LossKind::kSampledSoftmax;
    const bool needed = sampled || job_.data.negatives.per_positive > 0;
    if (needed && taken.empty()) {
      return Refuse(source_, "data.item_features",
                    std::string(sampled ? "the loss sampled_softmax" : "data.negatives") +
                        " has to know which features make out an item; name them");
    }
    if (!needed && !taken.empty()) {
      job_.warnings.push_back(
          "data.item_features is ignored: it counts only beside data.negatives and the loss "
          "sampled_softmax");
    }
    return {};
  }

  Status CheckNegatives() const {
    const NegativeSpec& negatives = job_.data.negatives;
    if (negatives.per_positive == 0) {
      if (negatives.by != NegativeSpec().by) {
        job_.warnings.push_back("data.negatives.by is ignored: data.negatives.per_positive is 0");
      }
      return {};
    }
    const std::vector<TaskSpec> tasks = TasksOf(job_.model);
    const ScoreKind kind = ScoreKindOf(tasks[0].loss);
    if (tasks.size() > 1 || kind == ScoreKind::kNumber || kind == ScoreKind::kClass) {
      return Refuse(source_, "data.negatives.per_positive",
                    "a made example has label 0, so the model has to have one label of 0 or 1; "
                    "leave data.negatives out");
    }
    return {};
  }

  void WarnOfWeight() {
    if (job_.model.loss != LossKind::kLogloss && job_.model.tasks.empty() &&
        job_.model.positive_weight != 1) {
      job_.warnings.push_back("model.positive_weight is ignored: the loss is " +
                              std::string(WordOf(job_.model.loss)));
    }
    const auto by_group = [](const std::string& word) { return NeedsGroups(word); };
    const std::vector<TaskMetrics> metrics = MetricsOf(job_);
    const bool used = std::ranges::any_of(metrics, [&](const TaskMetrics& task) {
      return std::ranges::any_of(task.words, by_group);
    });
    const auto group = std::ranges::find(job_.data.columns, ColumnType::kGroup, &ColumnSpec::type);
    if (group == job_.data.columns.end() || used || job_.model.loss == LossKind::kBpr) return;
    job_.warnings.push_back("the group column " + Quoted(group->name) +
                            " has no effect: the loss is not bpr, and no metric of train.metrics "
                            "is by group");
  }

  Status CheckMetrics() const {
    const std::vector<std::string>& words = job_.train.metrics;
    const std::vector<TaskSpec> tasks = TasksOf(job_.model);
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string place = "train.metrics." + std::to_string(i);
      if (!IsMetric(words[i])) return Refuse(source_, place, WhyNoMetric(words[i]));
      if (std::ranges::find(words.begin(), words.begin() + static_cast<ptrdiff_t>(i), words[i]) !=
          words.begin() + static_cast<ptrdiff_t>(i)) {
        return Refuse(source_, place, Quoted(words[i]) + " stands there twice");
      }
      const bool meant = std::ranges::any_of(tasks, [&](const TaskSpec& task) {
        return HasMeaning(words[i], ScoreKindOf(task.loss));
      });
      if (!meant) {
        return Refuse(source_, place,
                      Quoted(words[i]) + " has no meaning under the loss " +
                          std::string(WordOf(tasks[0].loss)));
      }
      if (NeedsGroups(words[i]) && !HasColumn(job_.data, ColumnType::kGroup)) {
        return Refuse(source_, place,
                      Quoted(words[i]) +
                          " needs to know whom an example belongs to, and no column of "
                          "data.columns is of type group; add one");
      }
    }
    return {};
  }

  Status CheckProgressive() const {
    const LossKind loss = TasksOf(job_.model).front().loss;
    if (loss == LossKind::kSoftmax || loss == LossKind::kSampledSoftmax) {
      return Refuse(source_, "train.progressive.window",
                    "training under the loss " + std::string(WordOf(loss)) +
                        " gives no scores of single examples; set it to 0, and evaluate instead");
    }
    const ParallelMode mode = job_.parallel.parallel_mode;
    if (mode != ParallelMode::kData && mode != ParallelMode::kStandAlone) {
      return Refuse(source_, "train.progressive.window",
                    "under parallel.parallel_mode = " + std::string(WordOf(mode)) +
                        " a worker computes parts of examples; use data_parallel, or set it to 0");
    }
    for (size_t s = 0; s < job_.data.eval_sets.size(); ++s) {
      if (job_.data.eval_sets[s].name != kProgressiveName) continue;
      return Refuse(source_, "data.eval_sets." + std::to_string(s) + ".name",
                    Quoted(kProgressiveName) +
                        " is the name of the figures of train.progressive; choose another");
    }
    return {};
  }

  const JobSource& source_;
  Job& job_;
  std::vector<const ColumnSpec*> labels_;
};

}  // namespace

Status CheckLosses(const JobSource& source, Job* job) { return LossCheck(source, job).Run(); }

}  // namespace hdps
