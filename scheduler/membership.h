// The members of a formed cluster: their names, when they were last heard, how far they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/messages.h"

namespace hdps {

// Invariant: the members are those of the view, for good; a member's reported clock, examples and
// staleness never go back, whatever order heartbeats come in.
class Membership {
 public:
  // `hosts`: what people call the process of each peer of `view`.
  Membership(View view, const std::map<PeerId, std::string>& hosts, TimeMs dead_after_ms,
             TimeMs now);

  const View& view() const { return view_; }
  bool Has(PeerId peer) const { return members_.contains(peer); }
  const std::string& NameOf(PeerId peer) const;           // "worker 1 (host-a 4711)"
  std::optional<uint32_t> WorkerRank(PeerId peer) const;  // None for a server.
  std::vector<PeerId> servers() const;
  std::vector<PeerId> workers() const;
  std::vector<PeerId> all() const;

  void Heard(PeerId peer, TimeMs now);
  void OnHeartbeat(PeerId peer, const Heartbeat& heartbeat);
  void ForgiveSilence(TimeMs gap);  // This process itself stood still for so long.
  void Release(PeerId peer);        // It has finished: its silence is no failure.

  TimeMs SilentFor(PeerId peer, TimeMs now) const;
  // "worker 1 (host-a 4711) silent for 10.2 s", one for each that is dead; empty when all live.
  std::vector<std::string> Silent(TimeMs now) const;

  // The view, and how far each member is.
  void AddTo(StatusReply* status, TimeMs now) const;
  // What the workers together have done since their processes started.
  struct Progress {
    Clock clock = 0;  // Of the slowest.
    uint64_t examples = 0;
    double loss_sum = 0;
    double epoch_progress = 0;  // Of the slowest.
  };
  Progress progress() const;
  Clock WorkerClock(uint32_t rank) const;  // Requires: rank < workers.
  uint64_t staleness_max() const;
  // What a worker said of the rows it keeps, beside its heartbeats; and the sum over all.
  void OnCache(PeerId peer, const CacheTally& tally);
  CacheTally cache() const;

 private:
  struct Entry {
    std::string name;
    std::optional<uint32_t> worker_rank;
    TimeMs heard = 0;
    bool released = false;
    Heartbeat latest;
  };
  const View view_;
  const TimeMs dead_after_ms_;
  std::map<PeerId, Entry> members_;
};

}  // namespace hdps
