// Computes the checksums of frames before they leave and checks them when they arrive.
#include "common/net/frame.h"

#include <glog/logging.h>

#include <bit>
#include <cstring>
#include <string>

#include "common/base/hash.h"
#include "common/platform/memory_full.h"

namespace hdps {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

uint64_t BodyBytes(const Frame& frame) {
  uint64_t bytes = frame.envelope.size();
  for (const Buffer& section : frame.sections) bytes += section.size();
  return bytes;
}

// Hashes each part with the hash of the part before as the seed, so a moved boundary is noticed.
// Sections in shared memory are skipped: they are as sound as all other memory.
uint64_t BodyChecksum(const Frame& frame, BodyCheck body) {
  if (body == BodyCheck::kAuthTag) return 0;
  uint64_t checksum = HashBytes(frame.envelope.bytes());
  for (size_t i = 0; i < frame.sections.size(); ++i) {
    if (IsShared(frame.header, i)) continue;
    checksum = HashBytes(frame.sections[i].bytes(), checksum);
  }
  return checksum;
}

uint64_t HeaderChecksum(const FrameHeader& header) {
  return HashBytes(
      std::as_bytes(std::span(&header, 1)).first(offsetof(FrameHeader, header_checksum)));
}

Status Corrupt(const std::string& what) { return Status(Code::kCorruption, "frame: " + what); }

}  // namespace

void ChecksumFrame(Frame& frame, BodyCheck body) {
  FrameHeader& header = frame.header;
  CHECK_LE(frame.sections.size(), kFrameSectionsMax);
  CHECK_LE(frame.envelope.size(), kEnvelopeBytesMax);
  header.magic = kFrameMagic;
  header.protocol = kProtocolVersion;
  header.envelope_bytes = static_cast<uint32_t>(frame.envelope.size());
  header.section_count = static_cast<uint8_t>(frame.sections.size());
  header.body_bytes = BodyBytes(frame);
  if (header.body_bytes > kFrameBytesMax) {
    throw MemoryFull(
        "a message between a worker and a server is larger than 4 GiB, which is the most; give the "
        "job more servers, a smaller train.batch_size or smaller dense layers");
  }
  header.body_checksum = BodyChecksum(frame, body);
  header.header_checksum = HeaderChecksum(header);
}

Status CheckFrame(const Frame& frame, BodyCheck body) {
  const FrameHeader& header = frame.header;
  if (header.magic != kFrameMagic) return Corrupt("does not begin with the magic number");
  // The version is checked before the checksum, which another version may compute differently.
  if (header.protocol != kProtocolVersion) {
    return Status(Code::kInvalidArgument,
                  "protocol version " + std::to_string(header.protocol) + " of the sender is not " +
                      std::to_string(kProtocolVersion) +
                      ", which this process speaks: run the same release everywhere");
  }
  if (header.header_checksum != HeaderChecksum(header)) return Corrupt("header checksum differs");
  if (header.section_count != frame.sections.size() || header.section_count > kFrameSectionsMax) {
    return Corrupt(std::to_string(frame.sections.size()) + " sections where the header says " +
                   std::to_string(header.section_count));
  }
  if (header.shared_sections >> header.section_count != 0) {
    return Corrupt("shares sections that it does not have");
  }
  if (header.envelope_bytes != frame.envelope.size() || header.envelope_bytes > kEnvelopeBytesMax) {
    return Corrupt("envelope of " + std::to_string(frame.envelope.size()) +
                   " bytes where the header says " + std::to_string(header.envelope_bytes));
  }
  if (header.body_bytes != BodyBytes(frame) || header.body_bytes > kFrameBytesMax) {
    return Corrupt("body of " + std::to_string(BodyBytes(frame)) + " bytes where the header says " +
                   std::to_string(header.body_bytes));
  }
  if (header.body_checksum != BodyChecksum(frame, body)) return Corrupt("body checksum differs");
  return Status();
}

}  // namespace hdps
