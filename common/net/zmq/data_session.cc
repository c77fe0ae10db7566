// Session frames, and encrypted messages.
#include "common/net/zmq/data_session.h"

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "common/net/zmq/authenticator.h"
#include "common/net/zmq/parts.h"
#include "common/net/zmq/socket_settings.h"

namespace hdps {
namespace {

constexpr uint16_t kRequestKind = 0xff14, kGrantKind = 0xff15, kEndedKind = 0xff16;

Frame FrameOf(uint16_t kind) {
  Frame frame;
  frame.header.kind = kind;
  return frame;
}

// Visits the bytes of a grant in wire order.
template <typename Grant, typename Visit>
void VisitGrant(Grant& grant, uint64_t& aead, const Visit& visit) {
  visit(std::as_writable_bytes(std::span(&grant.session, 1)));
  visit(std::as_writable_bytes(std::span(&aead, 1)));
  visit(std::span<std::byte>(grant.to_listener.bytes()));
  visit(std::span<std::byte>(grant.to_dialer.bytes()));
}

}  // namespace

Frame SessionRequestFrame(AeadKind own) {
  Frame frame = FrameOf(kRequestKind);
  frame.envelope = Buffer::CopyOf(std::as_bytes(std::span(&own, 1)));
  return frame;
}

AeadKind AeadFor(const Frame& request) {
  const auto aes = static_cast<std::byte>(AeadKind::kAes256Gcm);
  const bool has_aes = request.envelope.size() == 1 && *request.envelope.data() == aes;
  return has_aes ? OwnAead() : AeadKind::kChaCha20Poly1305;
}

Frame SessionGrantFrame(const SessionGrant& grant) {
  using Bytes = std::array<std::byte, kGrantBytes>;
  const std::shared_ptr<Bytes> bytes(new Bytes, [](Bytes* wiped) {
    SecretKey::Wipe(*wiped);
    delete wiped;
  });
  SessionGrant copy = grant;
  auto aead = static_cast<uint64_t>(grant.aead);
  std::byte* at = bytes->data();
  VisitGrant(copy, aead, [&](std::span<std::byte> field) {
    std::memcpy(at, field.data(), field.size());
    at += field.size();
  });
  Frame frame = FrameOf(kGrantKind);
  frame.envelope = Buffer(bytes, bytes->data(), bytes->size());
  return frame;
}

Frame SessionEndedFrame() { return FrameOf(kEndedKind); }

bool IsSessionRequest(const FrameHeader& header) { return header.kind == kRequestKind; }

bool IsSessionFrame(const FrameHeader& header) {
  return header.kind >= kRequestKind && header.kind <= kEndedKind;
}

std::optional<SessionGrant> GrantIn(const Frame& frame) {
  if (frame.header.kind != kGrantKind || frame.envelope.size() != kGrantBytes) return {};
  SessionGrant grant;
  uint64_t aead = 0;
  const std::byte* at = frame.envelope.data();
  VisitGrant(grant, aead, [&](std::span<std::byte> field) {
    std::memcpy(field.data(), at, field.size());
    at += field.size();
  });
  if (aead > static_cast<uint64_t>(AeadKind::kChaCha20Poly1305)) return {};
  grant.aead = static_cast<AeadKind>(aead);
  return grant;
}

void WipeGrant(const Frame& frame) {
  if (frame.header.kind != kGrantKind) return;
  SecretKey::Wipe({const_cast<std::byte*>(frame.envelope.data()), frame.envelope.size()});
}

std::optional<AuthTag> AuthTagIn(const std::vector<zmq::message_t>& parts) {
  AuthTag tag;
  if (parts.empty() || parts.back().size() != sizeof(tag)) return {};
  std::memcpy(static_cast<void*>(&tag), parts.back().data(), sizeof(tag));
  return tag;
}

zmq::socket_t NewDataListener(zmq::context_t& context, const TransportOptions& options) {
  zmq::socket_t router = NewListener(context, options, nullptr);
  router.set(zmq::sockopt::zap_domain, kOpenDomain);
  return router;
}

zmq::socket_t NewDataDialer(zmq::context_t& context, const TransportOptions& options) {
  zmq::socket_t dealer = NewDialer(context, options, nullptr, "");
  dealer.set(zmq::sockopt::zap_domain, kOpenDomain);
  return dealer;
}

void DataSession::Encrypt(std::vector<zmq::message_t>* parts) {
  // The bytes of `parts` may be shared with the frame, which others may read or send again, so the
  // ciphertext goes into new parts.
  std::vector<zmq::message_t> encrypted(parts->size());
  std::vector<PartToEncrypt> places;
  for (size_t i = 0; i < parts->size(); ++i) {
    zmq::message_t& part = (*parts)[i];
    const bool shares = part.size() >= kSharedPartBytesMin;
    if (shares) encrypted[i].rebuild(part.size());
    places.push_back(
        {{part.data<std::byte>(), part.size()}, (shares ? encrypted[i] : part).data<std::byte>()});
  }
  const AuthTag tag = encryptor_.Encrypt(places);
  for (size_t i = 0; i < parts->size(); ++i) {
    if (encrypted[i].size() > 0) (*parts)[i] = std::move(encrypted[i]);
  }
  parts->emplace_back(&tag, sizeof(tag));
}

bool DataSession::Decrypt(std::vector<zmq::message_t>* parts, size_t first) {
  const std::optional<AuthTag> tag = AuthTagIn(*parts);
  if (!tag || parts->size() <= first) return false;
  std::vector<std::span<std::byte>> places;
  for (size_t i = first; i + 1 < parts->size(); ++i) {
    places.emplace_back((*parts)[i].data<std::byte>(), (*parts)[i].size());
  }
  if (!decryptor_.Decrypt(*tag, places)) return false;
  parts->pop_back();
  return true;
}

}  // namespace hdps
