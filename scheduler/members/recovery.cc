// Decides when to go on, and with which members.
#include "scheduler/members/recovery.h"

#include <glog/logging.h>

namespace hdps {

void Recovery::Lost(const std::string& name, const std::string& how, bool left, TimeMs now) {
  if (lost_.empty()) {
    since_ = now;
    first_cause_ = how;
  }
  last_ = now;
  lost_.push_back(name);
  num_left_ += left;
}

Recovery::Next Recovery::Look(Rendezvous& rendezvous, TimeMs now) {
  CHECK(under_way());
  if (rendezvous.complete()) return Next::kForm;
  if (now - last_ < replace_after_ms_) return Next::kWait;
  if (rendezvous.Count(Role::kServer) == 0 || rendezvous.Count(Role::kWorker) == 0) {
    return Next::kGiveUp;
  }
  rendezvous.Shrink(Role::kServer);
  if (on_worker_loss_ == OnWorkerLoss::kShrink) rendezvous.Shrink(Role::kWorker);
  return rendezvous.complete() ? Next::kForm : Next::kWait;
}

std::string Recovery::names() const {
  std::string text = lost_.empty() ? "" : lost_.front();
  for (size_t i = 1; i < lost_.size(); ++i) {
    text += (i + 1 == lost_.size() ? " and " : ", ") + lost_[i];
  }
  return text;
}

}  // namespace hdps
