// Turns a position in the data into the files, this worker's part, and the steps to skip.
#include "worker/role/epoch_steps.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/step_lists.h"
#include "common/protocol/view.h"
#include "worker/data/follow/row_wait.h"
#include "worker/data/item_pool.h"
#include "worker/data/kafka/topic_reader.h"

namespace hdps {
namespace {

// Returns true if both have the same number of workers, and the same servers with the same shards.
bool SplitsAlike(const View& a, const View& b) {
  return a.workers.size() == b.workers.size() && a.placed == b.placed && a.restarts == b.restarts &&
         std::ranges::equal(a.servers, b.servers, {}, &Member::peer, &Member::peer);
}

}  // namespace

Result<bool> EpochSteps::IsAt(const EpochPosition& position) const {
  if (position.clock < position.epoch_start) {
    return Status(Code::kInvalidArgument,
                  "epoch " + std::to_string(position.epoch + 1) + " begins at step " +
                      std::to_string(position.epoch_start) + ", this worker is at " +
                      std::to_string(position.clock));
  }
  return steps_ != nullptr && epoch_ == position.epoch && next_ == position.clock &&
         rank_ == channel_.rank() && SplitsAlike(*view_, *channel_.view());
}

void EpochSteps::TakeUp(Clock clock) {
  if (steps_ == nullptr) return;
  window_->CancelRequests();
  if (clock == next_ + 1 && window_->size() > 0) Pop();
}

Status EpochSteps::Open(const Job& part, const EpochPosition& position, const EpochSplit& split) {
  CHECK_GE(position.clock, position.epoch_start);
  const auto workers = static_cast<uint32_t>(channel_.view()->workers.size());
  if (items_ == nullptr && job_.data.negatives.per_positive > 0) {
    items_ = std::make_shared<ItemPool>(files_, job_);
  }
  PipelineOptions options = TrainingOptions(job_, channel_.rank().value, workers);
  options.reader.items = items_;
  options.reader.cache = split.rows;
  options.parts = {.micro_batches = job_.train.micro_batches,
                   .slices = job_.parallel.interleave_num,
                   .pieces = PiecesOfStep(job_)};
  if (split.whole_batch && ReadsTopic(job_.data)) {
    return {
        Code::kInvalidArgument,
        "parallel: the strategy lets each worker read the rows of all, and a topic's partitions "
        "belong to one worker each; choose a strategy that cuts no layer"};
  }
  if (split.whole_batch) {
    options.parts.workers = std::exchange(options.reader.num_parts, 1);
    options.parts.worker = std::exchange(options.reader.part, 0);
  }
  options.steps_in_use = job_.train.lookahead + 2;
  options.epoch = position.epoch;
  options.skip_steps = static_cast<uint64_t>(position.clock - position.epoch_start);
  options.plan.view = channel_.view();
  options.plan.sections = channel_.sections();
  options.plan.dense_keys = split.dense_keys;
  options.plan.hot = split.hot;
  options.executor = &executor_;
  options.board = &channel_.board();
  if (job_.data.follow) {
    options.reader.follow = NewPollingWait([this](const std::string& behind) { Await(behind); });
  }
  if (ReadsTopic(job_.data)) ReadTopic(position, &options.reader);
  if (follows()) options.on_step = [this] { channel_.StepReady(); };
  Close();
  HDPS_ASSIGN_OR_RETURN(steps_, StepPipeline::Start(part, files_, time_, options));
  window_ = std::make_unique<StepWindow>(*steps_, part, channel_, time_);
  epoch_ = position.epoch;
  next_ = position.clock;
  view_ = channel_.view();
  rank_ = channel_.rank();
  bad_rows_ = 0;
  offsets_.clear();
  const auto is_own = [&](const PartitionOffset& at) {
    return at.partition % workers == rank_.value;
  };
  std::ranges::copy_if(position.offsets, std::back_inserter(offsets_), is_own);
  return Status();
}

void EpochSteps::Await(const std::string& behind) {
  const int64_t waits_ms = channel_.board().AwaitRows(behind);
  channel_.meters()->Set(FigureNamed("hdps_worker_rows_awaited_seconds"),
                         static_cast<double>(waits_ms) / 1e3);
}

void EpochSteps::ReadTopic(const EpochPosition& position, ReaderOptions* options) {
  auto topic = std::make_shared<TopicReading>();
  topic->from = position.offsets;
  topic->step_ends = position.step_ends;
  topic->clock = &time_;
  topic->await = [this](const std::string& behind) { Await(behind); };
  topic->trouble = [&board = channel_.board()](const std::string& trouble) {
    board.SetTrouble(trouble);
  };
  topic->tell = [&meters = *channel_.meters()](const TopicFigures& figures) {
    meters.Set(FigureNamed("hdps_worker_topic_lag_messages"), static_cast<double>(figures.behind));
    meters.Set(FigureNamed("hdps_worker_topic_lag_seconds"), figures.behind_s);
    if (figures.new_missing > 0) {
      meters.Add(FigureNamed("hdps_worker_messages_missing_total"), figures.new_missing);
    }
  };
  options->topic = std::move(topic);
}

bool EpochSteps::follows() const { return job_.data.follow || ReadsTopic(job_.data); }

void EpochSteps::Close() {
  window_.reset();
  steps_.reset();
}

void EpochSteps::Pop() {
  CHECK_GT(window_->size(), 0u);
  bad_rows_ = window_->at(0).prepared->bad_rows;
  const std::vector<PartitionSpan>& messages = window_->at(0).prepared->messages;
  if (!messages.empty()) offsets_ = EndsOf(messages);
  ++next_;
  window_->Pop();
}

}  // namespace hdps
