// A worker's outstanding requests to the servers: sent, sent again, answered or given up.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "common/net/node.h"
#include "worker/exchange/server_request.h"

namespace hdps {

struct Awaited;
struct SilentServer;
struct View;

struct PsClientOptions {
  PeerId self;
  uint32_t request_retry_ms = 2000;   // A request is sent again after this long, doubling to 8x.
  uint32_t request_timeout_s = 120;   // And given up this long after it was first sent.
  uint32_t pushes_in_flight_max = 8;  // Per server; a push waits until the one this many before it
                                      // has been acknowledged. This bounds the servers' ledgers.
  uint32_t requests_max = 4096;       // Outstanding at once; more are kResourceExhausted.
  uint32_t probe_ms = 0;              // A server that says nothing is probed so often; 0: never.
  uint32_t dial_anew_ms = 0;          // And dialed anew, once, after so long; 0: never. Longer than
                                      // any message is on its way, which would begin again.
};

struct PsClientCounters {
  uint64_t requests = 0;         // Started.
  uint64_t repeats = 0;          // Sent again.
  uint64_t replies = 0;          // That answered a request.
  uint64_t replies_ignored = 0;  // Late, repeated, of another kind, broken, or from a stranger.
  uint64_t postponed = 0;        // Answered with kStaleView or kUnavailable and kept.
  uint64_t lists_unknown = 0;    // Sent again with their keys.
  // Of rows that came, and of gradients that went, each once however often they were sent.
  uint64_t row_bytes = 0, gradient_bytes = 0;
};

// What came of one ticket. `replies` stand in the order of the requests when the status is ok.
struct TicketResult {
  Ticket ticket;
  Status status;
  std::vector<Frame> replies;
};

// Belongs to one loop thread.
//
// Invariant: each ticket that was started comes out of TakeResults() exactly once, unless
// CancelAll() is called. A request keeps its id until it is answered. At each server, the pushes on
// their way lie within `pushes_in_flight_max` of the oldest one that is not acknowledged.
class PsClient {
 public:
  explicit PsClient(const PsClientOptions& options);

  // Requires: none of the requests is started before a view is known. A ticket without requests
  // succeeds at once; one for a server that the newest view does not have fails with kStaleView.
  //
  // `then` is sent when every request of this ticket has been answered with kOk, and those of every
  // ticket before it that had a `then`, in that order. Nobody is told of its answers.
  void Start(Ticket ticket, std::vector<ServerRequest> requests,
             std::vector<ServerRequest> then = {});
  // The ticket is of no use any more: comes out with kCancelled unless it has come out already.
  void Cancel(Ticket ticket);
  // Everything outstanding is sent again, to the servers of the new view.
  void OnView(std::shared_ptr<const View> view);
  // True when the frame is a reply of a server.
  bool OnFrame(PeerId from, const Frame& frame);
  void OnTick(TimeMs now);
  void CancelAll();  // Forgets everything outstanding.

  std::vector<Dial> TakeDials();  // Before the frames.
  std::vector<Outgoing> TakeOutgoing();
  std::vector<TicketResult> TakeResults();
  // Servers of the view that have said nothing for more than `ms`, though they were asked.
  std::vector<SilentServer> SilentFor(TimeMs ms) const;
  // Servers that have not answered a request, each for as long as the oldest of its own.
  std::vector<Awaited> Unanswered() const;
  const PsClientCounters& counters() const { return counters_; }
  size_t outstanding() const { return requests_.size(); }

 private:
  struct Request {
    Ticket ticket;
    size_t position = 0;  // In its ticket.
    ServerId server;
    Frame frame;
    std::optional<Frame> whole;  // Until it has taken the place of `frame`.
    bool is_whole = false;       // It has.
    TimeMs started = 0;
    TimeMs repeat_at = 0;
    TimeMs repeat_ms = 0;
    TimeMs postponed_ms = 0;  // How long it waited when it was last put off.
    uint32_t sends = 0;
  };
  struct OpenTicket {
    size_t missing = 0;
    bool all_ok = true;  // Of the answers so far.
    std::vector<Frame> replies;
    std::vector<uint64_t> request_ids;
  };
  // What is sent when a ticket has succeeded.
  struct Sequel {
    Ticket after;
    bool due = false;
    std::vector<ServerRequest> requests;
  };
  struct Link {
    TimeMs heard = 0, probed = 0;
    bool dialed_anew = false;  // Since it was heard.
  };
  struct Push {
    uint64_t request_id = 0;
    bool acknowledged = false;
  };

  void Send(uint64_t id, Request* request);
  void ProbeSilent(TimeMs gap);  // This process itself has stood still for `gap`.
  // The connection may be dead without either end knowing: what waits for an answer goes again.
  void DialAnew(PeerId server);
  void Postpone(Code code, Request* request);
  void FinishTicket(Ticket ticket, OpenTicket open);
  // Starts the sequels whose turn has come.
  void StartSequels();
  // True when the window of its server leaves room for this push.
  bool MayPush(uint64_t id, ServerId server) const;
  // Takes a push that needs no more sending out of its server's window; sends those that now fit.
  void ClosePush(uint64_t id, ServerId server);
  void FailTicket(Ticket ticket, const Status& status);
  Status StaleSplit() const;  // The requests were split for a view of more servers.
  Status TimeoutOf(const Request& request) const;

  const PsClientOptions options_;
  TimeMs now_ = 0;
  uint64_t next_request_id_ = 1;
  std::shared_ptr<const View> view_;
  std::map<uint64_t, Request> requests_;  // Outstanding, oldest first, by request id.
  std::unordered_map<Ticket, OpenTicket> tickets_;
  std::deque<Sequel> sequels_;  // In the order of their tickets.
  uint64_t next_own_ticket_;
  std::map<PeerId, Link> links_;          // Of the view's servers.
  std::vector<std::deque<Push>> pushes_;  // [servers]: from the oldest unacknowledged one on.
  std::vector<Dial> dials_;
  std::vector<Outgoing> outgoing_;
  std::vector<TicketResult> results_;
  PsClientCounters counters_;
};

}  // namespace hdps
