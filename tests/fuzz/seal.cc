// Fuzzes messages at a data port, and those that set up its sessions.
#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/net/zmq/data_sessions.h"
#include "common/net/zmq/parts.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

constexpr uint64_t kListener = 3;

zmq::message_t PartFrom(std::string_view bytes) {
  return zmq::message_t(bytes.data(), bytes.size());
}

// Parts that claim to be in a session: only those that its other end has encrypted are taken, once.
// In half of the inputs what the other end encrypted is there, with one byte changed or none.
Verdict RunSeal(std::string_view bytes) {
  Input input(bytes);
  DataSessions sessions(2);
  std::optional<CallerId> ended;
  const SessionGrant& grant = sessions.Grant({{7}, 1}, "key", "own", OwnAead(), &ended);
  CHECK(!ended);
  const bool encrypted = (input.Take<uint8_t>() & 1) != 0;
  const auto flip = static_cast<uint8_t>(input.Take<uint8_t>());
  const size_t at = input.Take<uint8_t>();
  std::vector<zmq::message_t> parts;
  while (!input.empty() && parts.size() < kPartsMax + 1) {
    parts.push_back(PartFrom(input.TakeBytes(input.Take<uint8_t>())));
  }
  if (parts.empty()) parts.push_back(PartFrom(""));
  // Without a session, parts may be anything.
  Frame answer;
  answer.header.kind = SessionGrantFrame(grant).header.kind;
  answer.envelope = Buffer::CopyOf(std::as_bytes(std::span(bytes)));
  const std::optional<SessionGrant> read = GrantIn(answer);
  CHECK(!read || bytes.size() == kGrantBytes);
  if (read) {
    const Frame again = SessionGrantFrame(*read);
    CHECK(std::ranges::equal(again.envelope.bytes(), answer.envelope.bytes()));
  }
  AeadFor(answer);

  if (encrypted) DataSession::OfDialer(grant).Encrypt(&parts);
  zmq::message_t& changed = parts[at % parts.size()];
  const bool harmed = encrypted && flip != 0 && changed.size() > 0;
  if (harmed) changed.data<uint8_t>()[at % changed.size()] ^= flip;
  const auto message = [&] {
    std::vector<zmq::message_t> copy;
    copy.push_back(PartFrom("routing id"));
    for (const zmq::message_t& part : parts) copy.push_back(PartFrom(part.to_string_view()));
    return copy;
  };
  bool accepted = false, again = false;
  std::vector<zmq::message_t> taken = message();
  const DataSessions::Session* const session = sessions.Decrypt(kListener, &taken, &accepted);
  CHECK_EQ(accepted, encrypted && !harmed);
  CHECK(!accepted || session != nullptr);
  if (!accepted) return Verdict::kRefused;
  CHECK_EQ(taken.size() + 1, parts.size());
  CHECK(session->routing_id == "routing id" && session->listener == kListener);
  taken = message();
  sessions.Decrypt(kListener, &taken, &again);
  CHECK(!again) << "twice";
  return Verdict::kAccepted;
}

std::vector<std::string> SealSeeds() {
  std::string parts(1, '\x40');
  parts += std::string(64, 'h') + '\x03' + "abc" + '\0' + '\x02' + "xy";
  return {std::string("\x01\x00\x00", 3) + parts,
          std::string("\x01\x04\x43", 3) + parts,
          std::string("\x00\x00\x00", 3) + parts + '\x20' + std::string(32, 's'),
          std::string(8, 'g') + std::string(8, '\1') + std::string(64, 'g'),
          std::string(8, 'g') + '\1' + std::string(7, '\0') + std::string(64, 'g'),
          ""};
}

const AddTarget seal({"seal", RunSeal, SealSeeds});

}  // namespace
}  // namespace hdps::fuzz
