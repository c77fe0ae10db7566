// Sets up sessions over CURVE, and encrypts and verifies ZeroMQ messages under them.
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
#include "common/net/zmq/frame_cipher.h"

namespace hdps {

// The listener's answer to a session request. The keys travel only over CURVE.
struct SessionGrant {
  uint64_t session = 0;  // Stands in every tag, in the clear.
  AeadKind aead = AeadKind::kAes256Gcm;
  SecretKey to_listener, to_dialer;
};
// Wire format: session and kind in eight bytes each, little-endian, then the two keys.
inline constexpr size_t kGrantBytes = 80;

// Control frames between transports, with kinds above every MessageKind. The dialer requests a
// session; the listener grants one, or reports that the session has ended.
Frame SessionRequestFrame(AeadKind own);
// Returns a frame whose envelope is wiped when it is freed.
Frame SessionGrantFrame(const SessionGrant& grant);
Frame SessionEndedFrame();
bool IsSessionRequest(const FrameHeader& header);
bool IsSessionFrame(const FrameHeader& header);  // Is true for any of the three.
// Returns the AEAD for a session with the machine that sent `request`: AES if both machines have
// instructions for it, else ChaCha20.
AeadKind AeadFor(const Frame& request);
// Returns the grant in `frame`, or none if the session has ended or the frame is not a valid grant.
std::optional<SessionGrant> GrantIn(const Frame& frame);
// Wipes the keys in a received frame. Nobody else may have a copy of its envelope.
void WipeGrant(const Frame& frame);

// Make a ROUTER and a DEALER for encrypted frames. They accept everybody who speaks the current
// version of ZeroMQ's protocol. The DEALER has no routing id of its own, so nobody can steal it.
zmq::socket_t NewDataListener(zmq::context_t& context, const TransportOptions& options);
zmq::socket_t NewDataDialer(zmq::context_t& context, const TransportOptions& options);

// Returns the tag in the last part, if that part has the right size.
std::optional<AuthTag> AuthTagIn(const std::vector<zmq::message_t>& parts);

// The reason given when DataSession::Decrypt() does not accept a message.
inline constexpr char kBadAuthTag[] =
    "it has no valid seal: it was changed, repeated, overtaken or made up on its way";

// One end of a session: encrypts and tags what it sends, verifies and decrypts what it receives.
class DataSession {
 public:
  static DataSession OfListener(const SessionGrant& grant) {
    return DataSession(grant, grant.to_dialer, grant.to_listener);
  }
  static DataSession OfDialer(const SessionGrant& grant) {
    return DataSession(grant, grant.to_listener, grant.to_dialer);
  }
  // Encrypts the parts of a frame, as made by PartsOf(), and appends the tag.
  void Encrypt(std::vector<zmq::message_t>* parts);
  // Verifies and decrypts the parts from `first` on, and removes the tag, which is the last part.
  // Returns false if the message belongs to another session, is a repeat, or was changed.
  bool Decrypt(std::vector<zmq::message_t>* parts, size_t first);

 private:
  DataSession(const SessionGrant& grant, const SecretKey& out, const SecretKey& in)
      : encryptor_(grant.session, grant.aead, out), decryptor_(grant.session, grant.aead, in) {}

  FrameEncryptor encryptor_;
  FrameDecryptor decryptor_;
};

}  // namespace hdps
