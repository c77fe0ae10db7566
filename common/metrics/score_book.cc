// Sorts each task's examples as its metrics need them, with one pass per order for all metrics.
#include "common/metrics/score_book.h"

#include <cmath>
#include <utility>

#include "common/base/show_number.h"
#include "common/metrics/metric_records.h"
#include "common/platform/file_identity.h"

namespace hdps {

ScoreBook::ScoreBook(FileSystem& files, const std::string& folder, std::vector<TaskMetrics> tasks,
                     size_t held_max)
    : files_(files), folder_(folder) {
  // The target of a link stays as it is. If the link cannot be removed, no run can be created
  // either.
  if (IsLink(files, folder)) static_cast<void>(files.RemoveAll(folder));
  for (TaskMetrics& metrics : tasks) {
    const std::string place = JoinPath(folder, "task_" + std::to_string(tasks_.size()));
    Task& task = tasks_.emplace_back();
    for (const std::string& word : metrics.words) {
      const ScoreOrder order = FindMetric(word).value().record->order;
      const bool groups = order == ScoreOrder::kByGroup;
      std::unique_ptr<ScoredExamples>& examples = groups ? task.by_group : task.by_score;
      if (examples != nullptr) continue;
      examples = std::make_unique<ScoredExamples>(files, place + (groups ? "_groups" : "_scores"),
                                                  order, held_max);
    }
    task.metrics = std::move(metrics);
  }
}

ScoreBook::~ScoreBook() {
  bool wrote = false;
  for (const Task& task : tasks_) {
    for (const ScoredExamples* const examples : {task.by_score.get(), task.by_group.get()}) {
      wrote = wrote || (examples != nullptr && examples->num_runs() > 0);
    }
  }
  tasks_.clear();
  // A folder that stays wastes space, nothing more.
  if (wrote) static_cast<void>(files_.RemoveAll(folder_));
}

Status ScoreBook::Add(std::span<const float> scores, std::span<const float> labels,
                      std::span<const float> weights, std::span<const Key> groups) {
  const size_t rows = scores.size() / tasks_.size();
  const auto fits = [rows](size_t size) { return size == 0 || size == rows; };
  if (labels.size() != scores.size() || scores.size() % tasks_.size() != 0 ||
      !fits(weights.size()) || !fits(groups.size())) {
    return {Code::kInvalidArgument, std::to_string(scores.size()) + " scores, " +
                                        std::to_string(labels.size()) + " labels, " +
                                        std::to_string(weights.size()) + " weights and " +
                                        std::to_string(groups.size()) + " groups do not fit " +
                                        std::to_string(tasks_.size()) + " tasks"};
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    const size_t row = i / tasks_.size();
    Task& task = tasks_[i % tasks_.size()];
    ++task.examples;
    // Ignored entirely: it takes no place in a ranking either.
    if (!weights.empty() && weights[row] == 0) {
      ++task.weightless;
      continue;
    }
    if (labels[i] > 0.5f) ++task.positives;
    // NaN has no place in the order.
    if (std::isnan(scores[i])) {
      ++task.no_numbers;
      continue;
    }
    ScoredExample example;
    example.score = scores[i];
    example.label = labels[i];
    if (!weights.empty()) example.weight = weights[row];
    if (!groups.empty()) example.group = groups[row];
    if (task.by_score != nullptr) HDPS_RETURN_IF_ERROR(task.by_score->Add(example));
    if (task.by_group != nullptr) HDPS_RETURN_IF_ERROR(task.by_group->Add(example));
  }
  return {};
}

std::string ScoreBook::WhyNone(const Task& task) {
  if (task.examples == 0) return "there is no example";
  const uint64_t counted = task.examples - task.weightless;
  if (counted == 0) {
    return "all " + ShowWhole(static_cast<double>(task.examples)) + " weights are 0";
  }
  const std::string all = ShowWhole(static_cast<double>(counted));
  if (task.no_numbers > 0) {
    return ShowWhole(static_cast<double>(task.no_numbers)) + " of " + all +
           " scores are not numbers";
  }
  const bool classes =
      task.metrics.kind == ScoreKind::kProbability || task.metrics.kind == ScoreKind::kRank;
  if (!classes || (task.positives > 0 && task.positives < counted)) return "";
  return "all " + all + " labels " + (task.weightless > 0 ? "with a weight " : "") + "are " +
         (task.positives == 0 ? "0" : "1");
}

Status ScoreBook::FinishTask(const Task& task, double mean_loss, Told* told) {
  struct Asked {
    const MetricRecord* record;
    std::unique_ptr<MetricPass> pass;
  };
  std::vector<Asked> asked;
  for (const std::string& word : task.metrics.words) {
    const KnownMetric known = FindMetric(word).value();
    asked.push_back({known.record, known.record->make(known.k)});
  }
  for (ScoredExamples* const examples : {task.by_score.get(), task.by_group.get()}) {
    if (examples == nullptr) continue;
    const bool by_score = examples == task.by_score.get();
    HDPS_RETURN_IF_ERROR(examples->Read([&](const ScoredExample& example) {
      for (const Asked& one : asked) {
        if ((one.record->order == ScoreOrder::kByScore) == by_score) one.pass->Add(example);
      }
    }));
  }
  const std::string why = WhyNone(task);
  for (size_t i = 0; i < asked.size(); ++i) {
    Figure figure = asked[i].pass->Finish();
    const std::string& word = task.metrics.words[i];
    figure.word = task.metrics.task.empty() ? word : task.metrics.task + "." + word;
    const bool of_classes = task.metrics.kind == ScoreKind::kClass && word == "logloss";
    if (of_classes) figure.value = mean_loss;
    if (task.no_numbers > 0) figure.value = kNoFigure;
    if (!std::isfinite(figure.value) && figure.about.empty()) figure.about = why;
    told->figures.push_back(std::move(figure));
    if (told->bins.empty()) told->bins = asked[i].pass->Bins();
  }
  return {};
}

Result<ScoreBook::Told> ScoreBook::Finish(double mean_loss) {
  Told told;
  for (const Task& task : tasks_) HDPS_RETURN_IF_ERROR(FinishTask(task, mean_loss, &told));
  return told;
}

}  // namespace hdps
