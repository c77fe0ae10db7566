// The whole job file, and the settings for running a job: its steps, the exchange of gradients,
// checkpoints and the cluster.
#include <cmath>

#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"
#include "common/job/text/setting_table.h"
#include "common/metrics/metric.h"

namespace hdps {

namespace {

using enum Note;
using enum OnResume;

// Adds a setting that is a power of two, or a word in its place.
void AddLossScale(SettingTable<TrainText>* train) {
  constexpr double kMost = 1 << 24;
  train->AddConverted(
      "loss_scale", ValueKind::kNumber,
      "Gradients that travel as fp16 (parallel.wire, gradient_fp32_sync) are multiplied by this "
      "before they are rounded, and divided in fp32 where they arrive, so that small ones are not "
      "rounded to zero: 1024 in MindSpore's model zoo. Where a gradient would become too large for "
      "fp16, its message travels with a smaller scale of its own. dynamic: each message has the "
      "largest scale at which it fits, so no step is left out as under MindSpore's "
      "DynamicLossScaleManager. 1: none, a gradient too large travels as 65504.",
      [](const JsonValue& value, TrainText* spec) {
        spec->loss_scale = value.kind == JsonValue::Kind::kText ? kDynamicScale : value.number;
      },
      [](const TrainSpec& spec) {
        return spec.loss_scale == kDynamicScale ? JsonValue::Text("dynamic")
                                                : PrintValue(spec.loss_scale);
      },
      Checked{"a power of two from 1 to 16777216, or dynamic",
              [](const JsonValue& value) {
                if (value.kind == JsonValue::Kind::kText) return value.text == "dynamic";
                const double scale = value.number;
                return scale >= 1 && scale <= kMost && std::exp2(std::ilogb(scale)) == scale;
              }},
      kPrintedUnlessDefault, kMayChange);
}

// Adds what may be done about pushes whose rows are old.
void AddStaleness(SettingTable<TrainText>* train) {
  const auto without_sync = Where(&TrainSpec::mode, {Mode::kAsync, Mode::kSsp});
  train->Add("max_staleness", &TrainSpec::max_staleness,
             "A server leaves out the gradients of a push whose rows are older than this, in "
             "clocks: updates made since the rows were read, divided by the number of workers. The "
             "worker is told, and its examples count as dropped. 0: none are left out.",
             Range{0, 1e6}, without_sync, kPrintedUnlessDefault, kMayChange);
  train->Add("delay_compensation", &TrainSpec::delay_compensation,
             "The lambda of delay-compensated updates (Zheng and others, 2017): a gradient g "
             "computed from old rows becomes g + lambda g g (rows now - rows then) before the "
             "optimizer has it. For sgd, momentum, adagrad, rowwise_adagrad, adam, lazy_adam and "
             "adamw at servers, which keep the rows of the steps under way for it. 0: none.",
             Range{0, 1e6}, without_sync, kPrintedUnlessDefault, kMayChange);
  train->Add("staleness_rate", &TrainSpec::staleness_rate,
             "The learning rate of a push is divided by the number of updates that its rows lack "
             "(Zhang and others, 2016): by 1 where they lack none or one.",
             without_sync, kPrintedUnlessDefault, kMayChange);
}

Section TrainSection() {
  SettingTable<TrainText> train("train", "train");
  train.Add("mode", &TrainSpec::mode,
            "sync: one combined update a step. async: each worker's as it comes. ssp: async, no "
            "worker more than the bound ahead. Dense layers under parallel.dense_exchange = "
            "allreduce have one combined update a step in all three.",
            kMayChange);
  train.Add("staleness_bound", &TrainSpec::staleness_bound, "In steps; ssp with 0 is sync.",
            Where(&TrainSpec::mode, {Mode::kSsp}), kMayChange);
  AddStaleness(&train);
  train.Add("batch_size", &TrainSpec::batch_size, "Examples of one step over all workers.",
            Range{1, 16777216}, kMayChange);
  train.Add(
      "last_batch", &TrainSpec::last_batch,
      "Where the rows of an epoch are no multiple of batch_size. short: the last step has what "
      "is left, and each row is trained once. filled: it is filled up with the rows that the "
      "epoch began with, which are trained twice, so a worker has as many rows in it as in any "
      "other step, as MindSpore's samplers do.",
      kPrintedUnlessDefault, kMayChange);
  train.Add("epochs", &TrainSpec::epochs, "Passes over the training data.", Range{1, 1e6},
            Hashed::kDefault);
  train.Add("max_steps", &TrainSpec::max_steps, "0: as many as the epochs have.", Range{0, 9e15},
            Hashed::kDefault);
  train.Add("micro_batches", &TrainSpec::micro_batches,
            "Parts a worker cuts its batch into, summed before the push; at most batch_size.",
            Range{1, 65536}, kExpert, kMayChange);
  train.Add("lookahead", &TrainSpec::lookahead,
            "Steps whose rows a worker asks for before their turn; 1 pays where rows take as long "
            "to come as a step takes to compute, as over a thin link. sync: what changes meanwhile "
            "is asked for again, the result is the same. async and ssp: such rows may lack as many "
            "of the worker's own steps.",
            Range{0, 16}, kMayChange);
  train.Add("eval_each_epoch", &TrainSpec::eval_each_epoch, "Otherwise only at the end.",
            Hashed::kDefault);
  train.Add("eval_every_steps", &TrainSpec::eval_every_steps,
            "Evaluate after every so many steps as well, as within a long epoch; 0: do not. "
            "Training waits meanwhile, and its result stays the same.",
            Range{0, 9e15}, Hashed::kNothing);
  train.Add("log_every_steps", &TrainSpec::log_every_steps,
            "Every so many steps worker 0 prints \"epoch: 1 step: 100, loss is 0.4514\" on stderr "
            "and into its log: the step counted in its epoch, both from 1, and the mean loss of "
            "its own examples of that step, as MindSpore's LossMonitor does; 0: never.",
            Range{0, 9e15}, Hashed::kNothing, kPrintedUnlessDefault);
  train.AddObject("schedule", &TrainText::schedule, ScheduleSection(),
                  "How learning rates change with the step: of every table and of the dense "
                  "layers, as far as they are given none of their own.",
                  kPrintedUnlessDefault, kMayChange);
  train.Add("clip_value", &TrainSpec::clip_value,
            "Each element of a step's gradient, combined over the workers, scaled and with the "
            "penalties of the loss, is kept within +-this; 0: any. PyTorch's clip_grad_value_.",
            Range{0, 1e9}, kPrintedUnlessDefault, kMayChange);
  train.Add("clip_norm", &TrainSpec::clip_norm,
            "The norm of all gradients of a step, of all tables and dense layers together, "
            "combined, scaled and with the penalties of the loss, is kept below this, as PyTorch's "
            "clip_grad_norm_ does; 0: any. In sync mode it costs a round trip to the servers each "
            "step. In async and ssp it is the norm of each worker's own push, without penalties. "
            "clip_value then looks at what is left.",
            Range{0, 1e9}, kPrintedUnlessDefault, kMayChange);
  AddLossScale(&train);
  AddEvaluations(&train);
  train.Add("cache_refresh_steps", &TrainSpec::cache_refresh_steps,
            "With vocab_cache_size: steps between two choices of the rows; 0: 4, 12, 48, ... up to "
            "4096.",
            Range{0, 9e15}, kExpert, Hashed::kDefault);
  return train.Done();
}

// Adds a setting that is a word, or tuples in its place.
void AddDatasetStrategy(SettingTable<ParallelSpec>* parallel) {
  std::vector<std::string> words;
  for (const auto& word : WordsOf(DatasetStrategy())) words.emplace_back(word.word);
  parallel->AddConverted(
      "dataset_strategy", ValueKind::kTuples,
      "full_batch: every worker gets the whole batch. Tuples, one for the sparse features and if "
      "wanted one for the numeric columns, cut the batch of all workers: [[4, 1]] the examples in "
      "four parts, [[1, 4]] the features; at most one axis of an input, and not under "
      "parallel_mode data_parallel. A single tuple of a job without sparse features is that of the "
      "numeric columns; that of images may name their axes, [1, 1, 1, 8].",
      [](const JsonValue& value, ParallelSpec* spec) {
        if (value.kind == JsonValue::Kind::kList) return ReadValue(value, &spec->dataset_slices);
        ReadValue(value, &spec->dataset_strategy);
      },
      [](const ParallelSpec& spec) {
        return spec.dataset_slices.empty() ? PrintValue(spec.dataset_strategy)
                                           : PrintValue(spec.dataset_slices);
      },
      Range{1, 4096}, OrWord{words}, kMayChange);
}

void AddCopies(SettingTable<ParallelSpec>* parallel) {
  parallel->Add(
      "interleave_num", &ParallelSpec::interleave_num,
      "Copies of the model that take turns in one step, MindSpore's "
      "MicroBatchInterleaved: copy i has the rows of a worker's B from i B / "
      "interleave_num on. In sync mode rows of a copy come, and its gradients leave, while "
      "others are computed. What layers exchange for one copy has the time in which the "
      "others compute; where no layer exchanges anything, copies are computed one after "
      "the other. At most a worker's rows.",
      Range{1, 65536}, kPrintedUnlessDefault, kMayChange);
  parallel->Add("loss_sum", &ParallelSpec::loss_sum,
                "The loss of training that is told is the sum of the copies' mean losses, as "
                "MindSpore's MicroBatchInterleaved gives it, not the mean over all rows. What is "
                "trained is the same.",
                Hashed::kNothing, kPrintedUnlessDefault);
}

// Leaves the exchange open where a search chooses it. Settings that count only under allreduce are
// read meanwhile.
void OpenExchange(const JsonValue& value, ParallelSpec* spec) {
  const JsonValue* mode = value.Find("parallel_mode");
  spec->exchange_open = mode != nullptr && mode->text == WordOf(ParallelMode::kAuto) &&
                        value.Find("dense_exchange") == nullptr;
  if (spec->exchange_open) spec->dense_exchange = DenseExchange::kAllreduce;
}

Section ParallelSection() {
  SettingTable<ParallelSpec> parallel("parallel", "parallel");
  parallel.BeforeReading(OpenExchange);
  parallel.Add("parallel_mode", &ParallelSpec::parallel_mode,
               "stand_alone: one worker. data_parallel: each computes the whole model on its rows. "
               "hybrid_parallel: layers lie over the workers as their `shard` and "
               "parallel.blocks say, the others data parallel. semi_auto_parallel: from what "
               "these say the rest is derived. auto_parallel: it is searched, and dense_exchange "
               "with it.",
               HashedAs{JsonValue::Text("data_parallel")});
  parallel.Add("device_num", &ParallelSpec::device_num, "Workers; not given: as many as join.",
               Range{1, 4096}, kNoDefault, kPrintedUnlessDefault, kMayChange);
  parallel.Add(
      "global_rank", &ParallelSpec::global_rank,
      "The rank that a worker asks for, below the number of workers; its flag --rank says "
      "the same. Each worker has another, so it stands in the worker's own command: "
      "--set=parallel.global_rank=2. Not given: the scheduler picks one. The scheduler and "
      "hdps train take no notice, and warn.",
      Range{0, 4095}, Hashed::kNothing, kNoDefault, kPrintedUnlessDefault);
  parallel.Add("gradients_mean", &ParallelSpec::gradients_mean,
               "true: the mean over all examples of the step, so the number of workers changes "
               "nothing. false, MindSpore's own default: the sum over workers of their means, as "
               "if the learning rate were that many times higher.",
               kMayChange);
  parallel.Add("cross_batch", &ParallelSpec::cross_batch,
               "Each worker's mean counts the same, whatever its rows.",
               Where(&ParallelSpec::gradients_mean, {true}), kMayChange);
  AddDatasetStrategy(&parallel);
  parallel.AddSpelling("full_batch", ValueKind::kBool,
                       "true is another way to say dataset_strategy = full_batch.",
                       [](const JsonValue& value, ParallelSpec* spec) {
                         if (value.boolean) spec->dataset_strategy = DatasetStrategy::kFullBatch;
                       });
  parallel.Add(
      "dense_exchange", &ParallelSpec::dense_exchange,
      "How gradients of dense layers meet. In async and ssp an allreduce makes the workers take "
      "each step together; rows of tables still change as pushes come. Not given under "
      "auto_parallel: chosen by the costs, for device_num workers.",
      kMayChange);
  parallel.Add("collective", &ParallelSpec::collective,
               "auto: nccl with a GPU per worker, else gloo.", OneOf{{"auto", "gloo", "nccl"}},
               Where(&ParallelSpec::dense_exchange, {DenseExchange::kAllreduce}), kMayChange);
  AddDenseExchange(&parallel);
  parallel.Add(
      "wire", &ParallelSpec::wire,
      "In which format weights pulled to train and gradients pushed travel between workers "
      "and servers, of all tables and of dense layers that servers hold. 16 bits halve the "
      "bytes; values are rounded to the nearest, servers add up and keep in 32 bits, "
      "evaluation and checkpoints see those. A value too large for fp16 travels as 65504, one "
      "that is no number still ends the job. What an allreduce moves stays in 32 bits, but for "
      "gradient_fp32_sync.",
      kPrintedUnlessDefault, kMayChange);
  AddCopies(&parallel);
  parallel.AddSpelling(
      "grad_accumulation_step", ValueKind::kInteger, "MindSpore's name of `train.micro_batches`.",
      [](const JsonValue&, ParallelSpec*) {}, Range{1, 65536});
  AddStrategySettings(&parallel);
  return parallel.Done();
}

namespace {

// Tells remote paths as rclone does: a colon after a slash does not make a path remote.
bool IsRemoteOrEmpty(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::kText) return false;
  const size_t colon = value.text.find(':', 1);
  return value.text.empty() || (colon != std::string::npos && value.text.find('/') > colon &&
                                !value.text.starts_with('-'));
}

}  // namespace

Section CheckpointSection() {
  SettingTable<CheckpointSpec> checkpoint("checkpoint", "checkpoint");
  checkpoint.Add("every_steps", &CheckpointSpec::every_steps,
                 "0: only at the end, when told to stop, and as the settings below say.",
                 Range{0, 9e15}, Hashed::kDefault);
  checkpoint.Add("delta_every_steps", &CheckpointSpec::delta_every_steps,
                 "Between those, so often only what changed since the last one is saved; when the "
                 "chain has 16 of these, or they are together half as long as the full one and "
                 "over 4 MiB, a full one takes the place of the next. 0: none.",
                 Range{0, 9e15}, Hashed::kNothing);
  checkpoint.Add(
      "every_seconds", &CheckpointSpec::every_seconds,
      "Also so many seconds after the last full one began, at the end of the step at "
      "hand; by the scheduler's clock. With `every_steps` whichever comes first. What is "
      "trained does not depend on it. 0: not by the clock.",
      Range{0, 4e9}, Hashed::kNothing, kPrintedUnlessDefault);
  checkpoint.Add("delta_every_seconds", &CheckpointSpec::delta_every_seconds,
                 "As `delta_every_steps`, so many seconds after the last one of either kind began. "
                 "0: not by the clock.",
                 Range{0, 4e9}, Hashed::kNothing, kPrintedUnlessDefault);
  checkpoint.Add("every_epochs", &CheckpointSpec::every_epochs,
                 "Also at the end of every so many epochs; 0: not because of an epoch's end.",
                 Range{0, 1e6}, Hashed::kNothing, kPrintedUnlessDefault);
  checkpoint.Add("keep_best", &CheckpointSpec::keep_best,
                 "Where there is data to evaluate: an evaluation with the best figure so far is "
                 "followed by a full one, which stays beside the newest until there is a better "
                 "one. The figure is that of train.early_stop where that is used, else the first "
                 "of train.metrics, or of those that are told where it is empty.",
                 Hashed::kNothing, kPrintedUnlessDefault);
  checkpoint.Add(
      "keep", &CheckpointSpec::keep,
      "Full ones, each with what was saved between it and the next; older ones are removed.",
      Range{1, 1000}, Hashed::kDefault);
  checkpoint.Add("retry_s", &CheckpointSpec::retry_s,
                 "The last save of a run is tried again for so long while it fails, as on a full "
                 "disk; a server waits as long for space for rows beyond `cluster.memory_limit`. "
                 "0: once.",
                 Range{0, 86400}, Hashed::kNothing);
  checkpoint.Add(
      "copy_to", &CheckpointSpec::copy_to,
      "Folder in object storage, REMOTE:PATH of rclone, to which each checkpoint is "
      "copied beside training; of this run alone. Credentials are rclone's. Empty: none.",
      Checked{"a folder of rclone's, REMOTE:PATH, or an empty text", IsRemoteOrEmpty},
      Hashed::kNothing, kPrintedUnlessDefault);
  checkpoint.Add("copy_wait_s", &CheckpointSpec::copy_wait_s,
                 "The end of a run waits at most so long for the last copy. 0: it does not.",
                 Range{0, 86400}, Hashed::kNothing, kPrintedUnlessDefault);
  return checkpoint.Done();
}

Section ClusterSection() {
  constexpr double kMsMax = 3.6e6, kSecondsMax = 86400;
  constexpr auto kDefault = Hashed::kDefault;
  SettingTable<ClusterSpec> cluster("cluster", "cluster");
  cluster.Add("shards", &ClusterSpec::shards, "A power of two; fixed for the life of a table.",
              Range{1, 65536});
  cluster.Add("heartbeat_ms", &ClusterSpec::heartbeat_ms,
              "Servers and workers tell the scheduler this often that they are alive.",
              Range{10, kMsMax}, kDefault);
  cluster.Add("dead_after_ms", &ClusterSpec::dead_after_ms,
              "A server or worker that was silent for so long counts as lost. At least twice "
              "heartbeat_ms.",
              Range{20, kMsMax}, HashedAs{JsonValue::Integer(10000)});
  cluster.Add("replace_after_s", &ClusterSpec::replace_after_s,
              "A lost server or worker may be replaced for so long by another process that joins. "
              "Then the servers that are left take over the lost one's shards.",
              Range{1, kSecondsMax}, Hashed::kNothing);
  cluster.Add("on_worker_loss", &ClusterSpec::on_worker_loss,
              "Without a replacement in replace_after_s: wait goes on waiting, shrink goes on with "
              "the workers that are left.",
              Hashed::kNothing);
  cluster.Add("replicas", &ClusterSpec::replicas,
              "Copies of each row on other servers, so that a lost server costs no step. Each push "
              "is sent on once more for each.",
              Range{0, 2}, Hashed::kNothing);
  cluster.Add(
      "balance", &ClusterSpec::balance,
      "auto: where the busiest server is over 1.3 times as busy as the mean for "
      "balance_after_s, some of its shards move to others while training goes on; not under "
      "memory_limit. off: they stay. Changes no result.",
      Hashed::kNothing, kPrintedUnlessDefault);
  cluster.Add("balance_after_s", &ClusterSpec::balance_after_s,
              "A server must be too busy for so long before its shards move, and twice as long "
              "passes between two moves.",
              Range{1, kSecondsMax}, Where(&ClusterSpec::balance, {Balance::kAuto}),
              Hashed::kNothing, kPrintedUnlessDefault);
  cluster.Add("scheduler_timeout_s", &ClusterSpec::scheduler_timeout_s,
              "Servers and workers go on for so long without the scheduler, then they end.",
              Range{1, kSecondsMax}, Hashed::kNothing);
  cluster.Add("rendezvous_timeout_s", &ClusterSpec::rendezvous_timeout_s,
              "The job ends when not all members have joined after this long.",
              Range{1, kSecondsMax}, kDefault);
  cluster.Add("request_retry_ms", &ClusterSpec::request_retry_ms,
              "A pull or push is sent again after this long.", Range{10, kMsMax}, kExpert,
              kDefault);
  cluster.Add("request_timeout_s", &ClusterSpec::request_timeout_s,
              "A pull or push is given up after this long; more than request_retry_ms.",
              Range{1, kSecondsMax}, kDefault);
  cluster.Add("pushes_in_flight_max", &ClusterSpec::pushes_in_flight_max,
              "A worker's unacknowledged pushes at one server.", Range{1, 1024}, kExpert, kDefault);
  cluster.Add("memory_limit", &ClusterSpec::memory_limit,
              "Of one server, for all it owns: rows beyond it go to disk. 0: what the machine has.",
              Bytes{0, 9e15}, kDefault);
  cluster.Add("join_tables", &ClusterSpec::join_tables,
              "Tables that are read by the same features, such as the wide and the deep part of a "
              "model, are found under one entry of a server's index, if their policies agree. "
              "Changes no result; false takes more memory and time.",
              kExpert, Hashed::kNothing, kPrintedUnlessDefault);
  cluster.Add(
      "spill_path", &ClusterSpec::spill_path,
      "Folder for those rows, emptied first; on a disk of the server's machine, and no other "
      "job's. Empty: below the run's --out, else below /tmp.",
      kDefault);
  return cluster.Done();
}

Section MakeJobSection(const JobRegistry& registry) {
  SettingTable<JobText> job("job", "The whole");
  job.Add("name", &JobText::name, "For people; shown in summaries and logs.", Hashed::kDefault);
  job.Add("seed", &JobText::seed, "Decides initial weights and the order of rows.");
  job.AddObject("data", &JobText::data, DataSection(),
                "What to read. May be left out under model.type tables.");
  job.AddObject("model", &JobText::model_text, ModelSection(registry), "What to train.", kRequired);
  job.AddObject("train", &JobText::train_text, TrainSection(), "How to train.");
  job.AddObject("parallel", &JobText::parallel, ParallelSection(),
                "How the work is split, in MindSpore's words.");
  job.AddObject("checkpoint", &JobText::checkpoint, CheckpointSection(), "What is kept for later.");
  job.AddObject("cluster", &JobText::cluster, ClusterSection(), "Shards, deadlines and windows.");
  return job.Done();
}

}  // namespace

// Describing some hundred settings takes longer than printing a job, so the section of the built-in
// registry, which never changes, is kept.
Section JobSection(const JobRegistry& registry) {
  if (&registry != &BuiltInRegistry()) return MakeJobSection(registry);
  static const Section& built_in = *new Section(MakeJobSection(registry));
  return built_in;
}

}  // namespace hdps
