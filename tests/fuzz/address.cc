// Addresses, how connections name themselves, and text for people.
#include "common/net/address.h"

#include <glog/logging.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/net/callers.h"
#include "common/net/transport.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

Verdict RunAddress(std::string_view bytes) {
  const std::string text(bytes);
  const Result<Address> address = ParseAddress(text);
  const Status open = CheckAddress(text, true), closed = CheckAddress(text, false);
  CHECK(open.ok() || !closed.ok());
  if (!address.ok()) {
    CHECK(!open.ok());
    return Refused(address.status(), Code::kInvalidArgument);
  }
  const std::string shown = address->ToString();
  CHECK_LE(shown.size(), kAddressBytesMax);
  const Result<Address> again = ParseAddress(shown);
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(again->ToString(), shown);
  CHECK_EQ(again->OnThisMachine(), address->OnThisMachine());
  CHECK(closed.ok() == address->OnThisMachine()) << shown;
  return Verdict::kAccepted;
}
std::vector<std::string> AddressSeeds() {
  return {"tcp://127.0.0.1:5000", "tcp://10.0.0.2:5000+5001",
          "localhost:1",          "tcp://*:0",
          "ipc:///tmp/a.sock",    "inproc://name",
          "host-1.a_b:9",         "tcp://[::1]:80",
          "tcp://256.1.1.1:65536"};
}

// Connections one after the other; nobody takes another's name, and few are remembered.
Verdict RunCallers(std::string_view bytes) {
  constexpr size_t kCallers = 4;
  Input input(bytes);
  Callers callers({5}, kCallers);
  std::map<uint64_t, CallerId> heard;
  size_t accepted = 0;
  while (!input.empty()) {
    const std::string_view text = input.TakeBytes(sizeof(CallerIdBytes));
    const std::optional<CallerId> id = ParseCallerId(std::span(text.data(), text.size()));
    if (!id) continue;
    const CallerIdBytes again = BytesOf(*id);
    CHECK(std::string_view(again.data(), again.size()) == text);
    const CallerId* const known = callers.Find(id->peer);
    const bool is_known = known != nullptr;
    const CallerId before = is_known ? *known : CallerId();
    const Status status = callers.Hear(*id);
    if (!status.ok()) continue;
    ++accepted;
    CHECK(id->peer.value > kSchedulerPeer.value && id->peer.value != 5);
    CHECK(!is_known || (before.secret == id->secret && before.dial <= id->dial));
    heard[id->peer.value] = *id;
    size_t remembered = 0;
    for (const auto& [peer, last] : heard) remembered += callers.Find({peer}) != nullptr;
    CHECK_LE(remembered, kCallers);
    CHECK(callers.Find(id->peer) != nullptr);
  }
  return accepted > 0 ? Verdict::kAccepted : Verdict::kRefused;
}
std::vector<std::string> CallersSeeds() {
  std::string all;
  for (uint64_t i = 0; i < 12; ++i) {
    const CallerIdBytes id = BytesOf(CallerId{{2 + i % 7}, 100 + i / 9, i % 3});
    all.append(id.data(), id.size());
  }
  return {all, "no id"};
}

Verdict RunOutsideText(std::string_view bytes) {
  const std::string shown = ShowOutside(bytes);
  if (shown.size() <= kOutsideBytesMax) CHECK_EQ(ShowOutside(shown), shown);  // It was not cut.
  for (const char c : shown) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  CHECK_LE(shown.size(), kOutsideBytesMax + 100);
  return shown == bytes ? Verdict::kAccepted : Verdict::kRefused;
}
std::vector<std::string> OutsideTextSeeds() {
  return {"plain", "\x1b[2J\n\x9b", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3",
          std::string(3000, 'x')};
}

const AddTarget address({"address", RunAddress, AddressSeeds});
const AddTarget callers({"callers", RunCallers, CallersSeeds});
const AddTarget outside_text({"outside_text", RunOutsideText, OutsideTextSeeds});

}  // namespace
}  // namespace hdps::fuzz
