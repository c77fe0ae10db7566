// Decides which connections are accepted: libzmq asks about each one (ZAP, rfc.zeromq.org/spec/27).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <zmq.hpp>

#include "common/net/keys/key_ring.h"

namespace hdps {

// The ZAP domain of data sockets. They have no CURVE and accept everybody, because their frames are
// authenticated under a session.
inline constexpr char kOpenDomain[] = "open";

// Answers libzmq's questions. The loop that polls the other sockets must poll socket() too: a
// connection opens only after its answer.
//
// Invariant: every peer accepted over CURVE has proved that it holds the secret of an allowed key,
// and all its messages carry that key in memory (KeyOf() of parts.h). In the open domain nothing is
// proved, and messages carry no key.
class Authenticator {
 public:
  explicit Authenticator(zmq::context_t& context);

  zmq::socket_t& socket() { return socket_; }
  void AnswerAll(const KeyRing& ring);
  // Public keys accepted since the last ForgetAdmitted().
  const std::set<std::string>& admitted() const { return admitted_; }
  void ForgetAdmitted() { admitted_.clear(); }
  uint64_t num_admitted() const { return num_admitted_; }
  uint64_t num_refused() const { return num_refused_; }

 private:
  bool Admit(const KeyRing& ring, const std::string& key, const std::string& address);
  void TellRefusal(const std::string& key, const std::string& address, const std::string& why);

  zmq::socket_t socket_;
  std::set<std::string> admitted_;
  std::set<std::string> told_;  // Addresses and keys that were logged, so that each is logged once.
  uint64_t num_admitted_ = 0, num_refused_ = 0;
};

}  // namespace hdps
