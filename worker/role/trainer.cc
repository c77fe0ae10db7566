// Carries out commands by calling the parts of the worker in order.
#include "worker/role/trainer.h"

#include <glog/logging.h>

#include <optional>
#include <set>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/memory_check.h"
#include "common/platform/failpoint.h"
#include "common/platform/memory_full.h"
#include "common/protocol/view.h"
#include "common/telemetry/span_recorder.h"
#include "kernels/device_memory_full.h"
#include "worker/data/data_preview.h"
#include "worker/role/place_in_topic.h"

namespace hdps {

int64_t PatienceMs(const ClusterSpec& cluster) {
  return int64_t{cluster.dead_after_ms} + int64_t{cluster.replace_after_s} * 1000;
}

Trainer::Trainer(const TrainerOptions& options, NodeChannel& channel, MonotonicClock& clock,
                 FileSystem& files, Executor& executor)
    : options_(options),
      channel_(channel),
      time_(clock),
      files_(files, [this](const std::string& path) { channel_.board().Opened(path); }),
      executor_(executor),
      part_(job(), files_, executor),
      data_(job(), files_),
      groups_(job(), options.collective_host, channel, channel.board()),
      steps_(job(), files_, channel, clock, executor),
      scores_(job()) {
  log_.PrintLosses(job().train.log_every_steps, options.print);
}

Trainer::~Trainer() = default;

WorkerPlace Trainer::place() const {
  return {channel_.rank().value, static_cast<uint32_t>(channel_.view()->workers.size())};
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
  // The loop ends when the scheduler has been told; later commands are ignored.
  while (channel_.NextCommand().has_value()) {
  }
}

bool Trainer::Interrupted(const Status& failure) {
  if (channel_.interrupted()) return true;
  if (!MissesARank(failure)) return false;
  LOG(WARNING) << failure.message() << "; waits for the scheduler's word";
  return channel_.AwaitInterruption(PatienceMs(job().cluster)) && channel_.interrupted();
}

bool Trainer::MissesARank(const Status& failure) const {
  return failure.code() == Code::kUnavailable ||
         (failure.code() == Code::kCancelled && groups_.any());
}

Status Trainer::Prepare() {
  channel_.board().Enter("prepare");
  HDPS_RETURN_IF_ERROR(part_.MakeModel(options_.number_here));
  Model& model = part_.whole();
  HDPS_RETURN_IF_ERROR(CheckMemory("this worker",
                                   MemoryOfWorker(job(), /*kept_here=*/model.ops().on_host()),
                                   MostMemory(files_)));
  const MemoryFor dense("the dense layers (model.hidden, model.layers)");
  dense_ = std::make_unique<Dense>(job(), part_, channel_, executor_, time_);
  MakeRunner();
  HDPS_RETURN_IF_ERROR(PrepareCache());
  const ActivityBoard::Waiting reading(&channel_.board(), WaitReason::kData);
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(files_, job()));
  for (const std::string& line : preview.lines) LOG(INFO) << "data: " << line;
  for (const std::string& warning : preview.warnings) LOG(WARNING) << "data: " << warning;
  LOG(INFO) << model.Describe();
  LogTargets();
  return Status();
}

void Trainer::LogTargets() const {
  if (part_.whole().ops().on_host()) {
    for (const std::string& place : CudaTargetsOf(job().model)) {
      LOG(WARNING) << place << ": cuda has no effect: the model is on the CPU";
    }
    return;
  }
  std::set<std::string> reasons;
  for (const LayerSpec& layer : job().model.layers) reasons.insert(WhyDenseOnHost(job(), layer));
  for (const std::string& reason : reasons) {
    if (!reason.empty()) LOG(INFO) << "dense weights cross the bus in every step: " << reason;
  }
}

Status Trainer::PrepareCache() {
  std::vector<HotGroup> hot = HotGroupsOf(job(), KeyFinder(job()).table_keys());
  if (hot.empty()) return Status();
  const MemoryFor kept("rows kept at the worker (vocab_cache_size)");
  Model& model = part_.whole();
  const std::string not_here = model.ops().on_host() ? "" : WhyNotOnCuda(job());
  if (!not_here.empty()) return Status(Code::kInvalidArgument, "model.device: " + not_here);
  cache_ = std::make_unique<DeviceCache>(job(), std::move(hot), model.ops(), channel_);
  runner_->set_cache(cache_.get());
  LOG(INFO) << cache_->rows().Describe();
  return Status();
}

void Trainer::MakeRunner() {
  runner_ = std::make_unique<StepRunner>(part_.job(), part_.model(), channel_, time_, executor_,
                                         part_.rank_model());
  runner_->set_cache(cache_.get());
  runner_->set_recorder(options_.recorder);
  runner_->set_replay(options_.replay);
  runner_->set_scores(scores_.used() ? &scores_ : nullptr);
}

CommandDone Trainer::AnswerTo(const Command& command) const {
  Model& model = part_.whole();
  CommandDone done;
  done.id = command.id;
  done.dense_rows = dense_->rows.keys().size();
  for (const DenseTensor& tensor : model.tensors()) done.dense_parameters += tensor.size();
  done.arithmetic = model.ops().Arithmetic();
  return done;
}

Status Trainer::Execute(const Command& command) {
  channel_.board().Enter(CommandKindName(command.command), command.eval_set);
  CommandDone done = AnswerTo(command);
  switch (command.command) {
    case CommandKind::kInitDense:
      HDPS_RETURN_IF_ERROR(InitDense(command));
      HDPS_RETURN_IF_ERROR(ReportDataFiles(&done));
      break;
    case CommandKind::kLoad:
      // Reported first, because the scheduler may not know how many steps are lost.
      done.clock = clock_;
      HDPS_RETURN_IF_ERROR(Load(command));
      HDPS_RETURN_IF_ERROR(ReportDataFiles(&done));
      channel_.Answer(std::move(done));
      return Status();
    case CommandKind::kTrain:
      return Train(command);
    case CommandKind::kStoreDense:
      HDPS_RETURN_IF_ERROR(StoreDense());
      break;
    case CommandKind::kEvaluate:
      HDPS_RETURN_IF_ERROR(Evaluate(command, &done));
      break;
    case CommandKind::kPause:  // Nothing is running.
    case CommandKind::kFinish:
      break;
    default:  // Commands for servers.
      done.code = Code::kInvalidArgument;
      done.message = std::string("a worker cannot ") + CommandKindName(command.command);
      break;
  }
  done.clock = clock_;
  channel_.Answer(std::move(done));
  return Status();
}

Status Trainer::ReportDataFiles(CommandDone* done) {
  if (channel_.rank().value != 0) return Status();
  done->data_files = data_.TrainingPrints();
  if (job().train.evals_per_epoch == 0) return Status();
  const ActivityBoard::Waiting waiting(&channel_.board(), WaitReason::kData);
  HDPS_ASSIGN_OR_RETURN(done->rows, data_.RowsOfEpoch());
  return Status();
}

Status Trainer::InitDense(const Command& command) {
  const DenseRows& rows = dense_->rows;
  if (rows.empty()) return Status();
  const MemoryFor dense("first weights of the dense layers (model.hidden, model.layers)");
  HDPS_FAILPOINT_OR_RETURN("worker.dense.before_init");
  const uint32_t dim = rows.spec().dim;
  std::vector<float> weights = part_.whole().InitialDense(job().seed);
  if (command.taken.empty()) return rows.Store(dim, rows.keys(), clock_, weights);
  std::vector<Key> keys;
  for (size_t k = 0; k < rows.keys().size(); ++k) {
    const Key key = rows.keys()[k];
    if (std::ranges::count(command.taken, static_cast<uint32_t>(key >> 32)) > 0) continue;
    std::copy_n(&weights[k * dim], dim, &weights[keys.size() * dim]);
    keys.push_back(key);
  }
  weights.resize(keys.size() * dim);
  return keys.empty() ? Status() : rows.Store(dim, keys, clock_, weights);
}

Status Trainer::Load(const Command& command) {
  clock_ = command.until;
  if (!command.keep) {
    log_.BeginState();
    scores_.Forget();
  }
  steps_.Close();
  evaluation_.reset();
  dense_->kept.LeaveGroup();  // One of its collective calls may have been cut off.
  groups_.LeaveSum();
  dense_->kept.Forget();
  MakeRunner();
  if (cache_ != nullptr) cache_->Forget();
  HDPS_FAILPOINT("worker.load.taken");
  groups_.LeaveLanes();
  return Status();
}

// ---- Training.

Status Trainer::FollowStrategy() {
  const auto let_go = [this] {
    steps_.Close();
    runner_.reset();
    dense_->kept.Outdate();
    groups_.Outdate();
  };
  HDPS_RETURN_IF_ERROR(part_.Follow(place(), let_go));
  if (runner_ == nullptr) MakeRunner();
  return Status();
}

Status Trainer::JoinGroup() {
  met_in_ = channel_.view();
  const View& view = *met_in_;
  if (groups_.SumIsOf(view)) return Status();
  channel_.board().Enter("meet");
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Collective> group,
                        groups_.FormSum(view, channel_.rank().value, gpu()));
  dense_->kept.LeaveGroup();
  groups_.KeepSum(view, std::move(group));
  return dense_->kept.used() ? dense_->kept.JoinGroup(*groups_.sum(), place()) : Status();
}

Status Trainer::JoinLanes() {
  const View& view = *channel_.view();
  if (!groups_.LanesAreOf(view)) {
    channel_.board().Enter("meet");
    runner_->set_lane_groups({});  // Releases the old groups.
    HDPS_RETURN_IF_ERROR(groups_.FormLanes(view, channel_.rank().value, gpu()));
  }
  runner_->set_lane_groups(groups_.lanes());
  return Status();
}

Status Trainer::JoinCache() {
  const bool alone = place().workers == 1;
  if (!alone) HDPS_RETURN_IF_ERROR(JoinGroup());
  return cache_->Join(channel_.view()->view, place().rank, alone ? nullptr : groups_.sum());
}

Status Trainer::OpenSteps(const Command& command, const PlaceStand& taken_up) {
  EpochPosition position{command.epoch, command.epoch_start, clock_, command.offsets};
  if (command.begun && ReadsTopic(job().data)) {
    HDPS_RETURN_IF_ERROR(FindInTopic(taken_up, command.since, &position));
  }
  HDPS_ASSIGN_OR_RETURN(const bool open, steps_.IsAt(position));
  if (open) return Status();
  data_.LookAtTraining("epoch " + std::to_string(command.epoch + 1) + " reads it as it is");
  if (channel_.rank().value == 0) data_.MarkOpened();
  EpochSplit split;
  split.whole_batch =
      part_.rank_model() != nullptr && part_.rank_model()->graph().reads_whole_batch;
  split.dense_keys = dense_->rows.at_servers().keys();
  if (cache_ != nullptr) split.hot = cache_->registry();
  split.rows = options_.rows;
  return steps_.Open(part_.job(), position, split);
}

Status Trainer::StoreDense() {
  return dense_->kept.used() ? dense_->kept.Store(place(), clock_) : Status();
}

// ---- Evaluation.

Status Trainer::BeginEvaluation(const std::string& eval_set) {
  HDPS_FAILPOINT_OR_RETURN("worker.evaluate.begun");
  HDPS_ASSIGN_OR_RETURN(const EvalSet set, FindEvalSet(job(), eval_set));
  if (!set.held_out) {
    data_.LookAtEvalSet(set, "its figures are of other rows than those before");
  }
  PipelineOptions reading = EvaluationOptions(job(), set, place().rank, place().workers);
  reading.plan.view = channel_.view();
  reading.plan.sections = channel_.sections();
  reading.executor = &executor_;
  reading.board = &channel_.board();
  reading.reader.cache = options_.rows;
  if (dense_->kept.used() && part_.rank_model() == nullptr) {
    HDPS_RETURN_IF_ERROR(dense_->kept.Load(place(), clock_));
    HDPS_RETURN_IF_ERROR(dense_->rows.ReadServersInto(part_.whole(), clock_));
  } else {
    HDPS_RETURN_IF_ERROR(dense_->rows.ReadInto(part_.whole(), clock_));
  }
  HDPS_ASSIGN_OR_RETURN(evaluation_, EvaluationRound::Begin(job(), part_.whole(), clock_, channel_,
                                                            time_, files_, reading));
  return Status();
}

Status Trainer::Evaluate(const Command& command, CommandDone* done) {
  // The scheduler holds one answer of each worker at a time.
  constexpr size_t kExamplesInAnswers = size_t{1} << 20;
  if (!command.next) {
    HDPS_RETURN_IF_ERROR(BeginEvaluation(command.eval_set));
  } else if (evaluation_ == nullptr) {
    return Status(Code::kInvalidArgument, "there is no evaluation to go on with");
  }
  HDPS_RETURN_IF_ERROR(evaluation_->Next(kExamplesInAnswers / place().workers, done));
  done->data_changes = data_.TakeChanges();
  if (evaluation_->at_end()) evaluation_.reset();
  return Status();
}

}  // namespace hdps
