// What two ends agree on over CURVE before frames travel sealed, and the seal on ZeroMQ's messages.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/base/buffer.h"
#include "common/net/frame.h"
#include "common/net/transport.h"
#include "common/net/zmq/frame_seal.h"

namespace hdps {

// What a listener tells who has asked for a session. The keys never leave CURVE.
struct SessionGrant {
  uint64_t session = 0;  // Stands in its seals, in the clear.
  SealKey to_listener{}, to_dialer{};
};
static_assert(sizeof(SessionGrant) == 72);

// Frames between transports, beyond any MessageKind: the dialer asks; the listener grants, or says
// that the session of before has ended.
Frame SessionRequestFrame();
Frame SessionGrantFrame(const SessionGrant& grant);
Frame SessionEndedFrame();
bool IsSessionRequest(const FrameHeader& header);
bool IsSessionFrame(const FrameHeader& header);  // One of the three.
// Nothing: it has ended.
std::optional<SessionGrant> GrantIn(const Frame& frame);

// A ROUTER and a DEALER for frames that are sealed. Whoever speaks the present version of ZeroMQ's
// protocol is let in. The DEALER has no routing id of its own, so nobody can take it.
zmq::socket_t NewDataListener(zmq::context_t& context, const TransportOptions& options);
zmq::socket_t NewDataDialer(zmq::context_t& context, const TransportOptions& options);

// The last of the parts, if it may be one.
std::optional<FrameSeal> SealIn(const std::vector<zmq::message_t>& parts);

// Why a message of a session is refused that Open() below does not accept.
inline constexpr char kNoSeal[] =
    "it has no valid seal: it was changed, repeated, overtaken or made up on its way";

// One end of a session: it seals what it sends, and opens what it is sent.
class DataSession {
 public:
  DataSession(uint64_t session, const SealKey& out, const SealKey& in)
      : sealer_(session, out), checker_(session, in) {}
  // Appends the seal of these parts.
  void Seal(std::vector<zmq::message_t>* parts);
  // Takes off the seal, the last of the parts from `first` on. False when it is none of this
  // session, was there before, or is not of these parts.
  bool Open(std::vector<zmq::message_t>* parts, size_t first);

 private:
  FrameSealer sealer_;
  SealChecker checker_;
};

}  // namespace hdps
