// Follows a folder: what is wanted, how it is brought here, and what is told of it. What is asked
// of the version at hand is in served_answers.cc.
#include "tools/serve/versions/served_checkpoint.h"

#include <algorithm>
#include <utility>

#include "common/base/byte_count.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/platform/threads/thread_priority.h"
#include "tools/serve/versions/model_note.h"
#include "tools/serve/versions/version_loading.h"

namespace hdps {
namespace {

// Requests that hold a version which was replaced take milliseconds.
constexpr int64_t kFreeEveryMs = 10;

bool SameTensors(const std::vector<TensorNote>& here, const std::vector<TensorNote>& there) {
  return std::ranges::equal(here, there, [](const TensorNote& a, const TensorNote& b) {
    return a.name == b.name && a.datatype == b.datatype && a.width == b.width;
  });
}

}  // namespace

Refusal RefusalOf(Code code) {
  switch (code) {
    case Code::kCorruption:
      return Refusal::kDamaged;
    case Code::kInvalidArgument:
      return Refusal::kUnfit;
    case Code::kResourceExhausted:
      return Refusal::kMemory;
    default:
      return Refusal::kUnreadable;
  }
}

ServedCheckpoint::ServedCheckpoint(ServedOptions options, FileSystem& files, MonotonicClock& clock)
    : options_(std::move(options)),
      files_(files, options_.stop),
      clock_(clock),
      executor_(NewCallersExecutor(options_.threads)),
      source_(files_, options_.folder),
      wanted_(options_.wanted) {
  facts_.pinned = wanted_.step;
}

Result<std::unique_ptr<ServedCheckpoint>> ServedCheckpoint::Open(ServedOptions options,
                                                                 FileSystem& files,
                                                                 MonotonicClock& clock) {
  std::unique_ptr<ServedCheckpoint> opened(new ServedCheckpoint(std::move(options), files, clock));
  opened->Look();
  if (opened->files_.stopped()) {
    return Status(Code::kCancelled, opened->options_.folder + ": told to stop while it was loaded");
  }
  if (!files.Exists(opened->options_.folder)) {
    return Status(Code::kNotFound, opened->options_.folder + ": no such folder");
  }
  if (opened->Current() == nullptr) {
    std::string message = opened->options_.folder + ": there is no checkpoint that can be served";
    if (opened->options_.wanted.step != kNoClock) {
      message += " as step " + std::to_string(opened->options_.wanted.step);
    }
    for (const auto& refused : opened->refused_) message += "; " + refused.second;
    if (opened->refused_.empty()) message += ": steps there are " + ListedSteps(opened->steps());
    return Status(Code::kNotFound, message);
  }
  if (opened->options_.look_ms == 0) return opened;
  ServedCheckpoint* const model = opened.get();
  opened->follower_ = StartThread("follower", [model] { model->Follow(); });
  return opened;
}

ServedCheckpoint::~ServedCheckpoint() {
  files_.Stop();
  pause_.End();
  if (follower_) follower_->Join();
}

void ServedCheckpoint::Follow() {
  LowerThreadPriority();
  bool free = true;
  while (pause_.For(free ? options_.look_ms : kFreeEveryMs)) {
    Look();
    free = FreeRetired();
  }
}

ServedCheckpoint::Version ServedCheckpoint::CurrentVersion() const {
  MutexLock lock(mutex_);
  return current_;
}

Clock ServedCheckpoint::step() const { return Current()->step(); }

std::vector<Clock> ServedCheckpoint::steps() const {
  MutexLock lock(mutex_);
  return steps_;
}

VersionFacts ServedCheckpoint::facts() const {
  MutexLock lock(mutex_);
  return facts_;
}

Status ServedCheckpoint::Use(Clock step) {
  if (step != kNoClock && !source_.Has(step)) {
    return {Code::kNotFound, "the model " + note_.name + " has no version " + std::to_string(step) +
                                 "; expected newest or one of " + ListedSteps(steps())};
  }
  {
    MutexLock lock(mutex_);
    wanted_.step = step;
    facts_.pinned = step;
    again_ = true;
  }
  pause_.Cut();
  return {};
}

void ServedCheckpoint::Look() {
  const bool changed = source_.Look();
  const bool free = FreeRetired();
  WantedVersion wanted;
  {
    MutexLock lock(mutex_);
    steps_.assign(source_.clocks().rbegin(), source_.clocks().rend());
    if (at_hand_.clock != kNoClock && !std::ranges::binary_search(steps_, at_hand_.clock)) {
      steps_.insert(std::ranges::upper_bound(steps_, at_hand_.clock), at_hand_.clock);
    }
    wanted = wanted_;
    again_ = again_ || changed;
    // While a version is still asked that was replaced, there is no room for a third one.
    if (!again_ || !free) return;
    again_ = false;
  }
  TakeFirstOf(source_.Candidates(wanted, at_hand_.clock));
}

// Nothing older is taken in place of what was refused. If nothing was, all newer ones are gone: the
// run began anew.
void ServedCheckpoint::TakeFirstOf(const std::vector<Clock>& candidates) {
  bool refused = false;
  for (const Clock clock : candidates) {
    if (refused && clock <= at_hand_.clock) return;
    VersionSource::ChainStamps before = source_.StampsOf(clock);
    const Status taken = Take(clock);
    if (taken.ok() || files_.stopped()) return;
    // It is being removed, and no newer one needs it.
    if (!source_.Has(clock)) continue;
    NoteRefused(clock, taken);
    source_.NoteRefused(clock, std::move(before));
    refused = true;
  }
}

// A delta reads a part of what the whole chain reads, and needs memory for its own rows in place of
// a second model. So deltas are applied wherever they lead to the wanted version. If a setting
// changed with one of them, rows may be read otherwise, and the checkpoint is loaded beside. So it
// is with mapped rows, of which those that a delta replaced would still take their room.
Status ServedCheckpoint::Take(Clock clock) {
  HDPS_ASSIGN_OR_RETURN(const VersionMark mark, source_.MarkOf(clock));
  if (mark == at_hand_) return {};
  if (options_.memory_limit == 0 && at_hand_.clock != kNoClock) {
    const std::vector<CheckpointPart> deltas = source_.DeltasFrom(at_hand_, clock);
    const std::string& job = Current()->checkpoint().manifest.job_json;
    const bool same = std::ranges::all_of(
        deltas, [&](const CheckpointPart& part) { return part.manifest.job_json == job; });
    if (!deltas.empty() && same) return ApplyDeltas(deltas);
  }
  return LoadBeside(clock, mark);
}

Status ServedCheckpoint::ApplyDeltas(const std::vector<CheckpointPart>& deltas) {
  for (const CheckpointPart& delta : deltas) {
    const int64_t began_ns = clock_.NowNs();
    HDPS_RETURN_IF_ERROR(ApplyDelta(delta));
    at_hand_ = {delta.manifest.clock, ManifestChecksum(delta.manifest)};
    NoteTaken(&VersionFacts::deltas, BytesOf({delta}), began_ns);
  }
  return {};
}

// The further outputs of a two_tower model are computed before the delta is seen, from the rows
// that it has staged, and are seen with it.
Status ServedCheckpoint::ApplyDelta(const CheckpointPart& delta) {
  const Version now = CurrentVersion();
  if (now.towers == nullptr) return now.scorer->Apply(delta);
  std::shared_ptr<TowerOutputs> towers;
  DeltaHooks hooks;
  hooks.staged = [&]() -> Status {
    HDPS_ASSIGN_OR_RETURN(towers, TowerOutputs::New(files_, *now.scorer, options_.items, *executor_,
                                                    RowView::kStaged));
    return {};
  };
  hooks.published = [&] {
    MutexLock lock(mutex_);
    std::swap(current_.towers, towers);
  };
  HDPS_RETURN_IF_ERROR(now.scorer->Apply(delta, hooks));
  retired_.push_back({nullptr, std::move(towers)});
  return {};
}

// All bytes are checked as they are read.
Result<std::shared_ptr<RowScorer>> ServedCheckpoint::Load(const FoundCheckpoint& found) {
  std::unique_ptr<RowScorer> loaded;
  if (options_.memory_limit > 0) {
    // Mapped rows of the version that answers are read from their files again when they are needed.
    if (const std::shared_ptr<RowScorer> before = Current()) before->loaded().DropMapped();
    const std::string scratch =
        JoinPath(options_.scratch, CheckpointName(found.manifest.clock) + "_" +
                                       std::to_string(ManifestChecksum(found.manifest)));
    HDPS_ASSIGN_OR_RETURN(
        loaded, RowScorer::OpenOnDisk(files_, found, options_.unknown, options_.memory_limit,
                                      scratch, *executor_));
    loaded->loaded().KeepMemoryBelow(options_.memory_limit, files_.lasting());
    return std::shared_ptr<RowScorer>(std::move(loaded));
  }
  HDPS_ASSIGN_OR_RETURN(const ServingNeed need, NeedThatFits(files_, found));
  Tell("step " + std::to_string(found.manifest.clock) + " is loaded: " + std::to_string(need.rows) +
       " rows, whose weights and keys take " + ShowByteCount(need.bytes));
  HDPS_ASSIGN_OR_RETURN(
      loaded, RowScorer::Open(files_, found, options_.unknown, RowForm::kFlat, *executor_));
  return std::shared_ptr<RowScorer>(std::move(loaded));
}

Status ServedCheckpoint::LoadBeside(Clock clock, const VersionMark& mark) {
  const int64_t began_ns = clock_.NowNs();
  FoundCheckpoint found;
  found.folder = source_.FolderOf(clock);
  HDPS_ASSIGN_OR_RETURN(found.chain, ReadChain(files_, found.folder));
  found.manifest = found.chain.back().manifest;
  const std::shared_ptr<RowScorer> before = Current();
  if (before != nullptr) {
    HDPS_RETURN_IF_ERROR(CheckOfServedJob(before->job(), found.manifest));
  }
  Version version;
  HDPS_ASSIGN_OR_RETURN(version.scorer, Load(found));
  HDPS_RETURN_IF_ERROR(WarmUp(sample_, before.get(), version.scorer.get()));
  if (HasTowers(version.scorer->job()) || !options_.items.files.empty()) {
    HDPS_ASSIGN_OR_RETURN(version.towers,
                          TowerOutputs::New(files_, *version.scorer, options_.items, *executor_));
  }
  HDPS_RETURN_IF_ERROR(SetOrCompareNote(version, before == nullptr));
  {
    MutexLock lock(mutex_);
    std::swap(current_, version);
  }
  if (before != nullptr) retired_.push_back(std::move(version));
  at_hand_ = mark;
  NoteTaken(&VersionFacts::whole, BytesOf(found.chain), began_ns);
  return {};
}

bool ServedCheckpoint::FreeRetired() {
  // Nobody new can hold one of these, so a count of one is ours and stays.
  std::erase_if(retired_, [](const Version& version) {
    return version.scorer.use_count() <= 1 && version.towers.use_count() <= 1;
  });
  return retired_.empty();
}

Status ServedCheckpoint::SetOrCompareNote(const Version& version, bool first) {
  const Job& job = version.scorer->job();
  HDPS_ASSIGN_OR_RETURN(ModelNote note, NoteOf(options_.name.empty() ? job.name : options_.name,
                                               job, version.scorer->columns()));
  if (version.towers != nullptr) version.towers->AddNotes(&note.outputs);
  std::vector<std::string> features = FeaturesOf(job.data).sparse;
  if (first) {
    note_ = std::move(note);
    features_ = std::move(features);
    return {};
  }
  if (SameTensors(note.inputs, note_.inputs) && SameTensors(note.outputs, note_.outputs) &&
      features == features_) {
    return {};
  }
  return {Code::kInvalidArgument,
          "its inputs, outputs or features are others; expected those of the version that answers"};
}

void ServedCheckpoint::Tell(const std::string& what) const {
  if (!options_.tell) return;
  const std::string& name = note_.name.empty() ? options_.folder : note_.name;
  options_.tell("model " + name + ": " + what);
}

void ServedCheckpoint::NoteTaken(VersionFacts::Refreshes VersionFacts::*kind, uint64_t bytes,
                                 int64_t began_ns) {
  const int64_t now_ns = clock_.NowNs();
  {
    MutexLock lock(mutex_);
    facts_.step = at_hand_.clock;
    facts_.taken_ms = clock_.NowMs();
    VersionFacts::Refreshes& refreshes = facts_.*kind;
    ++refreshes.count;
    refreshes.bytes += bytes;
    refreshes.ns += now_ns - began_ns;
  }
  std::erase_if(refused_, [this](const auto& one) { return one.first <= at_hand_.clock; });
  source_.ForgetRefused(at_hand_.clock);
  Tell("step " + std::to_string(at_hand_.clock) + " answers; " + ShowByteCount(bytes) +
       " were read in " + std::to_string((now_ns - began_ns) / 1'000'000) + " ms");
}

void ServedCheckpoint::NoteRefused(Clock clock, const Status& why) {
  const std::string text = source_.FolderOf(clock) + ": " + why.message();
  const Refusal reason = RefusalOf(why.code());
  const bool first = refused_.insert({clock, text}).second;
  {
    MutexLock lock(mutex_);
    // What these lack may be there soon, while the folder stays as it is.
    again_ = again_ || reason == Refusal::kMemory || reason == Refusal::kUnreadable;
    if (first) ++facts_.refused[static_cast<size_t>(reason)];
  }
  if (!first) return;
  const std::string goes_on =
      at_hand_.clock == kNoClock ? "" : "; step " + std::to_string(at_hand_.clock) + " goes on";
  Tell("step " + std::to_string(clock) + " is refused, " + std::string(WordOf(reason)) + ": " +
       text + goes_on);
}

}  // namespace hdps
