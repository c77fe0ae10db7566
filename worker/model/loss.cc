// Cuts labels and logits by task; finds the groups and items of a batch for losses of pairs.
#include "worker/model/loss.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <unordered_map>

#include "common/base/hash.h"

namespace hdps {
namespace {

// Users whose products with all items of the batch are in memory at once.
constexpr size_t kUsersAtOnce = 512;
// Numbers of examples are exact as floats.
constexpr size_t kExamplesMax = size_t{1} << 24;

}  // namespace

ModelLoss::ModelLoss(const Job& job, DenseOps& ops)
    : tasks_(TasksOf(job.model)),
      kind_(tasks_[0].loss),
      ops_(ops),
      device_labels_(&ops),
      device_weights_(&ops),
      device_members_(&ops),
      device_begin_(&ops),
      device_end_(&ops),
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

double ModelLoss::Train(const Batch& batch, ConstMatrix logits, Matrix gradient) {
  if (kind_ == LossKind::kBpr) return Bpr(batch, logits, gradient);
  if (kind_ == LossKind::kSampledSoftmax) return SampledSoftmax(batch, logits, gradient);
  return OfTasks(batch, logits, gradient, nullptr);
}

double ModelLoss::Score(const Batch& batch, ConstMatrix logits, std::vector<float>* scores) {
  scores->resize(size_t{batch.num_examples} * ScoresAnExample(logits.cols));
  if (kind_ == LossKind::kSampledSoftmax) {
    ops_.RunRows(InnerProductRows{logits, losses_.Reserve(scores->size())});
    ops_.Download(losses_.data(), *scores);
    return 0;
  }
  if (kind_ == LossKind::kBpr) {
    // The logits themselves. As squared errors the losses mean nothing.
    ops_.Loss(LossKind::kSquared, logits, batch.labels, {}, *scores);
    return 0;
  }
  return OfTasks(batch, logits, {}, scores);
}

double ModelLoss::OfTasks(const Batch& batch, ConstMatrix logits, Matrix gradient,
                          std::vector<float>* scores) {
  LossInput input;
  input.weights = batch.weights;
  if (tasks_.size() == 1 && tasks_[0].weight == 1) {
    input.kind = kind_;
    input.positive_weight = tasks_[0].positive_weight;
    input.labels = batch.labels;
    return ops_.Loss(input, logits, gradient, scores == nullptr ? std::span<float>() : *scores);
  }
  double sum = 0;
  std::vector<float> weights(batch.num_examples, 1.0f);
  labels_.resize(batch.num_examples);
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (size_t i = 0; i < labels_.size(); ++i) {
      labels_[i] = batch.labels[i * tasks_.size() + t];
      const float weight = batch.weights.empty() ? 1.0f : batch.weights[i];
      weights[i] = weight * static_cast<float>(tasks_[t].weight);
    }
    input.kind = tasks_[t].loss;
    input.positive_weight = tasks_[t].positive_weight;
    input.labels = labels_;
    input.weights = weights;
    scores_.resize(scores == nullptr ? 0 : batch.num_examples);
    const Matrix to = gradient.data == nullptr ? gradient : gradient.Columns(t, 1);
    sum += ops_.Loss(input, logits.Columns(t, 1), to, scores_);
    for (size_t i = 0; i < scores_.size(); ++i) (*scores)[i * tasks_.size() + t] = scores_[i];
  }
  return sum;
}

const float* ModelLoss::Bring(const std::vector<float>& values, DeviceArray* array) {
  if (ops_.on_host()) return values.data();
  ops_.Upload(values, array->Reserve(values.size()));
  return array->data();
}

double ModelLoss::SumOfLosses(const DeviceArray& losses, size_t count) {
  host_losses_.resize(count);
  ops_.Download(losses.data(), host_losses_);
  double sum = 0;
  for (const float loss : host_losses_) sum += static_cast<double>(loss);
  return sum;
}

double ModelLoss::Bpr(const Batch& batch, ConstMatrix logits, Matrix gradient) {
  const size_t n = batch.num_examples;
  CHECK_LT(n, kExamplesMax);
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
  BprRows task;
  task.logits = logits;
  task.labels = Bring(batch.labels, &device_labels_);
  if (!batch.weights.empty()) task.weights = Bring(batch.weights, &device_weights_);
  task.members = Bring(members_, &device_members_);
  task.begin = Bring(begin_, &device_begin_);
  task.end = Bring(end_, &device_end_);
  task.gradient = gradient;
  task.losses = losses_.Reserve(n);
  ops_.RunRows(task);
  return SumOfLosses(losses_, n);
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
      item = CombineKeys(item, feature);  // Where its values end.
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

double ModelLoss::SampledSoftmax(const Batch& batch, ConstMatrix logits, Matrix gradient) {
  const size_t n = batch.num_examples, dim = logits.cols / 2;
  CHECK_LT(n, kExamplesMax);
  CountItems(batch);
  counts_ = batch.labels;
  for (size_t i = 0; i < batch.weights.size(); ++i) counts_[i] *= batch.weights[i];
  const ConstMatrix users = logits.Columns(0, dim), items = logits.Columns(dim, dim);
  const Matrix user_gradient = gradient.Columns(0, dim);
  const Matrix item_gradient = gradient.Columns(dim, dim);
  SampledSoftmaxRows task;
  task.counts = Bring(counts_, &device_labels_);
  task.items = Bring(items_, &device_members_);
  task.log_frequency = Bring(log_frequency_, &device_weights_);
  double sum = 0;
  for (size_t first = 0; first < n; first += kUsersAtOnce) {
    const size_t count = std::min(kUsersAtOnce, n - first);
    task.first = first;
    task.products = products_.ReserveRows(count, n);
    task.losses = losses_.Reserve(count);
    ops_.Gemm({.transpose_b = true}, users.Rows(first, count), items, task.products);
    ops_.RunRows(task);
    sum += SumOfLosses(losses_, count);
    ops_.Gemm({}, task.products, items, user_gradient.Rows(first, count));
    ops_.Gemm({.transpose_a = true, .write = first == 0 ? Write::kOver : Write::kAdd},
              task.products, users.Rows(first, count), item_gradient);
  }
  return sum;
}

}  // namespace hdps
