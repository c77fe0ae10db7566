// Dials, and redials when keys have changed.
#include "common/net/zmq/links.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/net/guest_share.h"
#include "common/net/keys/key_folder.h"
#include "common/net/listening.h"
#include "common/net/zmq/parts.h"
#include "common/net/zmq/socket_settings.h"

namespace hdps {
namespace {

constexpr int64_t kTryAnotherKeyMs = 1000;

void DropUnsent(Links::Link& link) {
  link.connection.socket().set(zmq::sockopt::linger, 0);
  if (link.data) link.data->DropUnsent();
}

}  // namespace

KeyRole ListenerRole(PeerId peer) {
  if (peer == kServingPeer) return KeyRole::kServing;
  return peer == kSchedulerPeer ? KeyRole::kScheduler : KeyRole::kServer;
}

Links::Link* Links::To(PeerId peer) {
  const auto link = std::ranges::find(links_, peer, &Link::peer);
  return link == links_.end() ? nullptr : &*link;
}

Status Links::Connect(PeerId peer, const std::string& text) {
  HDPS_ASSIGN_OR_RETURN(const Address address,
                        AddressToDial(text, options_.insecure || options_.keys != nullptr));
  const std::string endpoint = address.ToString();
  if (const Link* link = To(peer); link != nullptr && link->address == endpoint) return Status();
  // If a process was replaced, its address now belongs to its successor.
  std::erase_if(links_,
                [&](const Link& link) { return link.peer == peer || link.address == endpoint; });
  HDPS_ASSIGN_OR_RETURN(Link link, Dial(peer, endpoint, 0));
  links_.push_back(std::move(link));
  return Status();
}

Result<Links::Link> Links::Dial(PeerId peer, const std::string& endpoint, size_t attempt) {
  HDPS_ASSIGN_OR_RETURN(const Address address, ParseAddress(endpoint));
  const CallerId id = CallerIdOf(options_.self, peer, ++dials_[peer]);
  std::string listener_key;
  if (ring() != nullptr) {
    const std::vector<std::string> keys = ring()->KeysToDial(ListenerRole(peer));
    if (keys.empty()) {
      return Status(Code::kInvalidArgument,
                    AllowedKeysPath(options_.keys->path()) + " allows no key of a " +
                        std::string(WordOf(ListenerRole(peer))) + ", which is to be dialed");
    }
    listener_key = keys[attempt % keys.size()];
  }
  try {
    zmq::socket_t dealer = NewDialer(context_, options_, ring(), listener_key);
    dealer.set(zmq::sockopt::routing_id, zmq::buffer(BytesOf(id)));
    WatchedSocket connection(context_, std::move(dealer), ring() != nullptr);
    connection.socket().connect(address.Endpoint(address.port));
    Link link{peer,  endpoint, listener_key, std::move(connection), attempt, 0,
              false, false,    nullptr};
    if (ring() != nullptr && address.data_port != 0 && !OwnIsGuest()) {
      link.data =
          std::make_unique<DataLink>(context_, options_, address.Endpoint(address.data_port));
      AskForSession(link);
    }
    return link;
  } catch (const zmq::error_t& error) {
    return Status(Code::kIoError, "dialing " + endpoint + ": " + error.what());
  }
}

bool Links::OwnIsGuest() const {
  const AllowedKey* const own = ring()->Find(ring()->own.public_key);
  return own != nullptr && IsGuest(own->role);
}

void Links::AskForSession(Link& link) {
  Frame request = SessionRequestFrame(OwnAead());
  request.header.sender = options_.self.peer.value;
  ChecksumFrame(request);
  // If there is no room, an earlier request is still queued; every new connection asks again.
  SendParts(link.connection.socket(), nullptr, request, {});
}

size_t Links::OnSessionAnswer(Link& link, const Frame& frame) {
  const size_t dropped = link.data->OnAnswer(frame);
  if (!GrantIn(frame)) AskForSession(link);
  return dropped;
}

void Links::HangUp(PeerId peer) {
  if (Link* link = To(peer); link != nullptr) DropUnsent(*link);
  std::erase_if(links_, [&](const Link& link) { return link.peer == peer; });
}

void Links::DialAnew(Link& link, size_t attempt, int64_t now_ms) {
  Result<Link> anew = Dial(link.peer, link.address, attempt);
  link.dialed_ms = now_ms;
  if (!anew.ok()) {
    LOG(ERROR) << anew.status().message();
    return;
  }
  anew->dialed_ms = now_ms;
  anew->told = link.told;
  DropUnsent(link);
  link = *std::move(anew);
}

void Links::OnNewKeys(const CurveKeys& own_before, int64_t now_ms) {
  const bool ours = own_before != ring()->own;
  for (Link& link : links_) {
    if (ours || !ring()->Allows(link.listener_key)) DialAnew(link, 0, now_ms);
  }
}

void Links::Maintain(int64_t now_ms) {
  for (Link& link : links_) {
    if (link.data) link.data->Maintain(now_ms);
    const HandshakeCounts handshakes = link.connection.TakeHandshakes();
    link.refused = handshakes.failed > 0 || (link.refused && handshakes.finished == 0);
    if (handshakes.finished > 0) {
      link.told = false;
      // Another process may be listening there by now.
      if (link.data) AskForSession(link);
    }
    if (!link.refused) continue;
    if (!link.told) {
      LOG(ERROR) << link.address << " refuses this process, has another key than that of a "
                 << WordOf(ListenerRole(link.peer)) << " in "
                 << AllowedKeysPath(options_.keys->path())
                 << ", or what passes is changed on its way; compare that file on both machines";
      link.told = true;
    }
    if (now_ms >= link.dialed_ms + kTryAnotherKeyMs) DialAnew(link, link.attempt + 1, now_ms);
  }
}

}  // namespace hdps
