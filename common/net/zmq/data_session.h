// What two ends agree on over CURVE before frames travel sealed, and seals of ZeroMQ's messages.
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
  uint64_t session = 0;  // Stands in its tags, in the clear.
  AeadKind aead = AeadKind::kAes256Gcm;
  SecretKey to_listener, to_dialer;
};
// As it travels: session and kind in eight bytes each, little-endian, then the two keys.
inline constexpr size_t kGrantBytes = 80;

// Frames between transports, beyond any MessageKind: the dialer asks; the listener grants, or says
// that the session of before has ended.
Frame SessionRequestFrame(AeadKind own);
// Its envelope is wiped where it is let go.
Frame SessionGrantFrame(const SessionGrant& grant);
Frame SessionEndedFrame();
bool IsSessionRequest(const FrameHeader& header);
bool IsSessionFrame(const FrameHeader& header);  // One of the three.
// The AEAD of a session between this machine and the one that has sent `request`: AES where both
// have instructions for it.
AeadKind AeadFor(const Frame& request);
// Nothing: it has ended, or was made by no listener.
std::optional<SessionGrant> GrantIn(const Frame& frame);
// Wipes the keys in a frame that was received, of whose envelope nobody else has a copy.
void WipeGrant(const Frame& frame);

// A ROUTER and a DEALER for frames that are sealed. Whoever speaks the present version of ZeroMQ's
// protocol is let in. The DEALER has no routing id of its own, so nobody can take it.
zmq::socket_t NewDataListener(zmq::context_t& context, const TransportOptions& options);
zmq::socket_t NewDataDialer(zmq::context_t& context, const TransportOptions& options);

// The last of the parts, if it may be one.
std::optional<AuthTag> AuthTagIn(const std::vector<zmq::message_t>& parts);

// Why a message of a session is refused that Open() below does not accept.
inline constexpr char kNoSeal[] =
    "it has no valid seal: it was changed, repeated, overtaken or made up on its way";

// One end of a session: it seals what it sends, and opens what it is sent.
class DataSession {
 public:
  static DataSession OfListener(const SessionGrant& grant) {
    return DataSession(grant, grant.to_dialer, grant.to_listener);
  }
  static DataSession OfDialer(const SessionGrant& grant) {
    return DataSession(grant, grant.to_listener, grant.to_dialer);
  }
  // Encrypts the parts of a frame, as PartsOf() has made them, and appends the tag.
  void Seal(std::vector<zmq::message_t>* parts);
  // Decrypts the parts from `first` on and takes off the tag, the last of them. False when it is
  // none of this session, was there before, or is not of these parts.
  bool Open(std::vector<zmq::message_t>* parts, size_t first);

 private:
  DataSession(const SessionGrant& grant, const SecretKey& out, const SecretKey& in)
      : sealer_(grant.session, grant.aead, out), opener_(grant.session, grant.aead, in) {}

  FrameSealer sealer_;
  FrameOpener opener_;
};

}  // namespace hdps
