// A network, a clock and a loop in one thread: what happens is decided by one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/platform/random.h"

namespace hdps::sim {

// How bad the network is. Worse than the transport's promise: it also repeats and reorders.
struct Weather {
  uint32_t loss_percent = 15;
  uint32_t repeat_percent = 15;  // Delivered twice.
  TimeMs delay_ms_max = 20;      // Each copy takes 1..this.
  uint32_t slow_percent = 2;     // Of the copies, a few take up to 20 times as long.
  uint32_t damage_percent = 0;   // A byte of the copy is changed on the way.
};

// Between `from` and `until` nothing reaches or leaves the peer; kEveryone: any of them.
inline constexpr PeerId kEveryone{0};
struct Outage {
  PeerId peer;
  TimeMs from = 0, until = 0;
};

// Between `from` and `until` nothing gets from one of the two to the other.
struct Cut {
  PeerId a, b;
  TimeMs from = 0, until = 0;
};

// Where a process runs: processes that follow each other in a role and rank have one place. Places
// of servers and workers begin at these.
inline constexpr uint64_t kServerPlaces = 100, kWorkerPlaces = 200;
inline uint64_t PlaceOf(PeerId peer) { return peer.value % 1000; }
// Between `from` and `until` nothing gets out of these places to the others, or nothing in to them.
struct Partition {
  std::set<uint64_t> places;
  TimeMs from = 0, until = 0;
  bool out = true, in = true;
};

// Invariant: the order of events is a function of the seed and of what the nodes send; events of
// one millisecond happen in the order in which they were made.
class SimNetwork {
 public:
  SimNetwork(uint64_t seed, const Weather& weather) : random_(seed), weather_(weather) {}

  // `node` takes part under `peer` from now on. `before_tick` is called before each of its ticks.
  void Attach(PeerId peer, std::string address, Node* node,
              std::function<void(TimeMs)> before_tick = nullptr);
  // The process is gone: what is on its way to it is lost.
  void Detach(PeerId peer);
  void AddOutage(const Outage& outage) { outages_.push_back(outage); }
  void AddCut(const Cut& cut) { cuts_.push_back(cut); }
  void AddPartition(Partition partition) { partitions_.push_back(std::move(partition)); }
  // The process stands still for so long, or longer if it does already: what comes to it waits.
  void HoldUp(PeerId peer, TimeMs ms);
  // Sees, and may change, every frame as it is sent, before chance gets at it; behind those that
  // were told of before.
  void OnSend(std::function<void(PeerId from, PeerId to, Frame* frame)> spy) {
    spies_.push_back(std::move(spy));
  }

  // Sees what nodes are given, before they are: frames that came, and ticks (then `frame` is null).
  void OnGiven(std::function<void(PeerId to, PeerId from, const Frame* frame)> watch) {
    watch_ = std::move(watch);
  }
  // Somebody outside sends `frame` under the number `from`, on a good line. A transport hears any
  // number that no peer has, and takes only what passes CheckFrame.
  void Inject(PeerId from, PeerId to, Frame frame);

  // Runs until `done` holds or the clock is at `until`; true when `done` held. `done` is asked
  // whenever the clock moves.
  bool RunUntil(TimeMs until, const std::function<bool()>& done);

  TimeMs now() const { return now_; }
  Random& random() { return random_; }
  // Of every frame delivered so far: when, from whom, to whom, what.
  uint64_t trace() const { return trace_; }
  uint64_t frames_delivered() const { return frames_delivered_; }

 private:
  struct Endpoint {
    PeerId peer;
    std::string address;
    Node* node = nullptr;  // Null once detached.
    std::function<void(TimeMs)> before_tick;
    std::set<PeerId> reachable = {};  // Dialed by us, or has sent to us.
    TimeMs stands_until = 0;
    bool listens = false;  // From its first tick on, as a loop does.
  };
  struct Event {
    TimeMs at = 0;
    uint64_t order = 0;
    size_t endpoint = 0;
    size_t frame = 0;  // Index into frames_; kTick: the node's tick.
    bool operator<(const Event& o) const { return std::tie(o.at, o.order) < std::tie(at, order); }
  };
  struct InFlight {
    PeerId from;
    Frame frame;
    bool damaged = false;
  };
  static constexpr size_t kTick = ~size_t{0};

  void Post(TimeMs at, size_t endpoint, size_t frame);
  void PostFrame(TimeMs at, size_t endpoint, InFlight flight);
  void Deliver(const Event& event);
  void Flush(size_t endpoint);
  void Send(Endpoint& from, Outgoing out);
  void Damage(Frame* frame);
  bool Chance(uint32_t percent) { return random_.Below(100) < percent; }
  bool IsOut(PeerId peer) const;
  bool IsCut(PeerId from, PeerId to) const;

  Random random_;
  const Weather weather_;
  TimeMs now_ = 0;
  uint64_t next_order_ = 0;
  uint64_t trace_ = 0;
  uint64_t frames_delivered_ = 0;
  std::vector<Endpoint> endpoints_;
  std::unordered_map<PeerId, size_t> endpoint_of_;  // Of those attached.
  std::priority_queue<Event> events_;
  std::vector<InFlight> frames_;
  std::vector<size_t> free_frames_;
  std::vector<Outage> outages_;
  std::vector<Cut> cuts_;
  std::vector<Partition> partitions_;
  std::vector<std::function<void(PeerId, PeerId, Frame*)>> spies_;
  std::function<void(PeerId, PeerId, const Frame*)> watch_;
};

}  // namespace hdps::sim
