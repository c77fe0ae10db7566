// The part of etcd that elections need, in memory: two keys, leases, and a revision.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/election/etcd.h"
#include "common/net/node.h"

namespace hdps {

// Invariant: a key under a lease is gone from the moment at which the lease ends; every change of a
// key has a revision of its own.
class EtcdModel {
 public:
  EtcdAnswer Do(const EtcdRequest& request, TimeMs now) {
    Expire(now);
    EtcdAnswer answer;
    switch (request.kind) {
      case EtcdRequest::Kind::kLook:
        answer.leader = leader_;
        answer.end = end_;
        break;
      case EtcdRequest::Kind::kGrant:
        answer.lease = ++lease_;
        answer.ttl_s = request.ttl_s;
        leases_[lease_] = {request.ttl_s, now + request.ttl_s * 1000};
        break;
      case EtcdRequest::Kind::kKeepAlive:
        answer.lease = request.lease;
        if (const auto found = leases_.find(request.lease); found != leases_.end()) {
          found->second.until = now + found->second.ttl_s * 1000;
          answer.ttl_s = found->second.ttl_s;
        }
        break;
      case EtcdRequest::Kind::kCampaign:
        answer.succeeded = !leader_ && (end_ ? end_->mod_revision : 0) == request.end_revision &&
                           leases_.contains(request.lease);
        if (!answer.succeeded) break;
        ++revision_;
        leader_ = {request.text, revision_, revision_, request.lease};
        end_.reset();
        break;
      case EtcdRequest::Kind::kEnd:
        answer.succeeded = leader_ && leader_->create_revision == request.reign;
        if (!answer.succeeded) break;
        ++revision_;
        end_ = {request.text, revision_, revision_, 0};
        leader_.reset();
        break;
      case EtcdRequest::Kind::kRevoke:
        leases_.erase(request.lease);
        Expire(now);
        break;
    }
    answer.revision = revision_;
    return answer;
  }

  void RemoveLeader() {
    ++revision_;
    leader_.reset();
  }
  std::optional<EtcdEntry> Leader(TimeMs now) {
    Expire(now);
    return leader_;
  }

 private:
  struct Lease {
    int64_t ttl_s = 0;
    TimeMs until = 0;
  };

  void Expire(TimeMs now) {
    std::erase_if(leases_, [now](const auto& lease) { return now >= lease.second.until; });
    if (leader_ && !leases_.contains(leader_->lease)) RemoveLeader();
  }

  int64_t revision_ = 1, lease_ = 100;
  std::map<int64_t, Lease> leases_;
  std::optional<EtcdEntry> leader_, end_;
};

}  // namespace hdps
