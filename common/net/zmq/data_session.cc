// The frames that set up a session, and seals as parts of messages.
#include "common/net/zmq/data_session.h"

#include <cstring>
#include <span>

#include "common/net/zmq/authenticator.h"
#include "common/net/zmq/socket_settings.h"

namespace hdps {
namespace {

constexpr uint16_t kRequestKind = 0xff11, kGrantKind = 0xff12, kEndedKind = 0xff13;

Frame FrameOf(uint16_t kind) {
  Frame frame;
  frame.header.kind = kind;
  return frame;
}

std::vector<std::span<const std::byte>> SpansOf(const std::vector<zmq::message_t>& parts,
                                                size_t first, size_t end) {
  std::vector<std::span<const std::byte>> spans;
  for (size_t i = first; i < end; ++i)
    spans.emplace_back(parts[i].data<std::byte>(), parts[i].size());
  return spans;
}

}  // namespace

Frame SessionRequestFrame() { return FrameOf(kRequestKind); }

Frame SessionGrantFrame(const SessionGrant& grant) {
  Frame frame = FrameOf(kGrantKind);
  frame.envelope = Buffer::CopyOf(std::as_bytes(std::span(&grant, 1)));
  return frame;
}

Frame SessionEndedFrame() { return FrameOf(kEndedKind); }

bool IsSessionRequest(const FrameHeader& header) { return header.kind == kRequestKind; }

bool IsSessionFrame(const FrameHeader& header) {
  return header.kind >= kRequestKind && header.kind <= kEndedKind;
}

std::optional<SessionGrant> GrantIn(const Frame& frame) {
  SessionGrant grant;
  if (frame.header.kind != kGrantKind || frame.envelope.size() != sizeof(grant)) return {};
  std::memcpy(static_cast<void*>(&grant), frame.envelope.data(), sizeof(grant));
  return grant;
}

std::optional<FrameSeal> SealIn(const std::vector<zmq::message_t>& parts) {
  FrameSeal seal;
  if (parts.empty() || parts.back().size() != sizeof(seal)) return {};
  std::memcpy(static_cast<void*>(&seal), parts.back().data(), sizeof(seal));
  return seal;
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

void DataSession::Seal(std::vector<zmq::message_t>* parts) {
  const FrameSeal seal = sealer_.Seal(SpansOf(*parts, 0, parts->size()));
  parts->emplace_back(&seal, sizeof(seal));
}

bool DataSession::Open(std::vector<zmq::message_t>* parts, size_t first) {
  const std::optional<FrameSeal> seal = SealIn(*parts);
  if (!seal || parts->size() <= first) return false;
  if (!checker_.Accept(*seal, SpansOf(*parts, first, parts->size() - 1))) return false;
  parts->pop_back();
  return true;
}

}  // namespace hdps
