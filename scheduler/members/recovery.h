// Decides how to go on after members were lost: with replacements, or without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/job/spec/cluster_spec.h"
#include "common/net/node.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

enum class OnWorkerLoss : uint8_t;

// Invariant: from the first loss until Done() the job stands, and Look() says what is next. Its
// answer depends on what was lost, which processes have come since, and the time.
class Recovery {
 public:
  explicit Recovery(const ClusterSpec& cluster)
      : replace_after_ms_(int64_t{cluster.replace_after_s} * 1000),
        on_worker_loss_(cluster.on_worker_loss) {}

  // Notes that `name` was lost, and why; its place in the rendezvous is free. `left`: it was told
  // to leave.
  void Lost(const std::string& name, const std::string& how, bool left, TimeMs now);
  bool under_way() const { return !lost_.empty(); }

  enum class Next : uint8_t {
    kWait,    // Wait for processes that take the free places.
    kForm,    // The cluster is complete: form its next view.
    kGiveUp,  // No server, or no worker, is left, and no replacement came in time.
  };
  // Returns what is next. Removes places from `rendezvous` that were not filled in time, if the job
  // may go on without them. Requires: under_way().
  Next Look(Rendezvous& rendezvous, TimeMs now);
  void Done() {
    lost_.clear();
    num_left_ = 0;
  }

  // Such as "server 1 (host-a 4711) and worker 0 (host-b 12)".
  std::string names() const;
  const std::string& first_cause() const { return first_cause_; }
  size_t num_lost() const { return lost_.size(); }
  size_t num_failed() const { return lost_.size() - num_left_; }  // Those that had not left.
  TimeMs since() const { return since_; }                         // Time of the first loss.
  TimeMs last() const { return last_; }                           // Time of the newest loss.

 private:
  const TimeMs replace_after_ms_;
  const OnWorkerLoss on_worker_loss_;
  std::vector<std::string> lost_;
  size_t num_left_ = 0;
  std::string first_cause_;
  TimeMs since_ = 0, last_ = 0;  // Times of the first and the newest loss.
};

}  // namespace hdps
