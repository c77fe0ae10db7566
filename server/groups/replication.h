// The order in which the changes of one shard group reach every server that holds its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/row_messages.h"

namespace hdps {

struct View;

struct ReplicationOptions {
  ServerId group;
  PeerId self;
  TimeMs retry_ms = 2000;      // Changes that nobody has confirmed are sent again after this long.
  bool view_ignored = false;   // For tests: changes of an older view are taken.
  bool answers_alone = false;  // For tests: an answer does not wait longer than that.
};

// The holders of a group form a chain: the primary, its first backup, the second. Each sends what
// it has taken to the next one and keeps it until all behind have it, so that whoever becomes the
// primary has everything that anybody behind it has, and nothing was acknowledged that it lacks.
//
// Invariant: changes are handed out in the order of their numbers, each once. An answer leaves only
// when every holder of this view has all changes that were taken before it. Changes of another
// view, or from anybody but the holder before, are refused: a primary that was replaced without
// knowing it can acknowledge nothing.
class Replication {
 public:
  explicit Replication(const ReplicationOptions& options) : options_(options) {}

  // Requires: this process holds rows of the group in `view`.
  void OnView(const View& view);
  // The rows are others, from now on counted from the first change again.
  void Reset();

  bool leads() const { return !before_.has_value(); }
  bool has_next() const { return next_.has_value(); }
  size_t waiting() const { return log_.size(); }  // Changes that the next holder may lack.
  std::optional<PeerId> next() const { return next_; }
  uint64_t last() const { return last_; }

  // Primary: a change has been made here. `request` carries its keys. Requires: has_next().
  void Append(PeerId worker, const Frame& request);
  // Primary: `answer` may leave when everybody has what was changed so far.
  void Answer(Outgoing answer);

  // A change that is to be made here, as its worker has asked for it.
  struct Change {
    PeerId worker;
    Frame request;
  };
  // Of a Replicate: the changes whose turn has come. They count as made when the caller makes them
  // before anything else of this group, and then calls Made().
  std::vector<Change> OnReplicate(PeerId from, const Frame& frame);
  void Made();
  void OnAck(PeerId from, const Frame& frame);
  void OnTick(TimeMs now);

  std::vector<Outgoing> TakeOutgoing();

 private:
  struct Held {
    uint64_t until = 0;
    Outgoing answer;
  };
  // What everybody from here on has.
  uint64_t safe() const { return next_ ? acked_ : last_; }
  void SendLog();
  void SendChange(const Replicate& change);
  void Confirm(bool again);
  void Release();
  template <typename Message>
  void Send(PeerId to, const Message& message);

  const ReplicationOptions options_;
  TimeMs now_ = 0;
  TimeMs repeat_at_ = 0;
  ViewId view_;
  ViewId placed_;  // View::placed that numbers are counted since.
  std::optional<PeerId> before_, next_;
  // In this view. Until then it is told again and again where we are: where it was we who dialed,
  // it can send nothing before it has heard us.
  bool heard_before_ = false;
  uint64_t last_ = 0;                    // The newest change that was made here.
  uint64_t acked_ = 0;                   // That `next_` and those behind it have.
  std::deque<Replicate> log_;            // Numbers acked_ + 1 .. last_; none without a next one.
  std::map<uint64_t, Replicate> early_;  // Came before their turn.
  std::deque<Held> held_;                // By `until`.
  std::vector<Outgoing> outgoing_;
};

}  // namespace hdps
