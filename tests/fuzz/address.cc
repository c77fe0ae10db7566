// Fuzzes addresses, the routing ids of connections, and text for people.
#include "common/net/address.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cstdint>
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

// Opens connections one after the other; none may take another's name, and few are remembered.
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
    CHECK(!is_known || (before.key == id->key && before.dial <= id->dial));
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
    std::array<std::byte, 32> seed{};
    seed[0] = static_cast<std::byte>(i % 7);
    const CallerIdBytes id = BytesOf(CallerIdOf(PeerNameOf(seed), {i % 2 == 0 ? 5u : 0u}, i % 3));
    all.append(id.data(), id.size());
  }
  return {all, "no id"};
}

// Aborts if the text contains control sequences or is not UTF-8.
void CheckSteersNothing(const std::string& text, bool of_lines) {
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    CHECK(first < 0x80 || (first >= 0xc2 && first <= 0xf4)) << at;
    CHECK_LE(at + bytes, text.size());
    uint32_t character = bytes == 1 ? first : first & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      CHECK_EQ(next & 0xc0, 0x80) << at;
      character = character << 6 | (next & 0x3fu);
    }
    const bool line = of_lines && (character == '\n' || character == '\t');
    CHECK(line || character >= 0x20) << at;
    CHECK(character < 0x7f || character > 0x9f) << at;
    CHECK(character < 0x202a || character > 0x202e) << at;
    CHECK(character < 0x2066 || character > 0x2069) << at;
    CHECK(character < 0xd800 || character > 0xdfff) << at;
    at += bytes;
  }
}

Verdict RunOutsideText(std::string_view bytes) {
  const std::string shown = EscapeUntrusted(bytes);
  CHECK_LE(shown.size(), kOutsideBytesMax);
  CHECK_EQ(EscapeUntrusted(shown), shown);
  const std::string lines = EscapeLines(bytes), json = EscapeJson(bytes);
  CheckSteersNothing(shown, /*of_lines=*/false);
  CheckSteersNothing(lines, /*of_lines=*/true);
  CheckSteersNothing(json, /*of_lines=*/true);
  CHECK_EQ(EscapeLines(lines), lines);
  CHECK_EQ(EscapeJson(json), json);
  CHECK_EQ(std::ranges::count(lines, '\n'), std::ranges::count(bytes, '\n'));
  return shown == bytes ? Verdict::kAccepted : Verdict::kRefused;
}
std::vector<std::string> OutsideTextSeeds() {
  return {"plain", "\x1b[2J\n\x9b",
          "\xc2\x9b\t\xe2\x80\xae\xe2\x81\xa6 \xed\xa0\x80\xf4\x90\x80\x80",
          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3", std::string(3000, 'x')};
}

const AddTarget address({"address", RunAddress, AddressSeeds});
const AddTarget callers({"callers", RunCallers, CallersSeeds});
const AddTarget outside_text({"outside_text", RunOutsideText, OutsideTextSeeds});

}  // namespace
}  // namespace hdps::fuzz
