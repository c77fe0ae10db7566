// Commands in, answers out; the steps between them are StepRunner's.
#include "worker/role/trainer.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/job/eval_sets.h"
#include "common/platform/failpoint.h"
#include "kernels/device_memory_full.h"
#include "worker/data/data_preview.h"
#include "worker/step/label_count.h"

namespace hdps {

Trainer::Trainer(const TrainerOptions& options, NodeChannel& channel, MonotonicClock& clock,
                 FileSystem& files, Executor& executor)
    : job_(options.job),
      collective_host_(options.collective_host),
      after_step_(options.after_step),
      trace_(options.trace),
      number_here_(options.number_here),
      channel_(channel),
      board_(channel.board()),
      time_(clock),
      files_(files, [this](const std::string& path) { board_.Opened(path); }),
      executor_(executor) {}

Trainer::~Trainer() = default;

bool Trainer::allreduce() const {
  return job_->parallel.dense_exchange == DenseExchange::kAllreduce && !dense_keys_.empty();
}

void Trainer::Run() {
  Status status = WithinDeviceMemory([this] { return Prepare(); });
  if (status.ok() && channel_.WaitForView() == nullptr) return;
  while (status.ok()) {
    const std::optional<Command> command = channel_.NextCommand();
    if (!command.has_value()) break;
    VLOG(1) << "command " << command->id.value << ": " << CommandKindName(command->command);
    status = WithinDeviceMemory([&] { return Execute(*command); });
    if (!status.ok() && Interrupted(status)) {
      LOG(INFO) << "command '" << CommandKindName(command->command) << "' at step " << clock_
                << " is dropped: the job goes back to a checkpoint";
      status = Status();
      HDPS_FAILPOINT("worker.command.dropped");
    }
    if (!status.ok()) {
      status = Status(status.code(), std::string("command '") + CommandKindName(command->command) +
                                         "' at step " + std::to_string(clock_) + ": " +
                                         status.message());
    }
  }
  if (status.ok() || status.code() == Code::kCancelled) return;
  LOG(ERROR) << status.message();
  channel_.Fail(status);
  // The loop ends when the scheduler has been told; nothing more is done for it.
  while (channel_.NextCommand().has_value()) {
  }
}

bool Trainer::Interrupted(const Status& failure) {
  if (channel_.interrupted()) return true;
  const bool misses_a_rank =
      failure.code() == Code::kUnavailable ||
      (failure.code() == Code::kCancelled && (group_ != nullptr || !lane_groups_.empty()));
  if (!misses_a_rank) return false;
  LOG(WARNING) << failure.message() << "; waits for the scheduler's word";
  const ClusterSpec& cluster = job_->cluster;
  const int64_t patience_ms =
      int64_t{cluster.dead_after_ms} + int64_t{cluster.replace_after_s} * 1000;
  return channel_.AwaitInterruption(patience_ms) && channel_.interrupted();
}

Status Trainer::Prepare() {
  board_.Enter("prepare");
  HDPS_ASSIGN_OR_RETURN(model_, NewModel(*job_, executor_, number_here_));
  dense_keys_ = DenseKeys(model_->tensors());
  MakeRunner();
  std::vector<HotGroup> hot = HotGroupsOf(*job_, KeyFinder(*job_).table_keys());
  if (!hot.empty()) {
    const std::string not_here = model_->ops().on_host() ? "" : WhyNotOnCuda(*job_);
    if (!not_here.empty()) return Status(Code::kInvalidArgument, "model.device: " + not_here);
    cache_ = std::make_unique<DeviceCache>(*job_, std::move(hot), model_->ops(), channel_);
    runner_->set_cache(cache_.get());
    LOG(INFO) << cache_->rows().Describe();
  }
  const ActivityBoard::Waiting reading(&board_, Hold::kData);
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(files_, *job_));
  for (const std::string& line : preview.lines) LOG(INFO) << "data: " << line;
  for (const std::string& warning : preview.warnings) LOG(WARNING) << "data: " << warning;
  LOG(INFO) << model_->Describe();
  if (model_->ops().on_host() && job_->model.dense_target == "cuda") {
    LOG(WARNING) << "model.dense_target: cuda has no effect: the model is on the CPU";
  }
  const std::string on_host = WhyDenseOnHost(*job_);
  if (!model_->ops().on_host() && !on_host.empty()) {
    LOG(INFO) << "dense weights cross the bus in every step: " << on_host;
  }
  return Status();
}

void Trainer::MakeRunner() {
  runner_ = std::make_unique<StepRunner>(own_job(), own_model(), channel_, time_, executor_,
                                         rank_model_.get());
  runner_->set_cache(cache_.get());
  runner_->set_trace(trace_);
}

CommandDone Trainer::AnswerTo(const Command& command) const {
  CommandDone done;
  done.id = command.id;
  done.dense_rows = dense_keys_.size();
  for (const DenseTensor& tensor : model_->tensors()) done.dense_parameters += tensor.size();
  done.arithmetic = model_->ops().Arithmetic();
  return done;
}

Status Trainer::Execute(const Command& command) {
  board_.Enter(CommandKindName(command.command), command.eval_set);
  CommandDone done = AnswerTo(command);
  switch (command.command) {
    case CommandKind::kInitDense:
      HDPS_RETURN_IF_ERROR(InitDense());
      HDPS_RETURN_IF_ERROR(TellRows(&done));
      break;
    case CommandKind::kLoad:
      HDPS_RETURN_IF_ERROR(Load(command));
      HDPS_RETURN_IF_ERROR(TellRows(&done));
      break;
    case CommandKind::kTrain:
      return Train(command);
    case CommandKind::kStoreDense:
      HDPS_RETURN_IF_ERROR(StoreDense());
      break;
    case CommandKind::kEvaluate:
      HDPS_RETURN_IF_ERROR(EvaluatePart(command, &done));
      break;
    case CommandKind::kPause:  // Nothing is running.
    case CommandKind::kFinish:
      break;
    default:  // A server's.
      done.code = Code::kInvalidArgument;
      done.message = std::string("a worker cannot ") + CommandKindName(command.command);
      break;
  }
  done.clock = clock_;
  channel_.Answer(std::move(done));
  return Status();
}

Status Trainer::TellRows(CommandDone* done) {
  if (job_->train.evals_per_epoch == 0 || channel_.rank().value != 0) return Status();
  if (!rows_of_epoch_) {
    const ActivityBoard::Waiting waiting(&board_, Hold::kData);
    const ReaderOptions reading{.seed = job_->seed, .side = RowSide::kTrained};
    HDPS_ASSIGN_OR_RETURN(rows_of_epoch_, CountRows(files_, job_->data, job_->data.train, reading));
  }
  done->rows = *rows_of_epoch_;
  return Status();
}

Status Trainer::InitDense() {
  if (dense_keys_.empty()) return Status();
  HDPS_FAILPOINT_OR_RETURN("worker.dense.before_init");
  return StoreDenseRows(dense_spec().dim, dense_keys_, model_->InitialDense(job_->seed));
}

Status Trainer::Load(const Command& command) {
  clock_ = command.until;
  if (!command.keep) examples_ = 0, loss_sum_ = 0;
  window_.reset();
  steps_.reset();
  evaluation_.reset();
  LeaveGroup();  // A call of its may have been cut off.
  dense_state_.reset();
  MakeRunner();
  if (cache_ != nullptr) cache_->Forget();
  HDPS_FAILPOINT("worker.load.taken");
  MutexLock lock(group_mutex_);
  lane_groups_.clear();
  return Status();
}

Status Trainer::Train(const Command& command) {
  HDPS_RETURN_IF_ERROR(FollowStrategy());
  if (allreduce()) {
    HDPS_RETURN_IF_ERROR(EnsureGroup());
    HDPS_RETURN_IF_ERROR(LoadDenseState());
    Collective* const places = places_ == nullptr ? group_.get() : places_.get();
    runner_->set_group({{group_.get(), places, replicas_.get()},
                        dense_state_.get(),
                        shards_.get(),
                        collective_queue_.get(),
                        rank_groups_.get()});
  }
  if (own_model().meets()) HDPS_RETURN_IF_ERROR(MeetInLanes());
  if (cache_ != nullptr) HDPS_RETURN_IF_ERROR(JoinCache());
  board_.Enter("train");
  HDPS_RETURN_IF_ERROR(OpenSteps(command));
  HDPS_FAILPOINT("worker.train.begun");
  Progress progress;
  const int64_t begin = time_.NowNs();
  HDPS_RETURN_IF_ERROR(TrainSteps(command, &progress));
  window_->ForgetRows();
  board_.Enter("push");
  HDPS_RETURN_IF_ERROR(runner_->Settle());
  if (rank_model_ != nullptr) HDPS_RETURN_IF_ERROR(StoreSlices());
  if (cache_ != nullptr) HDPS_RETURN_IF_ERROR(cache_->Flush(clock_));
  runner_->times().total_ns = time_.NowNs() - begin;
  LOG(INFO) << "epoch " << command.epoch + 1 << " until step " << clock_ << ": "
            << Describe(runner_->times());
  TellTraffic();
  if (cache_ != nullptr) {
    LOG(INFO) << "rows kept here: " << Describe(cache_->counters(), cache_->rows().bytes());
  }
  all_times_.Add(std::exchange(runner_->times(), StepTimes()));

  CommandDone done = AnswerTo(command);
  done.clock = clock_;
  done.end_of_epoch = progress.end_of_epoch;
  done.examples = progress.examples;
  done.loss_sum = progress.loss_sum;
  done.bad_rows = progress.bad_rows;
  done.label_tally = progress.labels;
  if (cache_ != nullptr) done.cache = cache_->tally();
  done.collectives = TellCollectives();
  channel_.Answer(std::move(done));
  if (progress.pause != nullptr) return Execute(*progress.pause);
  return Status();
}

Status Trainer::TrainSteps(const Command& command, Progress* progress) {
  bool pause = false;
  const uint64_t bad_rows_before = steps_bad_rows_;
  while (clock_ < command.until && !pause) {
    const int64_t begin = time_.NowNs();
    board_.Enter("read");
    HDPS_RETURN_IF_ERROR(window_->Fill(1, 1));
    runner_->times().read_wait_ns += time_.NowNs() - begin;
    if (window_->size() == 0) {
      progress->end_of_epoch = true;
      break;
    }
    const PreparedStep& step = *window_->at(0).prepared;
    if (progress->pause == nullptr) {
      if (std::optional<Command> command_pause = channel_.TakePause()) {
        progress->pause = std::make_unique<Command>(*std::move(command_pause));
      }
    }
    const StepTask task{clock_, command.until, progress->pause != nullptr, command.rate};
    HDPS_ASSIGN_OR_RETURN(const StepOutcome outcome, runner_->Run(*window_, task));
    ++clock_;
    steps_clock_ = clock_;
    steps_bad_rows_ = step.bad_rows;
    progress->examples += outcome.examples;
    progress->loss_sum += outcome.loss_sum;
    progress->bad_rows = step.bad_rows - bad_rows_before;
    for (const StepParts::Part& part : step.parts.parts()) {
      progress->labels.Add(CountLabels(part.batch));
    }
    pause = outcome.pause;
    examples_ += outcome.examples;
    loss_sum_ += outcome.loss_sum;
    Heartbeat report;
    report.clock = clock_;
    report.examples = examples_;
    report.loss_sum = loss_sum_;
    report.epoch_progress = step.progress;
    if (cache_ != nullptr) report.cache = cache_->tally();
    channel_.Report(report);
    if (after_step_) {
      after_step_({command.epoch, clock_, outcome.examples, outcome.loss_sum, runner_->times()});
    }
    window_->Pop();
  }
  return Status();
}

bool Trainer::StepsFit(const Command& command) const {
  return steps_ != nullptr && steps_epoch_ == command.epoch && steps_clock_ == clock_ &&
         steps_view_ == channel_.view()->view;
}

Status Trainer::OpenSteps(const Command& command) {
  if (clock_ < command.epoch_start) {
    return Status(Code::kInvalidArgument, "epoch " + std::to_string(command.epoch + 1) +
                                              " begins at step " +
                                              std::to_string(command.epoch_start) +
                                              ", this worker is at " + std::to_string(clock_));
  }
  if (StepsFit(command)) return Status();
  const bool full_batch = job_->parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  PipelineOptions options;
  options.paths = job_->data.train;
  options.reader.seed = job_->seed;
  if (items_ == nullptr && job_->data.negatives.per_positive > 0) {
    items_ = std::make_shared<ItemPool>(files_, *job_);
  }
  options.reader.items = items_;
  options.reader.batch_size = job_->train.batch_size;
  options.reader.side = RowSide::kTrained;
  options.reader.part = full_batch ? 0 : channel_.rank().value;
  options.reader.num_parts =
      full_batch ? 1 : static_cast<uint32_t>(channel_.view()->workers.size());
  options.parts = {job_->train.micro_batches, job_->parallel.interleave_num};
  if (rank_model_ != nullptr && rank_model_->graph().reads_whole_batch) {
    options.parts.workers = std::exchange(options.reader.num_parts, 1);
    options.parts.worker = std::exchange(options.reader.part, 0);
  }
  options.steps_in_use = job_->train.lookahead + 2;
  options.epoch = command.epoch;
  options.skip_steps = static_cast<uint64_t>(clock_ - command.epoch_start);
  options.plan.view = channel_.view();
  options.plan.sections = channel_.sections();
  options.executor = &executor_;
  options.board = &board_;
  if (!allreduce()) options.plan.dense_keys = dense_keys_;
  if (cache_ != nullptr) options.plan.hot = cache_->registry();
  window_.reset();
  steps_.reset();
  HDPS_ASSIGN_OR_RETURN(steps_, StepPipeline::Start(own_job(), files_, time_, options));
  window_ = std::make_unique<StepWindow>(*steps_, own_job(), channel_, time_);
  steps_epoch_ = command.epoch;
  steps_clock_ = clock_;
  steps_bad_rows_ = 0;
  steps_view_ = channel_.view()->view;
  return Status();
}

}  // namespace hdps
