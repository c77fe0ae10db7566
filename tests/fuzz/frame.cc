// Fuzzes frames in parts, as a transport receives them: a changed frame is refused.
#include "common/net/frame.h"

#include <glog/logging.h>

#include <cstring>
#include <span>
#include <string>

#include "common/protocol/message_frames.h"
#include "tests/common/protocol/message_samples.h"
#include "tests/fuzz/target.h"

namespace hdps::fuzz {
namespace {

Buffer CopyOf(std::string_view bytes) {
  return Buffer::CopyOf(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// Reads the header, the length of each part, and the parts.
Frame TakeFrame(Input* input) {
  Frame frame;
  const std::string_view header = input->TakeBytes(sizeof(FrameHeader));
  std::memcpy(reinterpret_cast<char*>(&frame.header), header.data(), header.size());
  const size_t envelope_bytes = input->Take<uint16_t>();
  std::vector<size_t> section_bytes(input->Take() % (kFrameSectionsMax + 2));
  for (size_t& bytes : section_bytes) bytes = input->Take<uint16_t>();
  frame.envelope = CopyOf(input->TakeBytes(envelope_bytes));
  for (const size_t bytes : section_bytes)
    frame.sections.push_back(CopyOf(input->TakeBytes(bytes)));
  return frame;
}

std::string BytesOfFrame(const Frame& frame) {
  std::string bytes = BytesOf(frame.header);
  bytes += BytesOf(static_cast<uint16_t>(frame.envelope.size()));
  bytes += BytesOf(static_cast<uint8_t>(frame.sections.size()));
  std::string parts(reinterpret_cast<const char*>(frame.envelope.data()), frame.envelope.size());
  for (const Buffer& section : frame.sections) {
    bytes += BytesOf(static_cast<uint16_t>(section.size()));
    parts.append(reinterpret_cast<const char*>(section.data()), section.size());
  }
  return bytes + parts;
}

bool SameHeader(const FrameHeader& a, const FrameHeader& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// Changes one byte of a frame with a valid checksum: it must be refused, unless the byte is in a
// shared section.
void CheckChangeIsNoticed(Frame frame, size_t at, uint8_t mask) {
  if (mask == 0) return;
  const size_t whole = sizeof(FrameHeader) + frame.header.body_bytes;
  at %= whole;
  if (at < sizeof(FrameHeader)) {
    reinterpret_cast<uint8_t*>(&frame.header)[at] ^= mask;
  } else {
    at -= sizeof(FrameHeader);
    Buffer* part = &frame.envelope;
    for (size_t i = 0; at >= part->size(); ++i) {
      at -= part->size();
      part = &frame.sections[i];
      if (IsShared(frame.header, i) && at < part->size()) return;
    }
    std::span<std::byte> copy;
    Buffer changed = Buffer::Allocate(part->size(), &copy);
    std::memcpy(copy.data(), part->data(), part->size());
    copy[at] ^= std::byte{mask};
    *part = changed;
  }
  CHECK(!CheckFrame(frame).ok());
}

Verdict Run(std::string_view bytes) {
  Input input(bytes);
  const bool repaired = TakeChecksumRepair(input);
  const size_t at = input.Take<uint16_t>();
  const uint8_t mask = input.Take();
  Frame frame = TakeFrame(&input);
  if (repaired && frame.sections.size() <= kFrameSectionsMax) ChecksumFrame(frame);
  const Status status = CheckFrame(frame);
  if (!status.ok()) {
    CHECK(!status.message().empty());
    CHECK(status.code() == Code::kCorruption || status.code() == Code::kInvalidArgument);
    return Verdict::kRefused;
  }
  Frame again = frame;
  ChecksumFrame(again);
  CHECK(SameHeader(again.header, frame.header));
  CheckChangeIsNoticed(frame, at, mask);
  return Verdict::kAccepted;
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  testing_samples::ForEachSample([&](const auto& message) {
    Frame frame = EncodeMessage(message);
    frame.header.sender = 41;
    frame.header.view = 42;
    ChecksumFrame(frame);
    const char repaired = static_cast<char>(seeds.size() % 2);
    seeds.push_back(repaired + BytesOf(uint16_t{70}) + "\1" + BytesOfFrame(frame));
  });
  return seeds;
}

const AddTarget added({"frame", Run, Seeds});

}  // namespace
}  // namespace hdps::fuzz
