// Runs the election: first while it waits, then beside the scheduler.
#include "scheduler/election/reign.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

// Tells what a candidate waits for: when it changes, and every ten seconds.
class Waits {
 public:
  explicit Waits(const std::function<void(const std::string&)>& notice) : notice_(notice) {}
  void Tell(const Election& election, TimeMs now) {
    constexpr TimeMs kEveryMs = 10'000;
    const std::string awaited = election.Awaited(now);
    if (!first_ && (awaited == told_ || !told_at_changes_) && now - told_ms_ < kEveryMs) return;
    // Texts that count seconds change all the time.
    told_at_changes_ = election.fault().ok();
    first_ = false;
    told_ = awaited;
    told_ms_ = now;
    notice_("hdps-scheduler: stands by as a candidate: " + awaited);
  }

 private:
  const std::function<void(const std::string&)>& notice_;
  std::string told_;
  TimeMs told_ms_ = 0;
  bool first_ = true, told_at_changes_ = true;
};

}  // namespace

Result<Elected> AwaitReign(std::unique_ptr<Etcd> etcd, const ElectionOptions& options,
                           MonotonicClock& clock, const std::atomic<bool>& stop,
                           const std::function<void(const std::string&)>& notice) {
  constexpr int64_t kLookForStopMs = 100;
  Election election(options, clock.NowMs());
  Waits waits(notice);
  Pause pause;
  using Stand = Election::Stand;
  while (election.stand() == Stand::kCandidate) {
    if (stop.load()) return Elected{nullptr, {kExitDone, "stopped before it led"}};
    if (const std::optional<EtcdRequest> request = election.TakeRequest(clock.NowMs())) {
      election.OnAnswer(clock.NowMs(), etcd->Do(*request));
      continue;
    }
    const TimeMs now = clock.NowMs();
    waits.Tell(election, now);
    pause.For(std::clamp<TimeMs>(election.next() - now, 0, kLookForStopMs));
  }
  if (election.stand() == Stand::kFailed) return election.fault();
  if (election.stand() == Stand::kOver) {
    const Election::End& end = election.end();
    return Elected{nullptr, {end.exit_status, "the job has ended: " + end.reason}};
  }
  notice("hdps-scheduler: leads the job, reign " + std::to_string(election.reign()));
  return Elected{std::make_unique<Reign>(std::move(etcd), std::move(election), clock), {}};
}

Reign::Reign(std::unique_ptr<Etcd> etcd, Election election, MonotonicClock& clock)
    : clock_(clock),
      etcd_(std::move(etcd)),
      number_(static_cast<uint64_t>(election.reign())),
      until_(election.leads_until()),
      election_(std::move(election)),
      thread_(StartThread("election", [this] { Keep(); })) {}

Reign::~Reign() { pause_.End(); }

bool Reign::holds() {
  if (clock_.NowMs() >= until_.load()) lost_.store(true);
  return !lost_.load();
}

void Reign::Keep() {
  TimeMs wait_ms = 0;
  while (pause_.For(wait_ms)) {
    std::optional<EtcdRequest> request;
    {
      const MutexLock lock(mutex_);
      request = election_.TakeRequest(clock_.NowMs());
    }
    std::optional<Result<EtcdAnswer>> answer;
    if (request) answer = etcd_->Do(*request);
    const MutexLock lock(mutex_);
    if (answer && holds()) election_.OnAnswer(clock_.NowMs(), *answer);
    static_cast<void>(election_.TakeRequest(clock_.NowMs()));  // Notices the end of the lease.
    if (election_.stand() != Election::Stand::kLeads) {
      lost_.store(true);
      return;
    }
    until_.store(election_.leads_until());
    wait_ms = std::max<TimeMs>(election_.next() - clock_.NowMs(), 1);
  }
}

std::optional<ProcessEnd> Reign::Lost() {
  if (holds()) return std::nullopt;
  const MutexLock lock(mutex_);
  election_.Lose("its lease at etcd was not renewed in time");
  return ProcessEnd{kExitFailed,
                    "this scheduler leads no longer: " + election_.why_lost() +
                        "; started again, it is a candidate; the job goes on under another one"};
}

std::string Reign::LastRequest(const EtcdRequest& request, const std::string& otherwise) {
  pause_.End();
  thread_->Join();
  if (!holds()) return otherwise + ": its lease has ended";
  const Result<EtcdAnswer> answer = etcd_->Do(request);
  return answer.ok() ? "" : otherwise + ": etcd did not answer: " + answer.status().message();
}

std::string Reign::EndJob(const ProcessEnd& end) {
  EtcdRequest request;
  {
    const MutexLock lock(mutex_);
    request = election_.EndRequest(end.status, end.reason);
  }
  return LastRequest(request, "candidates may take the job for one that goes on");
}

std::string Reign::Leave() {
  EtcdRequest request;
  {
    const MutexLock lock(mutex_);
    request = election_.LeaveRequest();
  }
  return LastRequest(request, "another scheduler leads only when the lease has ended");
}

}  // namespace hdps
