// Tensors become buckets as their gradients stand; buckets become sums over the ranks.
#include "worker/step/dense_reduction.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <utility>

#include "embedding/memory/gradient_scale.h"
#include "kernels/host/half_floats.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

// In what gradients travel: 16 bits are those of parallel.wire where it has 16, else fp16.
DType WireOf(const ParallelSpec& parallel) {
  if (parallel.gradient_fp32_sync) return DType::kFp32;
  return parallel.wire == DType::kFp32 ? DType::kFp16 : parallel.wire;
}

std::vector<uint32_t> SharedBy(const RankModel* rank) {
  std::vector<uint32_t> workers;
  if (rank == nullptr) return workers;
  for (const TensorSlice& slice : rank->graph().tensors) {
    workers.push_back(static_cast<uint32_t>(slice.summed_by.size()));
  }
  return workers;
}

std::span<float> In(std::vector<float>& flat, const FloatRun& run) {
  return std::span(flat).subspan(run.begin, run.size);
}

}  // namespace

DenseReduction::DenseReduction(const Job& job, const Model& model, int dense_table,
                               Executor& executor, const RankModel* rank)
    : job_(job),
      tensors_(model.tensors()),
      dense_table_(dense_table),
      executor_(executor),
      plan_(PlanDense(job, model.tensors(), SharedBy(rank))),
      gradients_(model.dense_floats()) {}

void DenseReduction::Begin(const StepShape& shape) {
  shape_ = shape;
  examples_ = shape.word.examples;
  pause_ = shape.word.pause ? 1 : 0;
  scale_ = 0;
  sent_ = 0;
  last_ = {};
  missing_.clear();
  for (const DenseBucket& bucket : plan_.buckets) missing_.push_back(bucket.tensors.size());
  if (shape.parts > 1) part_gradients_.resize(gradients_.size());
}

std::span<float> DenseReduction::PlaceOf(size_t part) {
  return part == 0 ? gradients_ : part_gradients_;
}

void DenseReduction::TensorDone(size_t part, uint32_t tensor, bool stay) {
  if (part > 0) {
    const FloatRun run = RunOf(tensors_[tensor]);
    AddGradients(In(part_gradients_, run), In(gradients_, run));
  }
  if (part + 1 < shape_.parts) return;
  Scale(tensor);
  const int bucket = plan_.bucket_of[tensor];
  if (bucket >= 0) --missing_[static_cast<size_t>(bucket)];
  if (!stay && group_.queue != nullptr) SendFull();
}

void DenseReduction::Scale(uint32_t tensor) {
  const FloatRun run = RunOf(tensors_[tensor]);
  const auto multiply = [&](float scale) {
    if (scale == 1.0f) return;
    for (float& value : In(gradients_, run)) value *= scale;
  };
  if (dense_table_ >= 0 && job_.train.mode == Mode::kSync &&
      IsAveraged(job_.tables[static_cast<size_t>(dense_table_)], Key{tensor} << 32)) {
    multiply(AverageScale(job_.parallel, shape_.workers));
  }
  if (in_group()) multiply(PartScale(job_.parallel, shape_.word.examples));
}

void DenseReduction::SendFull() {
  while (sent_ < plan_.buckets.size() && missing_[sent_] == 0) {
    const size_t bucket = sent_++;
    last_ =
        group_.queue->Submit([this, bucket](Collective& group) { return Reduce(group, bucket); });
  }
}

Status DenseReduction::Reduce(Collective& group, size_t bucket) {
  std::vector<ReducedValues> beside;
  if (IsLast(bucket)) {
    beside = {SumOf(std::span(&examples_, 1)), OrOf(std::span(&pause_, 1))};
  }
  if (bucket >= plan_.buckets.size()) return group.AllReduce(beside);
  const DenseBucket& of = plan_.buckets[bucket];
  Collective& sharing = group_.sharing == nullptr ? group : *group_.sharing->Of(of.tensors.front());
  if (&sharing != &group && !beside.empty()) {
    HDPS_RETURN_IF_ERROR(group.AllReduce(beside));
    beside.clear();
  }
  if (WireOf(job_.parallel) != DType::kFp32 && sharing.size() > 1) {
    return ReduceHalves(sharing, of, std::move(beside));
  }
  std::vector<ReducedValues> lists;
  for (const FloatRun& run : of.runs) lists.push_back(SumOf(In(gradients_, run)));
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
      use(In(gradients_, run), at);
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

Result<StepWord> DenseReduction::Finish() {
  CHECK(in_group());
  // Nothing to add. Negative zero is what leaves every float as it is.
  if (!shape_.computed) std::ranges::fill(gradients_, -0.0f);
  std::ranges::fill(missing_, 0);
  if (group_.queue != nullptr) {
    SendFull();
    HDPS_RETURN_IF_ERROR(group_.queue->Wait(last_));
  } else {
    for (; sent_ < plan_.buckets.size(); ++sent_) {
      HDPS_RETURN_IF_ERROR(Reduce(*group_.collective, sent_));
    }
  }
  if (plan_.buckets.empty()) HDPS_RETURN_IF_ERROR(Reduce(*group_.collective, 0));
  if (examples_ > 0 && !gradients_.empty()) {
    scale_ = SumScale(job_.parallel, group_.collective->size(), examples_);
  }
  return StepWord{examples_, pause_ != 0};
}

SquareSum DenseReduction::Squares() { return group_.state->Squares(executor_, gradients_, scale_); }

void DenseReduction::Apply(const UpdateTerms& terms, Clock clock, std::span<float> weights) {
  group_.state->Apply(executor_, gradients_, {scale_, clock + 1, terms});
  group_.state->ReadWeights(executor_, weights);
}

}  // namespace hdps
