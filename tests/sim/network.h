// Simulates a network, clocks and loops in one thread, all driven by one seed.
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

// The faults of the network. It is worse than transports promise: it also repeats and reorders
// frames.
struct Weather {
  uint32_t loss_percent = 15;
  uint32_t repeat_percent = 15;  // Frames that are delivered twice.
  TimeMs delay_ms_max = 20;      // Each copy takes from 1 to this time.
  uint32_t slow_percent = 2;     // Copies that take up to 20 times as long.
  uint32_t damage_percent = 0;   // Copies with a changed byte.
};

// Cuts off the peer between `from` and `until`; kEveryone: all peers.
inline constexpr PeerId kEveryone{0};
struct Outage {
  PeerId peer;
  TimeMs from = 0, until = 0;
};

// Loses all frames between two peers, in both directions, between `from` and `until`.
struct Cut {
  PeerId a, b;
  TimeMs from = 0, until = 0;
};

// A place is a role and rank; successive processes share it. Places of servers and workers begin at
// these numbers.
inline constexpr uint64_t kServerPlaces = 100, kWorkerPlaces = 200;
inline uint64_t PlaceOf(PeerId peer) { return peer.value % 1000; }
// Loses all frames from these places to others, or from others to them, between `from` and `until`.
struct Partition {
  std::set<uint64_t> places;
  TimeMs from = 0, until = 0;
  bool out = true, in = true;
};

// A network with its nodes.
//
// Invariant: the order of events follows from the seed and the nodes' frames; events of the same
// millisecond happen in the order in which they were created.
class SimNetwork {
 public:
  SimNetwork(uint64_t seed, const Weather& weather) : random_(seed), weather_(weather) {}

  // Attaches `node` as `peer`. `before_tick` is called before each of its ticks.
  void Attach(PeerId peer, std::string address, Node* node,
              std::function<void(TimeMs)> before_tick = nullptr);
  // Removes a process; frames on their way to it are lost.
  void Detach(PeerId peer);
  void AddOutage(const Outage& outage) { outages_.push_back(outage); }
  void AddCut(const Cut& cut) { cuts_.push_back(cut); }
  void AddPartition(Partition partition) { partitions_.push_back(std::move(partition)); }
  // Pauses the process for at least `ms`; frames to it wait.
  void HoldUp(PeerId peer, TimeMs ms);
  // Adds a function that sees and may change every frame when it is sent, before losses, and after
  // the functions added earlier.
  void OnSend(std::function<void(PeerId from, PeerId to, Frame* frame)> spy) {
    spies_.push_back(std::move(spy));
  }

  // Sets a function that sees what nodes receive, before they do: frames and ticks (`frame` is
  // null).
  void OnGiven(std::function<void(PeerId to, PeerId from, const Frame* frame)> watch) {
    watch_ = std::move(watch);
  }
  // Lets dials to an address that no member has go nowhere: an attacker may forge a member's. In
  // all other runs they are a fault of the cluster.
  void ExpectForgedAddresses() { forged_addresses_ = true; }
  // Sends `frame` from outside under the peer id `from`, without losses. Like a transport, it
  // accepts any peer id that no peer has, and only frames that pass CheckFrame.
  void Inject(PeerId from, PeerId to, Frame frame);

  // Runs until `done` is true or the clock is at `until`; returns whether it was true. Checks
  // `done` when the clock moves.
  bool RunUntil(TimeMs until, const std::function<bool()>& done);

  TimeMs now() const { return now_; }
  Random& random() { return random_; }
  // Returns a hash of all delivered frames: time, sender, receiver, content.
  uint64_t trace() const { return trace_; }
  uint64_t frames_delivered() const { return frames_delivered_; }

 private:
  struct Endpoint {
    PeerId peer;
    std::string address;
    Node* node = nullptr;  // Null after Detach().
    std::function<void(TimeMs)> before_tick;
    std::set<PeerId> reachable = {};  // Peers that this one has dialed or received frames from.
    TimeMs stands_until = 0;
    bool listens = false;  // Is true from the first tick on, as with a loop.
  };
  struct Event {
    TimeMs at = 0;
    uint64_t order = 0;
    size_t endpoint = 0;
    size_t frame = 0;  // Index into frames_; kTick: a tick of the node.
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
  std::unordered_map<PeerId, size_t> endpoint_of_;  // Attached peers only.
  std::priority_queue<Event> events_;
  std::vector<InFlight> frames_;
  std::vector<size_t> free_frames_;
  std::vector<Outage> outages_;
  std::vector<Cut> cuts_;
  std::vector<Partition> partitions_;
  std::vector<std::function<void(PeerId, PeerId, Frame*)>> spies_;
  std::function<void(PeerId, PeerId, const Frame*)> watch_;
  bool forged_addresses_ = false;
};

}  // namespace hdps::sim
