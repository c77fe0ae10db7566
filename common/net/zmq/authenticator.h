// Says whose connections are let in: libzmq asks for each one (ZAP, rfc.zeromq.org/spec/27).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <zmq.hpp>

#include "common/net/keys/key_ring.h"

namespace hdps {

// The ZAP domain of sockets without CURVE that let in everybody: what they carry is sealed.
inline constexpr char kOpenDomain[] = "open";

// Its socket is to be polled with the others, and belongs to their loop: a connection is not open
// before it has been answered for.
//
// Invariant: who is let in by CURVE has proved that he has the secret of a key in the list that is
// not revoked; all that comes from him carries that key in memory (KeyOf() of parts.h). In the open
// domain nobody has proved anything, and no key is carried.
class Authenticator {
 public:
  explicit Authenticator(zmq::context_t& context);

  zmq::socket_t& socket() { return socket_; }
  void AnswerAll(const KeyRing& ring);
  // Public keys that were let in since the last ForgetAdmitted().
  const std::set<std::string>& admitted() const { return admitted_; }
  void ForgetAdmitted() { admitted_.clear(); }
  uint64_t num_admitted() const { return num_admitted_; }
  uint64_t num_refused() const { return num_refused_; }

 private:
  bool Admit(const KeyRing& ring, const std::string& key, const std::string& address);
  void TellRefusal(const std::string& key, const std::string& address, const std::string& why);

  zmq::socket_t socket_;
  std::set<std::string> admitted_;
  std::set<std::string> told_;  // Addresses and keys, so that each is logged once.
  uint64_t num_admitted_ = 0, num_refused_ = 0;
};

}  // namespace hdps
