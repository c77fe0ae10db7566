// Keeps a worker's outstanding requests to the servers: sends, repeats, and gives them up.
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
class SpanRecorder;

struct PsClientOptions {
  PeerId self;
  uint32_t request_retry_ms = 2000;  // A request is sent again after this long, doubling to 8x.
  uint32_t request_timeout_s = 120;  // A request is given up this long after its first sending,
                                     // not counting times in which deadlines stand.
  // Per server: a push waits until the one this many before it has been acknowledged. This bounds
  // the servers' ledgers.
  uint32_t pushes_in_flight_max = 8;
  uint32_t requests_max = 4096;  // Outstanding at once; more are kResourceExhausted.
  uint32_t probe_ms = 0;         // A silent server is probed at this interval; 0: never.
  // A server silent for this long is dialed anew, once; 0: never. Must exceed the time that any
  // message takes, which would have to start over.
  uint32_t dial_anew_ms = 0;
  SpanRecorder* recorder = nullptr;  // Records requests of traced steps; may be null.
};

struct PsClientCounters {
  uint64_t requests = 0;         // Requests started.
  uint64_t repeats = 0;          // Requests sent again.
  uint64_t replies = 0;          // Replies that answered a request.
  uint64_t replies_ignored = 0;  // Late, repeated, of another kind, broken, or from a stranger.
  uint64_t postponed = 0;        // Answered with kStaleView or kUnavailable and kept.
  uint64_t lists_unknown = 0;    // Requests sent again with their keys.
  // Bytes of rows received and of gradients sent; repeats are not counted.
  uint64_t row_bytes = 0, gradient_bytes = 0;
};

// Result of one ticket. If `status` is ok, `replies` stand in the order of the requests.
struct TicketResult {
  Ticket ticket;
  Status status;
  std::vector<Frame> replies;
};

// Tracks the outstanding requests of one worker. Belongs to one loop thread.
//
// Invariant: each ticket that was started comes out of TakeResults() exactly once, unless
// CancelAll() is called. A request keeps its id until it is answered. At each server, the pushes in
// flight lie within `pushes_in_flight_max` of the oldest unacknowledged one.
class PsClient {
 public:
  explicit PsClient(const PsClientOptions& options);

  // Requires: a view is known. A ticket without requests succeeds at once; one for a server that
  // the newest view lacks fails with kStaleView.
  //
  // `then` is sent once every request of this ticket, and of each earlier ticket with pushes or
  // with a `then`, has been answered with kOk; the order of tickets is kept. Its replies are not
  // reported.
  void Start(Ticket ticket, std::vector<ServerRequest> requests,
             std::vector<ServerRequest> then = {});
  // Drops a ticket: it comes out with kCancelled unless it has come out already.
  void Cancel(Ticket ticket);
  // Sends every outstanding request again, to the servers of the new view.
  void OnView(std::shared_ptr<const View> view);
  // Returns true if the frame is a server's reply.
  bool OnFrame(PeerId from, const Frame& frame);
  // With `deadlines_stand`, the time since the last tick counts for no request's deadline.
  void OnTick(TimeMs now, bool deadlines_stand = false);
  void CancelAll();  // Drops everything outstanding.

  std::vector<Dial> TakeDials();  // To be carried out before frames are sent.
  std::vector<Outgoing> TakeOutgoing();
  std::vector<TicketResult> TakeResults();
  // Returns the servers of the view that have been silent for more than `ms` although they were
  // asked.
  std::vector<SilentServer> SilentFor(TimeMs ms) const;
  // Returns the servers that owe a reply, each with the age of its oldest request.
  std::vector<Awaited> Unanswered() const;
  const PsClientCounters& counters() const { return counters_; }
  size_t outstanding() const { return requests_.size(); }

 private:
  struct Request {
    Ticket ticket;
    size_t position = 0;  // Position of the request in its ticket.
    ServerId server;
    Frame frame;
    std::optional<Frame> whole;  // The request with its keys, until it replaces `frame`.
    bool is_whole = false;       // `whole` has replaced `frame`.
    Clock step = -1;             // As in ServerRequest.
    int64_t sent_ns = 0;         // Of a recorded request; 0: it is not recorded.
    TimeMs started = 0;
    TimeMs deadline = 0;
    TimeMs repeat_at = 0;
    TimeMs repeat_ms = 0;
    TimeMs postponed_ms = 0;  // Delay after the last postponement.
    uint32_t sends = 0;
  };
  struct OpenTicket {
    size_t missing = 0;
    bool all_ok = true;  // All replies so far are ok.
    std::vector<Frame> replies;
    std::vector<uint64_t> request_ids;
  };
  // Requests that are sent after a ticket has succeeded.
  struct Sequel {
    Ticket after;
    bool due = false;
    std::vector<ServerRequest> requests;
  };
  struct Link {
    TimeMs heard = 0, probed = 0;
    bool dialed_anew = false;  // Since the last sign of life.
  };
  struct Push {
    uint64_t request_id = 0;
    bool acknowledged = false;
  };

  void Send(uint64_t id, Request* request);
  void ProbeSilent(TimeMs gap);  // `gap`: time in which this process itself stood still.
  // Dials a server again and repeats its requests: the connection may be dead without either end
  // knowing.
  void DialAnew(PeerId server);
  void Postpone(Code code, Request* request);
  void RecordAnswer(uint64_t id, const Request& request);
  void FinishTicket(Ticket ticket, OpenTicket open);
  // Starts the sequels that are due.
  void StartSequels();
  // Returns true if the server's window has room for this push.
  bool MayPush(uint64_t id, ServerId server) const;
  // Removes a push that is done from its server's window, and sends those that now fit.
  void ClosePush(uint64_t id, ServerId server);
  void FailTicket(Ticket ticket, const Status& status);
  Status StaleSplit() const;  // The requests were split for a view with more servers.
  Status TimeoutOf(const Request& request) const;

  const PsClientOptions options_;
  TimeMs now_ = 0;
  uint64_t next_request_id_ = 1;
  std::shared_ptr<const View> view_;
  std::map<uint64_t, Request> requests_;  // Outstanding, oldest first, by request id.
  std::unordered_map<Ticket, OpenTicket> tickets_;
  std::deque<Sequel> sequels_;  // In the order of their tickets.
  uint64_t next_own_ticket_;
  std::map<PeerId, Link> links_;  // One for each server of the view.
  // [servers]: pushes from the oldest unacknowledged one on.
  std::vector<std::deque<Push>> pushes_;
  std::vector<Dial> dials_;
  std::vector<Outgoing> outgoing_;
  std::vector<TicketResult> results_;
  PsClientCounters counters_;
};

}  // namespace hdps
