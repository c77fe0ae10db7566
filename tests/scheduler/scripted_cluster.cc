// Implements the members' script: workers count steps, servers write four bytes per shard.
#include "tests/scheduler/scripted_cluster.h"

#include <gtest/gtest.h>

#include <span>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/job_file.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/manifest.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

constexpr TimeMs kTurnMs = 20;
constexpr uint64_t kExamplesPerStep = 8;

void WriteFile(FileSystem& files, const std::string& path, const std::string& text) {
  std::unique_ptr<WritableFile> file = *files.Create(path);
  ASSERT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
  ASSERT_TRUE(file->Close().ok());
}

// Two examples per worker; worker 1 ranks its own in the wrong order.
void Score(uint32_t rank, CommandDone* done) {
  const std::vector<float> scores = {0.25f, rank == 1 ? 0.125f : 0.75f}, labels = {0, 1};
  done->scores = Buffer::CopyOf(std::span<const float>(scores));
  done->labels = Buffer::CopyOf(std::span<const float>(labels));
  done->examples = 2;
  done->loss_sum = 1;
}

}  // namespace

Job ScriptedJob() {
  Job job;
  job.name = "scripted";
  job.data.train = {"train.csv"};
  job.data.eval = {"eval.csv"};
  job.train.epochs = 2;
  job.train.batch_size = 16;
  job.checkpoint.keep_best = false;  // early_stop_test covers these saves.
  job.cluster.shards = 4;
  job.cluster.heartbeat_ms = 100;
  job.cluster.dead_after_ms = 1000;
  job.cluster.rendezvous_timeout_s = 30;
  return job;
}

ScriptedCluster::ScriptedCluster(const ScriptedOptions& options, FileSystem& files)
    : options_(options), files_(files) {
  StartScheduler(/*same_run=*/false);
  if (!options.with_members) return;
  for (uint32_t s = 0; s < options.num_servers; ++s) {
    Add(Role::kServer, std::string("server ") + static_cast<char>('a' + s));
  }
  for (uint32_t w = 0; w < options.num_workers; ++w) {
    Add(Role::kWorker, std::string("worker ") + static_cast<char>('a' + w));
  }
}

void ScriptedCluster::StartScheduler(bool same_run) {
  node.reset();
  const ScriptedOptions& options = options_;
  SchedulerOptions scheduler;
  scheduler.boot = boot;
  scheduler.same_run = same_run;
  scheduler.job = std::make_shared<const Job>(options.job);
  scheduler.out = "out";
  scheduler.num_servers = options.num_servers;
  scheduler.num_workers = options.num_workers;
  scheduler.resume = options.resume;
  scheduler.members_return = options.members_return;
  scheduler.guests_read = options.guests_read;
  scheduler.pictures = options.pictures;
  scheduler.started_at = now;
  ProgressListener voice;
  voice.notice = [this](const std::string& line) { notices.push_back(line); };
  Result<std::unique_ptr<SchedulerNode>> made =
      SchedulerNode::Make(scheduler, std::move(voice), files_);
  EXPECT_TRUE(made.ok()) << made.status().message();
  node = *std::move(made);
}

ScriptedMember& ScriptedCluster::Add(Role role, const std::string& name, int32_t rank,
                                     const std::function<void(MembershipOptions&)>& change) {
  MembershipOptions options;
  options.role = role;
  options.identity.self = {100 + members_.size()};
  options.identity.rank = rank;
  options.identity.scheduler_address = "inproc://scheduler";
  if (role == Role::kServer) options.identity.own_address = "inproc://" + name;
  options.job_digest = JobDigest(options_.job);
  options.identity.host = name;
  options.heartbeat_ms = options_.job.cluster.heartbeat_ms;
  options.scheduler_timeout_ms = 40 * TimeMs{options_.job.cluster.dead_after_ms};
  if (change) change(options);
  members_.push_back(std::make_unique<ScriptedMember>(options, name));
  return *members_.back();
}

ScriptedMember& ScriptedCluster::member(const std::string& name) {
  for (const std::unique_ptr<ScriptedMember>& member : members_) {
    if (member->called == name) return *member;
  }
  ADD_FAILURE() << "no member is called " << name;
  return *members_.front();
}

void ScriptedCluster::Turn() {
  now += kTurnMs;
  if (!standing_still_) node->OnTick(now);
  DeliverFromScheduler();
  for (size_t i = 0; i < members_.size(); ++i) {
    ScriptedMember& member = *members_[i];
    member.client.OnTick(now);
    if (!member.mute) {
      for (const Command& command : member.client.TakeCommands()) CarryOut(member, command);
      Train(member);
    }
    Heartbeat progress;
    progress.clock = member.clock;
    progress.examples = static_cast<uint64_t>(member.clock) * kExamplesPerStep;
    progress.loss_sum = static_cast<double>(member.clock);
    progress.finished = member.finishes_at && member.clock >= *member.finishes_at;
    progress.wants_checkpoint = member.wants_checkpoint;
    member.client.Report(progress);
    DeliverToScheduler(member);
  }
  DeliverFromScheduler();
}

void ScriptedCluster::StandStill(TimeMs ms) {
  standing_still_ = true;
  for (const TimeMs end = now + ms; now < end;) Turn();
  standing_still_ = false;
  node->OnTick(now);
  for (auto& [from, frame] : std::exchange(unheard_, {})) node->OnFrame(from, std::move(frame));
}

bool ScriptedCluster::RunUntil(const std::function<bool()>& what, TimeMs ms) {
  for (const TimeMs end = now + ms; now < end; Turn()) {
    if (what()) return true;
  }
  return false;
}

void ScriptedCluster::DeliverToScheduler(ScriptedMember& member) {
  for (Outgoing& outgoing : member.client.TakeOutput().frames) {
    if (member.cut_off) continue;
    if (standing_still_) {
      unheard_.emplace_back(member.self, std::move(outgoing.frame));
    } else {
      node->OnFrame(member.self, std::move(outgoing.frame));
    }
  }
}

void ScriptedCluster::DeliverFromScheduler() {
  for (const Outgoing& outgoing : node->TakeOutput().frames) {
    for (const std::unique_ptr<ScriptedMember>& member : members_) {
      if (member->self == outgoing.to && !member->cut_off && !member->deaf) {
        member->client.OnFrame(kSchedulerPeer, outgoing.frame);
      }
    }
  }
}

void ScriptedCluster::Note(const ScriptedMember& member, const Command& command) {
  std::string line = member.called + ": ";
  switch (command.command) {
    case CommandKind::kInitDense:
      line += "init";
      break;
    case CommandKind::kLoad:
      line += "load " + command.path + " at " + std::to_string(command.until);
      break;
    case CommandKind::kTrain:
      line += "train" + (command.until > 1000000 ? "" : " to " + std::to_string(command.until)) +
              ", epoch " + std::to_string(command.epoch) + " from " +
              std::to_string(command.epoch_start);
      if (command.begun) line += ", begun at " + std::to_string(command.since);
      if (command.rate != 1) line += ", rate " + ShowNumber("%g", command.rate);
      break;
    case CommandKind::kPause:
      line += "pause";
      break;
    case CommandKind::kStoreDense:
      line += "store dense";
      break;
    case CommandKind::kEvaluate:
      line += "evaluate" + (command.eval_set.empty() ? "" : " " + command.eval_set);
      break;
    case CommandKind::kSave:
      line += "save " + command.path;
      if (command.since > 0) line += " since " + std::to_string(command.since);
      break;
    case CommandKind::kAwaitSaved:
      line += "await saved " + std::to_string(command.until);
      break;
    case CommandKind::kDigest:
      line += "digest";
      break;
    case CommandKind::kEvict:
      line += "evict";
      break;
    case CommandKind::kSaveAhead:
      line += "save ahead";
      break;
    case CommandKind::kLoadAhead:
      line += "load ahead";
      break;
    case CommandKind::kFinish:
      line += "finish";
      break;
  }
  lines_.push_back(line);
}

void ScriptedCluster::CarryOut(ScriptedMember& member, const Command& command) {
  Note(member, command);
  if (answer) {
    if (std::optional<CommandDone> other = answer(member, command)) {
      other->id = command.id;
      return member.client.Answer(*other);
    }
  }
  CommandDone done;
  switch (command.command) {
    case CommandKind::kTrain:
      member.training = command;
      if (command.begun) member.clock = reached_[member.client.rank()];
      member.trains_from = member.clock;
      member.pause = false;
      return;
    case CommandKind::kPause:
      member.pause = true;
      break;
    case CommandKind::kLoad:
      done.clock = std::exchange(member.clock, command.until);
      if (member.client.view() != nullptr) reached_[member.client.rank()] = command.until;
      break;
    case CommandKind::kEvaluate:
      Score(member.client.rank(), &done);
      break;
    case CommandKind::kSave:
      done = Save(member, command);
      break;
    case CommandKind::kDigest:
      done.digest[0] = 5 + member.client.rank();
      done.digest[1] = ~uint64_t{0};  // Makes the sums wrap around.
      done.rows = 3;
      break;
    default:
      break;
  }
  done.id = command.id;
  if (command.command != CommandKind::kLoad) done.clock = member.clock;
  member.client.Answer(done);
}

void ScriptedCluster::Train(ScriptedMember& member) {
  if (!member.training) return;
  const Command& command = *member.training;
  const bool end = member.clock == command.epoch_start + options_.steps_per_epoch;
  if (!end && !member.pause && member.clock < command.until) {
    ++member.clock;
    if (!member.cut_off) reached_[member.client.rank()] = member.clock;
    return;
  }
  CommandDone done;
  done.id = command.id;
  done.clock = member.clock;
  done.end_of_epoch = end;
  done.examples = kExamplesPerStep;
  done.loss_sum = 4;
  done.bad_rows = 1;
  if (options_.reads_topic) {
    const uint32_t rank = member.client.rank();
    int64_t next = 1000 * (rank + 1);
    for (const PartitionOffset& at : command.offsets) {
      if (at.partition == rank) next = at.next;
    }
    done.offsets = {{rank, next + (member.clock - member.trains_from)}};
  }
  member.training.reset();
  member.client.Answer(done);
}

CommandDone ScriptedCluster::Save(ScriptedMember& server, const Command& command) {
  CommandDone done;
  for (const ShardId shard : server.client.view()->shards.ShardsOf({server.client.rank()})) {
    const bool changes = command.since > 0;
    const std::string name = "shard_" + std::to_string(shard.value) + (changes ? kDeltaEnding : "");
    WriteFile(files_, JoinPath(command.path, name), std::string(10, 'r'));
    done.files.push_back(*ChecksumFile(files_, command.path, name));
  }
  return done;
}

std::string ScriptedCluster::transcript() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  return text;
}

bool ScriptedCluster::Noticed(const std::string& part) const {
  for (const std::string& notice : notices) {
    if (notice.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string ScriptedCluster::summary() const {
  const Result<std::string> text = ReadWholeFile(files_, "out/summary.json", 1u << 20);
  return text.ok() ? *text : "";
}

}  // namespace hdps
