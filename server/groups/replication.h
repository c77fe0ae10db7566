// Replicates the changes of one shard group, in order, to every server that holds its rows.
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
  TimeMs retry_ms = 2000;      // Unconfirmed changes are sent again after this time.
  bool view_ignored = false;   // For tests: changes of an older view are taken.
  bool answers_alone = false;  // For tests: an answer waits no longer than retry_ms.
};

// Chain replication: the holders of a group form a chain of the primary, its first backup and the
// second. Each holder sends every change that it has taken to the next one, and keeps the change
// until all holders behind have it. A holder that becomes the primary thus has every change that
// any holder behind it has, and no acknowledged change is missing.
//
// Invariant: changes are handed out in the order of their numbers, each once. An answer leaves only
// when every holder of this view has all changes taken before it. Changes of another view, or from
// any peer but the preceding holder, are refused, so a primary that was replaced without knowing it
// cannot acknowledge anything.
class Replication {
 public:
  explicit Replication(const ReplicationOptions& options) : options_(options) {}

  // Requires: this process holds rows of the group in `view`.
  void OnView(const View& view);
  // Restarts numbering at the first change, because the rows were replaced.
  void Reset();

  bool leads() const { return !before_.has_value(); }
  bool has_next() const { return next_.has_value(); }
  size_t waiting() const { return log_.size(); }  // Changes that the next holder may lack.
  std::optional<PeerId> next() const { return next_; }
  uint64_t last() const { return last_; }

  // Primary: notes a change that was made here; `request` carries its keys. Requires: has_next().
  void Append(PeerId worker, const Frame& request);
  // Primary: sends `answer` once every holder has all changes made so far.
  void Answer(Outgoing answer);

  // A change to be made here, in the form of its worker's request.
  struct Change {
    PeerId worker;
    Frame request;
  };
  // Takes a Replicate and returns the changes that are due. They count as made here; the caller
  // must make them before anything else of this group, and then call Made().
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
  // Number of the last change that every holder from here on has.
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
  ViewId placed_;  // View::placed at the time when numbering began.
  std::optional<PeerId> before_, next_;
  // Whether the preceding holder has been heard in this view. Until then Confirm is repeated: if
  // this server opened the connection, the other side cannot send before it has heard from here.
  bool heard_before_ = false;
  uint64_t last_ = 0;          // Number of the newest change that was made here.
  uint64_t acked_ = 0;         // Last change that `next_` and all holders behind it have.
  std::deque<Replicate> log_;  // Changes acked_ + 1 .. last_; empty without a next holder.
  std::map<uint64_t, Replicate> early_;  // Changes that arrived before their turn.
  std::deque<Held> held_;                // Answers that wait, by `until`.
  std::vector<Outgoing> outgoing_;
};

}  // namespace hdps
