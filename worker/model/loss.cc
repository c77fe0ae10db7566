// Splits labels and logits by task, and finds the groups and items of a batch for losses of pairs.
#include "worker/model/loss.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <unordered_map>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

// Number of users whose products with all items of the batch are in memory at once.
constexpr size_t kUsersAtOnce = 512;
// Up to this number, example numbers are exact as floats.
constexpr size_t kExamplesMax = size_t{1} << 24;

}  // namespace

ModelLoss::ModelLoss(const Job& job, DenseOps& ops)
    : tasks_(TasksOf(job.model)),
      kind_(tasks_[0].loss),
      ops_(ops),
      labels_(&ops),
      weights_(&ops),
      brought_members_(&ops),
      brought_begin_(&ops),
      brought_end_(&ops),
      losses_(&ops),
      products_(&ops) {
  const std::vector<std::string> features = FeaturesOf(job.data).sparse;
  for (const std::string& name : job.data.item_features) {
    const auto at = std::ranges::find(features, name) - features.begin();
    item_features_.push_back(static_cast<uint32_t>(at));
  }
}

size_t ModelLoss::ScoresAnExample(size_t logits) const {
  return kind_ == LossKind::kSoftmax ? logits : tasks_.size();
}

void ModelLoss::Bring(std::span<const float> values, Brought* to) {
  to->data = values.data();
  if (values.empty()) to->data = nullptr;
  if (values.empty() || ops_.on_host()) return;
  float* const there = to->array.Reserve(values.size());
  ops_.Upload(values, there);
  to->data = there;
}

void ModelLoss::Bring(const Batch& batch, bool training) {
  examples_ = batch.num_examples;
  sums_.clear();
  host_losses_.clear();
  if (examples_ == 0) return;
  if (!training && kind_ == LossKind::kSampledSoftmax) return;
  if (training && kind_ == LossKind::kBpr) return BringPairs(batch);
  if (training && kind_ == LossKind::kSampledSoftmax) return BringItems(batch);
  BringTasks(batch);
}

void ModelLoss::BringTasks(const Batch& batch) {
  const size_t tasks = tasks_.size();
  if (tasks == 1 && tasks_[0].weight == 1) {
    Bring(batch.labels, &labels_);
    Bring(batch.weights, &weights_);
    return;
  }
  task_labels_.resize(examples_ * tasks);
  task_weights_.resize(examples_ * tasks);
  for (size_t t = 0; t < tasks; ++t) {
    for (size_t i = 0; i < examples_; ++i) {
      const float weight = batch.weights.empty() ? 1.0f : batch.weights[i];
      task_labels_[t * examples_ + i] = batch.labels[i * tasks + t];
      task_weights_[t * examples_ + i] = weight * static_cast<float>(tasks_[t].weight);
    }
  }
  Bring(task_labels_, &labels_);
  Bring(task_weights_, &weights_);
}

void ModelLoss::BringPairs(const Batch& batch) {
  const size_t n = examples_;
  CHECK_LE(n, kExamplesMax);
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return batch.groups[i]; });
  members_.assign(order.begin(), order.end());
  begin_.resize(n);
  end_.resize(n);
  for (size_t first = 0, last = 0; first < n; first = last) {
    while (last < n && batch.groups[order[last]] == batch.groups[order[first]]) ++last;
    for (size_t m = first; m < last; ++m) {
      begin_[order[m]] = static_cast<float>(first);
      end_[order[m]] = static_cast<float>(last);
    }
  }
  Bring(batch.labels, &labels_);
  Bring(batch.weights, &weights_);
  Bring(members_, &brought_members_);
  Bring(begin_, &brought_begin_);
  Bring(end_, &brought_end_);
}

void ModelLoss::BringItems(const Batch& batch) {
  CHECK_LE(examples_, kExamplesMax);
  CountItems(batch);
  counts_ = batch.labels;
  for (size_t i = 0; i < batch.weights.size(); ++i) counts_[i] *= batch.weights[i];
  Bring(counts_, &labels_);
  Bring(items_, &brought_members_);
  Bring(log_frequency_, &weights_);
}

void ModelLoss::Train(ConstMatrix logits, Matrix gradient) {
  CHECK_EQ(logits.rows, examples_);
  if (kind_ == LossKind::kBpr) return Bpr(logits, gradient);
  if (kind_ == LossKind::kSampledSoftmax) return SampledSoftmax(logits, gradient);
  OfTasks(logits, gradient, nullptr);
}

double ModelLoss::Sum() const {
  double sum = 0;
  for (const double of_task : sums_) sum += of_task;
  for (const float loss : host_losses_) sum += static_cast<double>(loss);
  return sum;
}

double ModelLoss::Score(ConstMatrix logits, std::vector<float>* scores) {
  CHECK_EQ(logits.rows, examples_);
  scores->resize(examples_ * ScoresAnExample(logits.cols));
  if (kind_ == LossKind::kSampledSoftmax) {
    ops_.RunRows(InnerProductRows{logits, losses_.Reserve(scores->size())});
    ops_.Download(losses_.data(), *scores);
    return 0;
  }
  if (examples_ == 0) return 0;
  OfTasks(logits, {}, scores);
  return kind_ == LossKind::kBpr ? 0 : Sum();
}

void ModelLoss::OfTasks(ConstMatrix logits, Matrix gradient, std::vector<float>* scores) {
  const bool whole = tasks_.size() == 1;
  const size_t score_floats = scores == nullptr ? 0 : scores->size() / tasks_.size();
  std::vector<std::vector<float>> of_tasks(tasks_.size(), std::vector<float>(score_floats));
  sums_.assign(tasks_.size(), 0.0);
  double no_sum = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    LossInput input;
    input.kind = tasks_[t].loss;
    input.positive_weight = tasks_[t].positive_weight;
    input.labels = labels_.data + t * examples_;
    input.weights = weights_.data == nullptr ? nullptr : weights_.data + t * examples_;
    const Matrix to = whole || gradient.data == nullptr ? gradient : gradient.Columns(t, 1);
    const ConstMatrix own = whole ? logits : logits.Columns(t, 1);
    const bool pairs = input.kind == LossKind::kBpr;
    const bool logit = pairs || input.kind == LossKind::kLogloss;
    if (!pairs) {
      ops_.Loss(input, own, to, logit ? std::span<float>() : of_tasks[t], &sums_[t]);
    }
    if (!logit || scores == nullptr) continue;
    // The score is the logit itself, which the squared loss returns; the loss value is ignored.
    input.kind = LossKind::kSquared;
    ops_.Loss(input, own, {}, of_tasks[t], &no_sum);
  }
  if (scores == nullptr) return;
  ops_.Fetch();
  for (size_t t = 0; t < tasks_.size(); ++t) {
    if (whole) return scores->swap(of_tasks[0]);
    for (size_t i = 0; i < examples_; ++i) (*scores)[i * tasks_.size() + t] = of_tasks[t][i];
  }
}

void ModelLoss::Bpr(ConstMatrix logits, Matrix gradient) {
  BprRows task;
  task.logits = logits;
  task.labels = labels_.data;
  task.weights = weights_.data;
  task.members = brought_members_.data;
  task.begin = brought_begin_.data;
  task.end = brought_end_.data;
  task.gradient = gradient;
  task.losses = losses_.Reserve(examples_);
  ops_.RunRows(task);
  host_losses_.resize(examples_);
  ops_.FetchLater(losses_.data(), host_losses_);
}

void ModelLoss::CountItems(const Batch& batch) {
  const size_t n = batch.num_examples;
  std::unordered_map<uint64_t, uint32_t> numbers;
  std::vector<uint32_t> times;
  items_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    uint64_t item = 0;
    for (const uint32_t feature : item_features_) {
      const SparseColumn& column = batch.sparse[feature];
      for (uint32_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
        item = CombineKeys(item, column.keys[k]);
      }
      item = CombineKeys(item, feature);  // Marks the end of the feature's values.
    }
    const auto [at, fresh] = numbers.try_emplace(item, static_cast<uint32_t>(times.size()));
    if (fresh) times.push_back(0);
    ++times[at->second];
    items_[i] = static_cast<float>(at->second);
  }
  log_frequency_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const double share =
        static_cast<double>(times[static_cast<size_t>(items_[i])]) / static_cast<double>(n);
    log_frequency_[i] = static_cast<float>(std::log(share));
  }
}

void ModelLoss::SampledSoftmax(ConstMatrix logits, Matrix gradient) {
  const size_t n = examples_, dim = logits.cols / 2;
  const ConstMatrix users = logits.Columns(0, dim), items = logits.Columns(dim, dim);
  const Matrix user_gradient = gradient.Columns(0, dim);
  const Matrix item_gradient = gradient.Columns(dim, dim);
  SampledSoftmaxRows task;
  task.counts = labels_.data;
  task.items = brought_members_.data;
  task.log_frequency = weights_.data;
  float* const losses = losses_.Reserve(n);
  for (size_t first = 0; first < n; first += kUsersAtOnce) {
    const size_t count = std::min(kUsersAtOnce, n - first);
    task.first = first;
    task.products = products_.ReserveRows(count, n);
    task.losses = losses + first;
    ops_.Gemm({.transpose_b = true}, users.Rows(first, count), items, task.products);
    ops_.RunRows(task);
    ops_.Gemm({}, task.products, items, user_gradient.Rows(first, count));
    ops_.Gemm({.transpose_a = true, .write = first == 0 ? Write::kOver : Write::kAdd},
              task.products, users.Rows(first, count), item_gradient);
  }
  host_losses_.resize(n);
  ops_.FetchLater(losses, host_losses_);
}

}  // namespace hdps
