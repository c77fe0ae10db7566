// Decides who leads a job: one candidate at a time, under a lease of etcd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/election/etcd.h"
#include "common/net/node.h"

namespace hdps {

// Switches a safety mechanism off, so that tests can check that its absence is noticed.
struct ElectionSabotage {
  bool leads_from_answer = false;  // The lease counts from its answer, and to its last moment.
  bool end_is_ignored = false;     // A candidate goes on after the job has ended.
};

struct ElectionOptions {
  std::string address;            // Where members dial this scheduler.
  int64_t ttl_s = 5;              // Of the lease.
  int64_t patience_ms = 120'000;  // A candidate gives up when etcd has not answered for so long.
  ElectionSabotage sabotage = {};
};

// A scheduler's part in the election, without network, threads and clock: answers and times go in,
// requests come out, one at a time.
//
// Invariant: leads_until() is earlier than the moment at which etcd ends the lease, as long as the
// clocks of both run at about the same speed: it counts from before the request was sent, less a
// tenth. Whoever reaches it without a newer one has lost for good, also if etcd still answers.
class Election {
 public:
  enum class Stand : uint8_t {
    kCandidate,
    kLeads,
    kLost,   // Has led; another one may lead.
    kOver,   // The job has ended while this was a candidate; end() tells how.
    kFailed  // Cannot be a candidate; fault() tells why.
  };
  struct End {
    int exit_status = 0;
    std::string reason;
  };

  Election(ElectionOptions options, TimeMs now);

  // Returns the request that is due, and takes time into account. Its answer must be given to
  // OnAnswer() before the next call.
  std::optional<EtcdRequest> TakeRequest(TimeMs now);
  void OnAnswer(TimeMs now, const Result<EtcdAnswer>& answer);
  // Returns the time of the next request.
  TimeMs next() const { return next_; }
  // Gives up a lead that some caller has seen to be over.
  void Lose(const std::string& why);

  Stand stand() const { return stand_; }
  TimeMs leads_until() const { return lease_until_; }  // Requires: stand() == kLeads.
  int64_t reign() const { return reign_; }             // 0 unless this has led.
  const std::string& why_lost() const { return why_; }
  const End& end() const { return end_; }
  const Status& fault() const { return fault_; }
  // Tells candidates what they wait for, as text for people: who leads, or that etcd does not
  // answer.
  std::string Awaited(TimeMs now) const;

  // Returns the request that ends the job for all candidates, and the one that lets another lead at
  // once. Requires: stand() == kLeads.
  EtcdRequest EndRequest(int exit_status, const std::string& reason) const;
  EtcdRequest LeaveRequest() const;

 private:
  using Kind = EtcdRequest::Kind;

  int64_t PollMs() const;
  // Lets the next request be one of `kind`, now or after `wait_ms`.
  void Ask(Kind kind, TimeMs at) { ask_ = kind, next_ = at; }
  void TakeLease(TimeMs now, const EtcdAnswer& answer);
  void OnLook(TimeMs now, const EtcdAnswer& answer);
  void OnCandidatesLook(TimeMs now, const EtcdAnswer& answer);
  void OnFault(TimeMs now, const Status& fault);
  bool Ended(const EtcdAnswer& answer);

  const ElectionOptions options_;
  Stand stand_ = Stand::kCandidate;
  Kind ask_ = Kind::kLook;  // The next request, due at `next_`, and then the one under way.
  TimeMs next_ = 0, asked_at_ = 0;
  int64_t lease_ = 0;       // 0: none.
  TimeMs lease_until_ = 0;  // Of it, by this process' clock.
  int64_t reign_ = 0;
  std::optional<int64_t> first_revision_;  // Of the store when it answered first.
  int64_t end_revision_ = 0;               // Of the end of an earlier run; 0: there is none.
  TimeMs answered_at_ = 0;                 // When etcd answered last, or the start.
  std::string leader_;                     // The address of another leader; empty if none is known.
  std::string why_;
  End end_;
  Status fault_;  // The newest one, or the one that ends the candidate.
};

}  // namespace hdps
