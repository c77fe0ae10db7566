// Applies the rules of scripts/local_cluster.sh, in its order.
#include "tests/sim/launcher.h"

#include <algorithm>

namespace hdps::sim {
namespace {

constexpr TimeMs kDelayMaxMs = 10'000;
// Status 3 of one member often means that all end.
constexpr TimeMs kFailedDelayMs = 1000;
constexpr uint32_t kFailuresMax = 5;
// Time for the scheduler to report that it waits in vain.
constexpr TimeMs kPatienceMs = 3000, kPatienceAfterKillMs = 20'000;

std::string NameOf(Place who) {
  return std::string(RoleName(who.first)) + " process " + std::to_string(who.second);
}

}  // namespace

void Launcher::Want(Place who, TimeMs at, bool ours, bool returns) {
  processes_[who] = {.due = at, .ours = ours, .returns = returns};
}

std::vector<Place> Launcher::wanted() const {
  std::vector<Place> places;
  for (const auto& [who, process] : processes_) places.push_back(who);
  return places;
}

bool Launcher::StartsNow(Place who, std::optional<int> status, TimeMs now) {
  Process& process = processes_.at(who);
  if (!process.due) {
    if (status == 0 || !process.returns) return false;
    if (status == 2) {
      if (!process.ours || (process.deaths > 0 && !sabotage_.refusal_ends_job)) return false;
      GiveUpAt(now + (process.deaths > 0 ? kPatienceAfterKillMs : kPatienceMs),
               NameOf(who) + " ended with 2");
      return false;
    }
    if (delay_ms_ == 0) return false;
    if (draining_ && sabotage_.none_in_drain && process.ours) {
      GiveUpAt(now + kPatienceAfterKillMs, NameOf(who) + " died in the drain");
      return false;
    }
    ++process.deaths;
    process.failures += status.has_value();
    if (process.failures >= kFailuresMax && process.ours) {
      GiveUpAt(now, NameOf(who) + " has failed again and again");
      return false;
    }
    process.due = now + DelayOf(&process, status.has_value());
  }
  if (now < *process.due) return false;
  if (draining_ && sabotage_.none_in_drain && process.ours) {
    GiveUpAt(now + kPatienceAfterKillMs, NameOf(who) + " died before the drain");
    return false;
  }
  process.due.reset();
  return true;
}

std::optional<TimeMs> Launcher::SchedulerKilled(TimeMs now) {
  if (draining_ && sabotage_.none_in_drain) {
    GiveUpAt(now, "the scheduler died in the drain");
    return std::nullopt;
  }
  return now + DelayOf(&scheduler_, false);
}

TimeMs Launcher::DelayOf(Process* process, bool failed) const {
  process->delay_ms = process->delay_ms == 0 ? delay_ms_ : 2 * process->delay_ms;
  if (failed) process->delay_ms = std::max(process->delay_ms, kFailedDelayMs);
  return process->delay_ms = std::min(process->delay_ms, kDelayMaxMs);
}

void Launcher::GiveUpAt(TimeMs at, const std::string& why) {
  if (ends_at_ && *ends_at_ <= at) return;
  ends_at_ = at;
  why_ = why;
}

}  // namespace hdps::sim
