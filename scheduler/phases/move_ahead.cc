// Sends copies in rounds, each of what changed since the one before.
#include "scheduler/phases/move_ahead.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/platform/file_identity.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/phases/move.h"

namespace hdps {
namespace {

// At least two rounds: the first has all rows and lasts, so much changes meanwhile.
constexpr uint32_t kRoundsMin = 2, kRoundsMax = 8;
constexpr uint64_t kLittleBytes = uint64_t{16} << 20;

}  // namespace

std::string MoveAhead::Folder() const { return MovesFolder(*parts_, next_->view) + "_ahead"; }

std::string MoveAhead::Begin(View next, Orders& orders) {
  const View& before = parts_->members.view();
  next_ = std::move(next);
  incoming_ = IncomingShards(before, *next_);
  std::set<ShardId> all;
  for (const auto& [peer, shards] : incoming_) all.insert(shards.begin(), shards.end());
  for (const ShardId shard : all) {
    leaving_[before.servers[before.shards.owner[shard.value].value].peer].push_back(shard);
  }
  Status made;  // The target of a link is left as it is.
  if (IsLink(parts_->files, Folder())) made = parts_->files.RemoveAll(Folder());
  if (made.ok()) made = parts_->files.MakeDirectories(Folder());
  if (!made.ok()) return made.message();
  SendSaves(orders);
  return "";
}

void MoveAhead::SendSaves(Orders& orders) {
  saves_ = true;
  saved_.clear();
  for (const auto& [server, shards] : leaving_) {
    Command save;
    save.command = CommandKind::kSaveAhead;
    save.path = Folder();
    save.shards = shards;
    save.since = round_ == 0 ? 0 : copies_.since.at(server);
    orders.Send({server}, save);
    ++open_;
  }
}

bool MoveAhead::SendLoads(Orders& orders) {
  saves_ = false;
  for (const auto& [server, done] : saved_) {
    if (done.files.empty()) continue;
    const std::vector<ShardId>& left = leaving_.at(server);
    for (const auto& [holder, shards] : incoming_) {
      Command load;
      load.command = CommandKind::kLoadAhead;
      load.path = Folder();
      load.until = done.clock;
      load.since = round_ == 0 ? 0 : copies_.since.at(server);
      load.files = done.files;
      for (const ShardId shard : shards) {
        if (std::ranges::count(left, shard) > 0) load.shards.push_back(shard);
      }
      if (load.shards.empty()) continue;
      orders.Send({holder}, load);
      ++open_;
    }
  }
  return open_ > 0;
}

std::string MoveAhead::OnAnswer(const Answer& answer, Orders& orders) {
  // The answer to a drop of an earlier move has no shards.
  if (!under_way() || open_ == 0 || answer.command.shards.empty()) return "";
  --open_;
  if (answer.done.code != Code::kOk) {
    return parts_->members.NameOf(answer.from) + ": " + answer.done.message;
  }
  if (answer.command.command == CommandKind::kSaveAhead) {
    if (answer.done.clock <= 0) {
      return parts_->members.NameOf(answer.from) + ": it copied rows of step " +
             std::to_string(answer.done.clock);
    }
    saved_[answer.from] = answer.done;
  }
  return open_ == 0 ? OnAllAnswered(orders) : "";
}

std::string MoveAhead::OnAllAnswered(Orders& orders) {
  if (saves_ && SendLoads(orders)) return "";
  uint64_t rows = 0, bytes = 0;
  const uint64_t before = std::exchange(round_bytes_, 0);
  for (const auto& [server, done] : saved_) {
    copies_.since[server] = done.clock;
    for (const SavedFile& file : done.files) rows += file.rows, bytes += file.bytes;
  }
  if (round_ == 0) copies_.rows = rows, copies_.bytes = bytes;
  round_bytes_ = bytes;
  ++round_;
  // Further rounds bring nothing where rows change about as fast as they are sent. Where they
  // change at three quarters of that speed, eight rounds leave a seventh of what the second one
  // has.
  const bool shrinks = bytes < before / 4 * 3;
  ready_ = round_ >= kRoundsMin && (bytes <= kLittleBytes || !shrinks || round_ == kRoundsMax);
  if (!ready_) SendSaves(orders);
  return "";
}

MoveAhead::Ready MoveAhead::Take() {
  Ready result{*std::move(next_), std::move(copies_)};
  Forget();
  return result;
}

void MoveAhead::Drop(Orders& orders) {
  Command drop;
  drop.command = CommandKind::kLoadAhead;
  for (const auto& [holder, shards] : incoming_) {
    if (parts_->members.Has(holder)) orders.Send({holder}, drop);
  }
  Forget();
}

}  // namespace hdps
