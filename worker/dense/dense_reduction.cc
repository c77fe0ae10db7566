// Sends buckets as their gradients become complete, and applies the sums over the ranks.
#include "worker/dense/dense_reduction.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "embedding/memory/averages.h"
#include "embedding/memory/gradient_scale.h"
#include "kernels/host/half_floats.h"
#include "kernels/host/half_scale.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

// Returns the number format of gradients on the wire: fp32, or the 16 bit format of parallel.wire,
// or fp16 if that is fp32.
DType WireOf(const ParallelSpec& parallel) {
  if (parallel.gradient_fp32_sync) return DType::kFp32;
  return parallel.wire == DType::kFp32 ? DType::kFp16 : parallel.wire;
}

}  // namespace

DenseReduction::DenseReduction(const Job& job, Model& model, int dense_table, Executor& executor,
                               const RankModel* rank)
    : job_(job),
      ops_(model.ops()),
      tensors_(model.tensors()),
      dense_table_(dense_table),
      executor_(executor),
      shared_by_(rank == nullptr ? std::vector<uint32_t>() : rank->SharedBy()),
      at_servers_(HeldByServers(job, model.tensors())),
      device_gradients_(&model.ops()) {
  gradients_.resize(model.dense_floats());
}

DenseGradients DenseReduction::gradients() {
  if (!on_device()) return std::span(gradients_);
  return {device_gradients_.Reserve(gradients_.size()), gradients_.size()};
}

std::span<float> DenseReduction::In(const FloatRun& run, bool device) {
  float* const all = device ? gradients().data : gradients_.data();
  return {all + run.begin, run.size};
}

void DenseReduction::set_group(const DenseGroup& group) {
  group_ = group;
  plan_ = PlanDense(job_, tensors_, group.shards == nullptr ? DenseShards(tensors_) : *group.shards,
                    shared_by_);
  std::vector<uint32_t> of_host;
  for (uint32_t t = 0; t < tensors_.size(); ++t) {
    if (reduced(t) && !on_device(t)) of_host.push_back(t);
  }
  host_runs_ = RunsOf(tensors_, of_host);
  scatter_.reset();
  if (split()) scatter_.emplace(tensors_, *group.shards, group.groups, WireOf(job_.parallel));
  if (all_here()) return;
  own_gradients_.resize(group.shards->OwnKeys().size() * kDenseChunkFloats);
  own_weights_.resize(own_gradients_.size());
}

void DenseReduction::Begin(const StepShape& shape) {
  shape_ = shape;
  examples_ = shape.vote.examples;
  pause_ = shape.vote.pause ? 1 : 0;
  scale_ = 0;
  sent_ = 0;
  finishes_ = false;
  last_ = {};
  missing_.clear();
  for (const DenseBucket& bucket : plan_.buckets) missing_.push_back(bucket.tensors.size());
}

void DenseReduction::TensorDone(uint32_t tensor, bool stay) {
  if (on_device() && !on_device(tensor)) {
    ops_.Download(In(RunOf(tensors_[tensor]), true).data(), GradientOf(tensor));
  }
  Scale(tensor);
  if (!in_group()) return;
  const int bucket = plan_.bucket_of[tensor];
  if (bucket >= 0) --missing_[static_cast<size_t>(bucket)];
  if (!stay && group_.queue != nullptr) SendFull();
}

void DenseReduction::Scale(uint32_t tensor) {
  const std::span<float> values = GradientOf(tensor);
  const auto multiply = [&](float scale) {
    if (scale == 1.0f) return;
    if (on_device(tensor)) {
      ops_.RunRows(ScaleElements{scale, {values.data(), 1, values.size(), values.size()}});
    } else {
      for (float& value : values) value *= scale;
    }
  };
  if (dense_table_ >= 0 && job_.train.mode == Mode::kSync &&
      IsAveraged(job_.tables[static_cast<size_t>(dense_table_)], Key{tensor} << 32)) {
    const bool own = reduced(tensor) && plan_.bucket_of[tensor] < 0;
    multiply(AverageScale(job_.parallel, own ? 1 : shape_.workers));
  }
  if (reduced(tensor)) multiply(PartScale(job_.parallel, shape_.vote.examples));
}

void DenseReduction::Await() {
  if (on_device() && group_.groups.all->size() > 1) ops_.Finish();
}

void DenseReduction::SendFull() {
  const bool holds = holds_last_ && !finishes_ && !plan_.buckets.empty();
  const size_t end = plan_.buckets.size() - (holds ? 1 : 0);
  if (sent_ < end && missing_[sent_] == 0) Await();
  while (sent_ < end && missing_[sent_] == 0) {
    const size_t bucket = sent_++;
    last_ =
        group_.queue->Submit([this, bucket](Collective& group) { return Reduce(group, bucket); });
  }
}

std::vector<ReducedValues> DenseReduction::Votes() {
  return {SumOf(std::span(&examples_, 1)), OrOf(std::span(&pause_, 1))};
}

Status DenseReduction::ReduceVotes(Collective& group) { return group.AllReduce(Votes()); }

Collective& DenseReduction::GroupOf(Collective& all, const DenseBucket& bucket) const {
  return bucket.shared_by == 0 ? all : *group_.sharing->Of(bucket.tensors.front());
}

Status DenseReduction::Reduce(Collective& group, size_t bucket) {
  const DenseBucket& of = plan_.buckets[bucket];
  Collective& sharing = GroupOf(group, of);
  const bool halves = WireOf(job_.parallel) == DType::kFp16 && sharing.size() > 1;
  if (job_.train.loss_scale == 1 || !halves) return ReduceUnscaled(group, bucket);
  HDPS_ASSIGN_OR_RETURN(const std::vector<int> exponents, AgreeOnScales(sharing, of));
  ScaleBucket(of, exponents, 1, false);
  HDPS_RETURN_IF_ERROR(ReduceUnscaled(group, bucket));
  ScaleBucket(of, exponents, -1, of.scattered);
  return Status();
}

Result<std::vector<int>> DenseReduction::AgreeOnScales(Collective& group,
                                                       const DenseBucket& bucket) {
  std::vector<float> mine;
  for (const uint32_t t : bucket.tensors) mine.push_back(LargestMagnitude(GradientOf(t)));
  std::vector<float> all(group.size() * mine.size());
  const std::vector<size_t> sizes(group.size(), mine.size() * sizeof(float));
  HDPS_RETURN_IF_ERROR(group.AllGather(std::as_bytes(std::span(mine)), sizes,
                                       std::as_writable_bytes(std::span(all))));
  std::vector<int> exponents;
  for (size_t i = 0; i < mine.size(); ++i) {
    std::vector<float> of_ranks;
    for (uint32_t r = 0; r < group.size(); ++r) of_ranks.push_back(all[r * mine.size() + i]);
    exponents.push_back(
        ScaleExponent(LargestMagnitude(of_ranks), job_.train.loss_scale, group.size()));
  }
  return exponents;
}

void DenseReduction::ScaleBucket(const DenseBucket& bucket, std::span<const int> exponents,
                                 int sign, bool of_own) {
  for (size_t i = 0; i < bucket.tensors.size(); ++i) {
    const uint32_t t = bucket.tensors[i];
    const float scale = std::ldexp(1.0f, sign * exponents[i]);
    std::span<float> values = GradientOf(t);
    if (of_own) {
      values = std::span(own_gradients_)
                   .subspan(group_.shards->OwnAt(t) * kDenseChunkFloats,
                            group_.shards->OwnOf(t).size * kDenseChunkFloats);
    }
    for (float& value : values) value *= scale;
  }
}

Status DenseReduction::ReduceUnscaled(Collective& group, size_t bucket) {
  const DenseBucket& of = plan_.buckets[bucket];
  if (of.scattered) return scatter_->Reduce(of, gradients_, own_gradients_);
  std::vector<ReducedValues> beside;
  if (plan_.votes_bucket() == static_cast<int>(bucket)) beside = Votes();
  Collective& sharing = GroupOf(group, of);
  if (WireOf(job_.parallel) != DType::kFp32 && sharing.size() > 1) {
    return ReduceHalves(sharing, of, std::move(beside));
  }
  const bool device = on_device(of.tensors.front());
  const MemorySpace space = device ? MemorySpace::kDevice : MemorySpace::kHost;
  std::vector<ReducedValues> lists;
  for (const FloatRun& run : of.runs) lists.push_back(SumOf(In(run, device), space));
  lists.insert(lists.end(), beside.begin(), beside.end());
  return sharing.AllReduce(lists);
}

Status DenseReduction::ReduceHalves(Collective& group, const DenseBucket& bucket,
                                    std::vector<ReducedValues> beside) {
  const DType wire = WireOf(job_.parallel);
  const VectorWidth width = WidestVectors();
  halves_.resize(bucket.floats);
  const auto each_run = [&](const auto& use) {
    std::byte* at = reinterpret_cast<std::byte*>(halves_.data());
    for (const FloatRun& run : bucket.runs) {
      use(In(run, false), at);
      at += run.size * sizeof(uint16_t);
    }
  };
  each_run([&](std::span<float> values, std::byte* at) { NarrowFloats(width, wire, values, at); });
  const Reduction sum = wire == DType::kFp16 ? Reduction::kSumFp16 : Reduction::kSumBf16;
  beside.insert(beside.begin(), {sum, halves_.data(), halves_.size()});
  HDPS_RETURN_IF_ERROR(group.AllReduce(beside));
  each_run([&](std::span<float> values, std::byte* at) { WidenFloats(width, wire, at, values); });
  return Status();
}

Result<StepVote> DenseReduction::Finish() {
  CHECK(in_group());
  Collective& group = *group_.groups.all;
  // This rank has nothing to add. Adding negative zero leaves every float as it is.
  if (!shape_.computed) FillNegativeZeros();
  std::ranges::fill(missing_, 0);
  finishes_ = true;
  if (group_.queue != nullptr) {
    SendFull();
    HDPS_RETURN_IF_ERROR(group_.queue->Wait(last_));
  } else {
    Await();
    for (; sent_ < plan_.buckets.size(); ++sent_) HDPS_RETURN_IF_ERROR(Reduce(group, sent_));
  }
  if (plan_.votes_bucket() < 0) HDPS_RETURN_IF_ERROR(ReduceVotes(group));
  if (examples_ > 0 && !gradients_.empty()) {
    scale_ = SumScale(job_.parallel, group.size(), examples_);
  }
  return StepVote{examples_, pause_ != 0};
}

void DenseReduction::FillNegativeZeros() {
  if (on_device()) {
    const DenseGradients all = gradients();
    ops_.RunRows(FillElements{-0.0f, {all.data, 1, all.size, all.size}});
  }
  std::ranges::fill(gradients_, -0.0f);
}

std::span<float> DenseReduction::OwnGradients() {
  if (all_here()) return gradients_;
  for (uint32_t t = 0; t < tensors_.size(); ++t) {
    if (group_.shards->split(t) || group_.shards->OwnOf(t).size == 0) continue;
    std::ranges::copy(GradientOf(t),
                      own_gradients_.data() + group_.shards->OwnAt(t) * kDenseChunkFloats);
  }
  return own_gradients_;
}

Result<SquareSum> DenseReduction::Squares() {
  // clip_norm over all gradients excludes layerwise_parallel, so no tensor belongs to a worker
  // alone.
  const auto squares = group_.state->Squares(executor_, OwnGradients(), scale_);
  const SquareSum& each = squares[static_cast<size_t>(TensorHome::kEach)];
  // Each rank computes the squares of the slices that it represents.
  if (group_.sharing != nullptr) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<uint64_t>> of_ranks,
                          GatherLists<uint64_t>(*group_.groups.all, each.words));
    SquareSum all;
    for (const std::vector<uint64_t>& words : of_ranks) {
      SquareSum one;
      std::ranges::copy(words, one.words.begin());
      all.Add(one);
    }
    return all;
  }
  if (!split()) return each;
  return scatter_->SquaresOfAll(each, squares[static_cast<size_t>(TensorHome::kSplit)]);
}

Status DenseReduction::Apply(const UpdateTerms& terms, Clock clock, std::span<float> weights) {
  DenseState::Update update = {scale_, clock + 1, terms};
  if (const uint64_t own = shape_.vote.examples; own > 0) {
    update.own_scale = SumScale(job_.parallel, 1, own);
  }
  if (on_device()) group_.device->Apply(gradients().data, update);
  if (group_.state == nullptr) return Status();
  if (all_here()) {
    group_.state->Apply(executor_, gradients_, update);
    group_.state->ReadWeights(executor_, weights);
    return Status();
  }
  const OptimizerSpec& rule = job_.tables[static_cast<size_t>(dense_table_)].optimizer;
  if (split() && RecordOf(rule).whole_tensors) update.terms.peers = &*scatter_;
  group_.state->Apply(executor_, OwnGradients(), update);
  if (split()) HDPS_RETURN_IF_ERROR(scatter_->TakeFailure());
  group_.state->ReadWeights(executor_, own_weights_);
  for (uint32_t t = 0; t < tensors_.size(); ++t) {
    if (group_.shards->split(t) || group_.shards->OwnOf(t).size == 0) continue;
    const FloatRun run = RunOf(tensors_[t]);
    std::copy_n(own_weights_.data() + group_.shards->OwnAt(t) * kDenseChunkFloats, run.size,
                weights.data() + run.begin);
  }
  for (const std::vector<uint32_t>& gather : plan_.gathers) {
    HDPS_RETURN_IF_ERROR(scatter_->Gather(gather, own_weights_, weights));
  }
  return Status();
}

}  // namespace hdps
