// Decides when a member dials the scheduler.
#include "common/protocol/locate/scheduler_link.h"

#include <glog/logging.h>

namespace hdps {

void SchedulerLink::Look(std::vector<Dial>* dials) {
  const Result<std::string> newest = locator_->Newest();
  if (!newest.ok()) {
    missing_ = newest.status().message();
    return;
  }
  if (*newest == address_) return;
  const bool moved = !address_.empty();
  if (moved) LOG(WARNING) << "the scheduler is at " << *newest << " now, not at " << address_;
  address_ = *newest;
  dials->push_back({kSchedulerPeer, address_, moved});
}

void SchedulerLink::DialIfSilent(TimeMs now, std::vector<Dial>* dials) {
  if (silence_ms_ < SilenceMs() || !look_.Due(now, heartbeat_ms_)) return;
  const size_t before = dials->size();
  Look(dials);
  if (silence_ms_ < dial_anew_ms_) return;
  dial_anew_ms_ = 2 * silence_ms_;
  if (dials->size() == before) dials->push_back({kSchedulerPeer, address_, true});
}

std::string SchedulerLink::WhatIsAwaited() const {
  const std::string seconds = std::to_string(silence_ms_ / 1000) + " s";
  if (address_.empty()) {
    return "waited " + seconds + " for the address of the scheduler: " + missing_ +
           "; is the scheduler running?";
  }
  return "the scheduler at " + address_ + " has sent no view for " + seconds +
         ": is it running there, and are enough servers and workers started?";
}

}  // namespace hdps
