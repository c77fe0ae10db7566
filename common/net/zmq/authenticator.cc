// Answers ZAP requests at inproc://zeromq.zap.01.
#include "common/net/zmq/authenticator.h"

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "common/base/outside_text.h"

namespace hdps {
namespace {

constexpr size_t kToldMax = 1024;
constexpr int kAnswersAtOnce = 256;

// The frames of a ZAP request as a ROUTER receives them.
enum Field : size_t {
  kAsker,
  kEmpty,
  kVersion,
  kRequest,
  kDomain,
  kAddress,
  kIdentity,
  kMechanism,
  kCredentials
};

std::string TextOf(const zmq::message_t& part) {
  return std::string(part.data<char>(), part.size());
}

// Returns the public key that was shown; empty if there is none.
std::string KeyShownIn(const std::vector<zmq::message_t>& question) {
  return question.size() == kCredentials + 1 && TextOf(question[kMechanism]) == "CURVE"
             ? CurveKeyText(question[kCredentials].data(), question[kCredentials].size())
             : "";
}

}  // namespace

Authenticator::Authenticator(zmq::context_t& context) : socket_(context, zmq::socket_type::router) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind("inproc://zeromq.zap.01");
}

void Authenticator::AnswerAll(const KeyRing& ring) {
  for (int i = 0; i < kAnswersAtOnce; ++i) {
    std::vector<zmq::message_t> fields;
    for (bool more = true; more;) {
      zmq::message_t field;
      if (zmq_msg_recv(field.handle(), socket_.handle(), ZMQ_DONTWAIT) < 0) return;
      more = field.more();
      fields.push_back(std::move(field));
    }
    if (fields.size() <= kMechanism) continue;  // Not a ZAP request.
    const bool open = TextOf(fields[kDomain]) == kOpenDomain;
    const std::string key = open ? "" : KeyShownIn(fields);
    const bool let_in = open || Admit(ring, key, TextOf(fields[kAddress]));
    // A refusal ends the attempt and tells the other side that it was refused.
    const std::string answer[] = {"1.0",
                                  TextOf(fields[kRequest]),
                                  let_in ? "200" : "400",
                                  let_in ? "OK" : "refused",
                                  let_in ? key : "",
                                  ""};
    zmq_msg_send(fields[kAsker].handle(), socket_.handle(), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_msg_send(fields[kEmpty].handle(), socket_.handle(), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    for (const std::string& field : answer) {
      const bool last = &field == &answer[std::size(answer) - 1];
      // Fails only if the connection has ended meanwhile.
      zmq_send(socket_.handle(), field.data(), field.size(),
               (last ? 0 : ZMQ_SNDMORE) | ZMQ_DONTWAIT);
    }
  }
}

bool Authenticator::Admit(const KeyRing& ring, const std::string& key, const std::string& address) {
  const AllowedKey* allowed = ring.Find(key);
  if (allowed != nullptr && !allowed->revoked) {
    ++num_admitted_;
    admitted_.insert(key);
    return true;
  }
  ++num_refused_;
  TellRefusal(key, address,
              allowed == nullptr ? "is not in the list"
                                 : "of " + allowed->name + ", a " +
                                       std::string(WordOf(allowed->role)) + ", is revoked");
  return false;
}

void Authenticator::TellRefusal(const std::string& key, const std::string& address,
                                const std::string& why) {
  // Anybody can make any number of new keys, so an unknown key is logged once for its address.
  const std::string& whose = why.ends_with("list") ? address : key;
  if (told_.size() >= kToldMax || !told_.insert(whose).second) return;
  LOG(WARNING) << "refused a connection from " << EscapeUntrusted(address, 100) << ": the key "
               << (key.empty() ? "it should have shown" : key) << " " << why;
}

}  // namespace hdps
