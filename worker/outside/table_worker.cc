// Checks what the caller gives, and passes it on.
#include "worker/outside/table_worker.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/metrics/metric.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/view.h"
#include "kernels/host/half_scale.h"
#include "worker/exchange/row_transfer.h"
#include "worker/outside/command_turns.h"
#include "worker/outside/step_gradients.h"
#include "worker/outside/table_exchange.h"

namespace hdps {
namespace {

Status Mistake(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

}  // namespace

struct TableWorker::Parts {
  Parts(const TableWorkerOptions& o, NodeChannel& c)
      : options(o), channel(c), exchange(o, c), turns(options, c, exchange) {
    if (options.give_up) channel.AskWhileWaiting(options.give_up);
  }

  const Job& job() const { return *options.job; }
  Status CheckStanding() const;
  Status CheckStep();  // Waits until a step may go on.
  Status CheckTable(TableId table) const;
  Status CheckAsked(std::span<const AskedKeys> asked) const;
  Status CheckRows(TableId table, std::span<const Key> keys, std::span<const float> rows) const;
  // Says what a wait for rows of the step waits for.
  Status WithGate(const Status& failure) const;

  const TableWorkerOptions options;
  NodeChannel& channel;
  TableExchange exchange;
  CommandTurns turns;
};

Status TableWorker::Parts::CheckStanding() const {
  if (turns.standing() == Standing::kSteps) return {};
  return {Code::kCancelled, turns.reason()};
}

Status TableWorker::Parts::CheckStep() {
  HDPS_RETURN_IF_ERROR(CheckStanding());
  HDPS_RETURN_IF_ERROR(turns.AwaitStep());
  if (!turns.evaluation_due()) return {};
  return Mistake("an evaluation is due at step " + std::to_string(turns.clock()) +
                 " (train.eval_every_steps); report its figures before the next step");
}

Status TableWorker::Parts::CheckTable(TableId table) const {
  if (table.value < job().tables.size() && !job().tables[table.value].dense) return {};
  std::string names;
  for (const TableSpec& spec : job().tables) {
    if (!spec.dense) names += (names.empty() ? "" : ", ") + spec.name;
  }
  return Mistake("there is no table number " + std::to_string(table.value) +
                 "; the tables of the job are " + names);
}

Status TableWorker::Parts::CheckAsked(std::span<const AskedKeys> asked) const {
  for (size_t i = 0; i < asked.size(); ++i) {
    HDPS_RETURN_IF_ERROR(CheckTable(asked[i].table));
    for (size_t other = 0; other < i; ++other) {
      if (asked[other].table != asked[i].table) continue;
      return Mistake("table '" + job().tables[asked[i].table.value].name +
                     "' is asked for twice in one pull; give all of its keys in one list");
    }
  }
  return {};
}

Status TableWorker::Parts::CheckRows(TableId table, std::span<const Key> keys,
                                     std::span<const float> rows) const {
  const TableSpec& spec = job().tables[table.value];
  const size_t wanted = keys.size() * spec.dim;
  if (rows.size() != wanted) {
    return Mistake("rows of table '" + spec.name + "' are " + std::to_string(rows.size()) +
                   " floats; " + std::to_string(keys.size()) + " keys of " +
                   std::to_string(spec.dim) + " floats are " + std::to_string(wanted));
  }
  if (!std::isfinite(LargestMagnitude(rows))) {
    return Mistake("a number in the rows of table '" + spec.name + "' is not finite");
  }
  std::vector<Key> sorted(keys.begin(), keys.end());
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return {};
  return Mistake("key " + std::to_string(*twice) + " of table '" + spec.name +
                 "' stands twice; a row is set once");
}

Status TableWorker::Parts::WithGate(const Status& failure) const {
  if (failure.code() != Code::kTimeout || job().train.mode == Mode::kAsync) return failure;
  return {failure.code(), failure.message() + "; the rows of step " +
                              std::to_string(turns.clock()) + " wait until every one of the " +
                              std::to_string(channel.view()->workers.size()) +
                              " workers has ended the steps before it (train.mode)"};
}

TableWorker::TableWorker(const TableWorkerOptions& options, NodeChannel& channel, MonotonicClock&)
    : parts_(std::make_unique<Parts>(options, channel)) {}
TableWorker::~TableWorker() = default;

Status TableWorker::Begin() {
  const Job& job = parts_->job();
  if (job.tables.size() < 2 || !job.tables.back().dense) {
    return Mistake("the job has no tables of model.type tables");
  }
  parts_->channel.board().Enter("join");
  if (parts_->channel.WaitForView() == nullptr) return parts_->turns.Await();
  HDPS_RETURN_IF_ERROR(parts_->turns.Await());
  parts_->turns.BeginSteps();
  return {};
}

Standing TableWorker::standing() const { return parts_->turns.standing(); }
const std::string& TableWorker::reason() const { return parts_->turns.reason(); }
Clock TableWorker::clock() const { return parts_->turns.clock(); }
uint32_t TableWorker::rank() const { return parts_->channel.rank().value; }
uint32_t TableWorker::workers() const {
  return static_cast<uint32_t>(parts_->channel.view()->workers.size());
}
const Job& TableWorker::job() const { return parts_->job(); }
bool TableWorker::evaluation_due() const { return parts_->turns.evaluation_due(); }
const std::optional<std::string>& TableWorker::restored() const { return parts_->turns.restored(); }
uint64_t TableWorker::copied_bytes() const { return parts_->exchange.copied_bytes(); }

Result<std::vector<PulledRows>> TableWorker::Pull(std::span<const AskedKeys> asked, PullFor use) {
  HDPS_RETURN_IF_ERROR(use == PullFor::kStep ? parts_->CheckStep() : parts_->CheckStanding());
  HDPS_RETURN_IF_ERROR(parts_->CheckAsked(asked));
  Result<std::vector<PulledRows>> pulled = parts_->exchange.Pull(asked, use, clock());
  if (pulled.ok()) return pulled;
  return parts_->turns.Judge(parts_->WithGate(pulled.status()));
}

Status TableWorker::Prefetch(std::span<const AskedKeys> asked) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStep());
  HDPS_RETURN_IF_ERROR(parts_->CheckAsked(asked));
  if (!asked.empty()) parts_->exchange.Prefetch(asked, clock());
  return {};
}

Status TableWorker::Push(const PulledRows& pulled, std::span<const float> gradients) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStep());
  HDPS_RETURN_IF_ERROR(parts_->CheckTable(pulled.table));
  return parts_->exchange.gradients().Push(pulled, gradients);
}

Status TableWorker::PushEach(const PulledRows& pulled, std::span<const float> gradients) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStep());
  HDPS_RETURN_IF_ERROR(parts_->CheckTable(pulled.table));
  return parts_->exchange.gradients().PushEach(pulled, gradients);
}

Status TableWorker::Push(TableId table, std::span<const Key> keys,
                         std::span<const float> gradients) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStep());
  HDPS_RETURN_IF_ERROR(parts_->CheckTable(table));
  return parts_->exchange.gradients().Push(table, keys, gradients);
}

Status TableWorker::Store(TableId table, std::span<const Key> keys, std::span<const float> rows) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStanding());
  HDPS_RETURN_IF_ERROR(parts_->CheckTable(table));
  HDPS_RETURN_IF_ERROR(parts_->CheckRows(table, keys, rows));
  const TableSpec& spec = job().tables[table.value];
  KeysOfTable of;
  of.table = table;
  of.shard_by = spec.shard_by;
  of.row_floats = spec.dim;
  of.keys = keys;
  return parts_->turns.Judge(StoreRows(parts_->channel, std::array{of}, clock(), std::array{rows}));
}

Status TableWorker::Advance(uint64_t examples) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStep());
  if (examples == 0) {
    if (!parts_->exchange.gradients().zero()) {
      return Mistake(
          "the step has gradients and 0 examples; give the number of examples that they are the "
          "mean over");
    }
    // A batch without examples has gradients of zero, which must not move a row by its momentum.
    GiveUpStep();
  }
  const Status pushed = parts_->exchange.Push(parts_->turns.NextStep(examples));
  if (!pushed.ok()) return parts_->turns.Judge(parts_->WithGate(pushed));
  return parts_->turns.EndStep(examples);
}

void TableWorker::GiveUpStep() { parts_->exchange.gradients().Clear(); }

Status TableWorker::WantCheckpoint(std::optional<std::string> state) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStep());
  parts_->turns.WantCheckpoint(std::move(state));
  return {};
}

Status TableWorker::Report(const OutsideFigures& figures) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStanding());
  if (!evaluation_due()) {
    return Mistake("no evaluation is due at step " + std::to_string(clock()) +
                   "; train.eval_every_steps says at which steps one is");
  }
  if (figures.size() > kFiguresMax) {
    return Mistake("there are " + std::to_string(figures.size()) + " figures; at most " +
                   std::to_string(kFiguresMax) + " may be");
  }
  for (const auto& [name, value] : figures) {
    if (!IsFigureName(name)) {
      return Mistake("'" + name +
                     "' cannot name a figure; a name is a letter and up to 63 letters, digits, _ "
                     "and @");
    }
    if (!std::isfinite(value)) {
      return Mistake("figure '" + name + "' is " + std::to_string(value) + ", which is not finite");
    }
  }
  return parts_->turns.AnswerEvaluation(figures);
}

Status TableWorker::Finish(const std::function<Result<OutsideFigures>()>& evaluate) {
  HDPS_RETURN_IF_ERROR(parts_->CheckStanding());
  GiveUpStep();
  Status status;
  while (status.ok()) {
    if (evaluation_due()) {
      Result<OutsideFigures> figures = OutsideFigures();
      if (evaluate) figures = evaluate();
      status = figures.ok() ? Report(*figures) : figures.status();
    }
    if (status.ok()) status = parts_->turns.FinishSteps();
  }
  return standing() == Standing::kEnded ? Status() : status;
}

void TableWorker::GoOn() {
  CHECK(standing() == Standing::kWentBack);
  parts_->turns.GoOn();
}

}  // namespace hdps
