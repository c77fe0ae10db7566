// Goes through the shards of a command, one after the other.
#include "server/groups/moves_ahead.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "embedding/snapshot/snapshot.h"

namespace hdps {

void MovesAhead::Advance(HostedGroups* groups) {
  while (true) {
    if (work_.running()) {
      if (!work_.TakeEnd()) return;
      EndPiece();
    }
    if (groups == nullptr) return;
    if (!current_) {
      if (waiting_.empty()) return;
      Begin(*groups);
    }
    if (!current_) continue;
    if (done_.code != Code::kOk || next_ == current_->shards.size()) {
      Finish();
    } else if (current_->command == CommandKind::kSaveAhead) {
      SaveNext(*groups);
    } else {
      LoadNext(*groups);
    }
  }
}

void MovesAhead::Begin(HostedGroups& groups) {
  current_ = std::move(waiting_.front());
  waiting_.pop_front();
  next_ = 0;
  done_ = {};
  done_.id = current_->id;
  dropped_ = false;
  if (current_->command == CommandKind::kLoadAhead) {
    if (current_->shards.empty()) arrived_.clear();
    return;
  }
  done_.clock = groups.finished();
  if (done_.clock == 0) {
    Fail({Code::kUnavailable, "no step has been finished yet"});
  } else if (done_.clock <= current_->since) {
    done_.clock = current_->since;  // No step was finished since the last copy.
    next_ = current_->shards.size();
  }
}

void MovesAhead::SaveNext(HostedGroups& groups) {
  const ShardId id = current_->shards[next_];
  Shard* const shard = groups.FindOwn(id);
  if (shard == nullptr) {
    return Fail({Code::kNotFound, "shard " + std::to_string(id.value) + " is not here"});
  }
  CopyBudget budget(kAheadBytesMax);
  Result<std::optional<TakenSnapshot>> taken =
      shard->TakeMoved(done_.clock, current_->since, &budget);
  if (!taken.ok()) return Fail(taken.status());
  if (!taken->has_value()) {
    return Fail({Code::kResourceExhausted, "shard " + std::to_string(id.value) +
                                               " is too large to be copied, or partly on disk"});
  }
  copy_.clear();
  copy_.push_back(**std::move(taken));
  work_.Start(executor_, [this, folder = current_->path, view = current_->view] {
    Result<std::vector<SavedFile>> files =
        WritePack(files_, folder, view, copy_, Survives::kProcess);
    status_ = files.status();
    if (files.ok()) written_ = *std::move(files);
    copy_.clear();
  });
}

void MovesAhead::LoadNext(HostedGroups& groups) {
  const ShardId id = current_->shards[next_];
  const auto named = [&](const std::string& name) {
    return std::ranges::find(current_->files, name, &SavedFile::name);
  };
  const auto whole = named(SnapshotName(id)), changes = named(DeltaName(id));
  filled_ = {};
  if (whole != current_->files.end()) {
    filled_.shard = groups.NewShard(id);
  } else if (const auto at = arrived_.find(id); changes != current_->files.end() &&
                                                at != arrived_.end() &&
                                                at->second.clock == current_->since) {
    filled_ = std::move(at->second);
    arrived_.erase(at);
  }
  if (filled_.shard == nullptr) {
    return Fail({Code::kNotFound, "there is no copy of shard " + std::to_string(id.value)});
  }
  const bool is_whole = whole != current_->files.end();
  const SavedFile file = is_whole ? *whole : *changes;
  work_.Start(executor_, [this, is_whole, file, command = *current_] {
    status_ = is_whole ? filled_.shard->LoadCopy(files_, command.path, file, command.until)
                       : filled_.shard->LoadMoved(files_, command.path, file, command.until,
                                                  command.since);
  });
}

void MovesAhead::EndPiece() {
  if (dropped_) {
    filled_ = {};
    written_.clear();
    current_.reset();
    return;
  }
  if (!status_.ok()) return Fail(status_);
  const ShardId id = current_->shards[next_++];
  if (current_->command == CommandKind::kLoadAhead) {
    filled_.clock = current_->until;
    arrived_[id] = std::exchange(filled_, {});
    return;
  }
  for (SavedFile& file : written_) {
    done_.rows += file.rows;
    done_.files.push_back(std::move(file));
  }
  written_.clear();
}

void MovesAhead::Fail(const Status& why) {
  LOG(WARNING) << "rows do not move ahead: " << why.message();
  filled_ = {};
  done_.code = why.code();
  done_.message = why.message();
}

void MovesAhead::Finish() {
  answers_.push_back(std::move(done_));
  current_.reset();
}

std::optional<CommandDone> MovesAhead::TakeAnswer() {
  if (answers_.empty()) return std::nullopt;
  CommandDone done = std::move(answers_.front());
  answers_.pop_front();
  return done;
}

// Only a drop is still awaited by the scheduler: it forgets other commands before it drops them.
ArrivedShards MovesAhead::TakeArrived() {
  answers_.clear();
  for (const Command& command : std::exchange(waiting_, {})) {
    if (command.command != CommandKind::kLoadAhead || !command.shards.empty()) continue;
    CommandDone done;
    done.id = command.id;
    answers_.push_back(std::move(done));
  }
  dropped_ = work_.running();
  if (!dropped_) current_.reset();
  return std::exchange(arrived_, {});
}

}  // namespace hdps
