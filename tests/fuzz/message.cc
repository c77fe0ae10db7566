// Fuzzes each message of the protocol: encoding what was decoded gives the same message.

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "common/net/frame.h"
#include "common/protocol/message_frames.h"
#include "tests/common/protocol/message_samples.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

bool Same(const Buffer& a, const Buffer& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

template <typename Message>
Verdict Decode(const Frame& frame) {
  Message message, again;
  const Status status = DecodeMessage(frame, &message);
  if (!status.ok()) return Refused(status, Code::kCorruption);
  const Frame encoded = EncodeMessage(message);
  const Status second = DecodeMessage(encoded, &again);
  CHECK(second.ok()) << second.message();
  const Frame encoded_again = EncodeMessage(again);
  CHECK(Same(encoded.envelope, encoded_again.envelope));
  CHECK(std::ranges::equal(encoded.sections, encoded_again.sections, Same));
  return Verdict::kAccepted;
}

struct Kind {
  MessageKind kind;
  Verdict (*decode)(const Frame& frame);
};
const std::vector<Kind>& Kinds() {
  static const auto* const all = [] {
    auto* kinds = new std::vector<Kind>;
    testing_samples::ForEachSample([&](const auto& message) {
      kinds->push_back({message.kKind, Decode<std::remove_cvref_t<decltype(message)>>});
    });
    return kinds;
  }();
  return *all;
}

Buffer CopyOf(std::string_view bytes) {
  return Buffer::CopyOf(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// The input has the kind, the number of sections, the lengths of envelope and sections, and then
// these.
Verdict Run(std::string_view bytes) {
  Input input(bytes);
  const Kind& kind = Kinds()[input.Take() % Kinds().size()];
  Frame frame;
  frame.header.kind = static_cast<uint16_t>(kind.kind);
  std::vector<size_t> section_bytes(input.Take() % (kFrameSectionsMax + 1));
  const size_t envelope_bytes = input.Take<uint16_t>();
  for (size_t& size : section_bytes) size = input.Take<uint16_t>();
  frame.envelope = CopyOf(input.TakeBytes(envelope_bytes));
  for (const size_t size : section_bytes) frame.sections.push_back(CopyOf(input.TakeBytes(size)));
  ChecksumFrame(frame);
  CHECK(CheckFrame(frame).ok());
  return kind.decode(frame);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  testing_samples::ForEachSample([&](const auto& message) {
    const Frame frame = EncodeMessage(message);
    std::string seed = BytesOf(static_cast<uint8_t>(seeds.size()));
    seed += BytesOf(static_cast<uint8_t>(frame.sections.size()));
    seed += BytesOf(static_cast<uint16_t>(frame.envelope.size()));
    std::string parts(reinterpret_cast<const char*>(frame.envelope.data()), frame.envelope.size());
    for (const Buffer& section : frame.sections) {
      seed += BytesOf(static_cast<uint16_t>(section.size()));
      parts.append(reinterpret_cast<const char*>(section.data()), section.size());
    }
    seeds.push_back(seed + parts);
  });
  return seeds;
}

const AddTarget added({"message", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
