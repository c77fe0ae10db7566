// Sends the pushes of a step, takes their acknowledgements, and settles the norm of its gradients.
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/failpoint.h"
#include "common/protocol/view.h"
#include "common/telemetry/span_recorder.h"
#include "worker/step/step_runner.h"

namespace hdps {

std::vector<std::span<const float>> StepRunner::GradientsOf(const PreparedStep& step, size_t list) {
  const bool has_examples = !step.parts.empty();
  std::vector<std::span<const float>> gradients;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    if (static_cast<int>(t) == dense_table_) continue;
    gradients.push_back(has_examples ? std::span<const float>(compute_.row_gradients()[t])
                                     : std::span<const float>());
  }
  if (!dense_at_servers_.empty() && list == 0) {
    gradients.push_back(has_examples ? pushed_dense_ : std::span<float>());
  }
  return gradients;
}

MakeBytes StepRunner::SectionMaker() {
  return [this](ServerId to, size_t size, std::span<std::byte>* bytes) {
    return channel_.MakeBytes(to, size, bytes);
  };
}

void StepRunner::BeginPush(const PreparedStep& step) {
  lists_pushed_ = 1;
  push_.emplace(step.lists.front(), SectionMaker());
  const bool moved = step.parts.parts().size() > 1 || step.lists.size() > 1 || cache_ != nullptr ||
                     clips_own_ || job_.parallel.wire != DType::kFp32;
  if (!moved) push_->Open();
}

void StepRunner::Push(const WindowStep& step, const StepTask& task) {
  PushPieces(step, task, step.prepared->lists.size());
  // Under clip_norm the clock is announced together with the norm.
  std::vector<ServerRequest> finished;
  const auto num_servers = static_cast<uint32_t>(channel_.view()->servers.size());
  if (!clips_all_) finished = AdvanceRequests(num_servers, task.clock + 1);
  PushList(step, task, 0, std::move(finished));
  push_.reset();
  HDPS_FAILPOINT("worker.step.pushed");
}

void StepRunner::PushPieces(const WindowStep& step, const StepTask& task, size_t end) {
  for (; lists_pushed_ < end; ++lists_pushed_) {
    const RecordedSpan span(recorder_, "step", "push of some copies");
    PushList(step, task, lists_pushed_, {});
  }
}

RoundCounts StepRunner::CountsWith(const PreparedStep& step, const StepTask& task) const {
  RoundCounts counts = task.counts;
  counts.examples += step.parts.num_examples();
  counts.loss_sum += compute_.loss_sum();
  return counts;
}

void StepRunner::PushList(const WindowStep& window_step, const StepTask& task, size_t list,
                          std::vector<ServerRequest> then) {
  const PreparedStep& step = *window_step.prepared;
  const PushTerms terms = {.sequence = {next_sequence_++},
                           .clock = task.clock,
                           .num_examples = step.parts.num_examples(),
                           .list = window_step.list + list,
                           .format = job_.parallel.wire,
                           .rate = task.rate,
                           .epoch = task.epoch,
                           .part = static_cast<uint32_t>(list),
                           .steps_before = task.steps_before,
                           .loss_scale = job_.train.loss_scale,
                           .counts = list == 0 ? CountsWith(step, task) : RoundCounts(),
                           .messages = step.messages};
  const std::vector<std::span<const float>> gradients = GradientsOf(step, list);
  PushPlan of_piece(step.lists[list], SectionMaker());
  PushPlan& push = list == 0 ? *push_ : of_piece;
  acks_.Add(channel_.Start(push.Requests(terms, gradients), std::move(then)),
            list == 0 ? step.parts.num_examples() : 0);
}

Status StepRunner::SettleNorm(const StepTask& task) {
  const auto num_servers = static_cast<uint32_t>(channel_.view()->servers.size());
  const Ticket asked = channel_.Start(SquaresRequests(num_servers, task.clock));
  HDPS_RETURN_IF_ERROR(acks_.Collect(0));
  HDPS_ASSIGN_OR_RETURN(SquareSum squares, AwaitSquares(channel_, asked));
  const bool dense_here = dense_sum_.in_group() && dense_sum_.has_update();
  if (dense_here) {
    HDPS_ASSIGN_OR_RETURN(const SquareSum of_dense, dense_sum_.Squares());
    squares.Add(of_dense);
  }
  if (cache_ != nullptr) squares.Add(cache_->rows().squares());
  UpdateTerms terms = TermsOf(task);
  terms.shrink = ShrinkTo(job_.train.clip_norm, squares);
  if (dense_here) HDPS_RETURN_IF_ERROR(ApplyDense(terms, task.clock));
  if (cache_ != nullptr) HDPS_RETURN_IF_ERROR(cache_->rows().Update(terms));
  HDPS_RETURN_IF_ERROR(AwaitAdvance());
  advance_ = channel_.Start(AdvanceRequests(num_servers, task.clock + 1, squares));
  return Status();
}

Status StepRunner::AwaitAdvance() {
  if (!advance_) return Status();
  return channel_.Wait(*std::exchange(advance_, std::nullopt)).status();
}

Status StepRunner::Settle() {
  HDPS_RETURN_IF_ERROR(acks_.Collect(0));
  return AwaitAdvance();
}

}  // namespace hdps
