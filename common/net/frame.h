// The unit of the wire: a header of 64 bytes, a FlatBuffers envelope, and raw sections of bulk
// data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "common/base/buffer.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

inline constexpr uint32_t kFrameMagic = 0x53504448;  // "HDPS" in memory order.
inline constexpr uint16_t kProtocolVersion = 4;
inline constexpr uint32_t kFrameSectionsMax = 8;
inline constexpr uint64_t kEnvelopeBytesMax = 16u << 20;
inline constexpr uint64_t kFrameBytesMax = uint64_t{4} << 30;

// The layout is part of the protocol: change it only together with kProtocolVersion.
struct FrameHeader {
  uint32_t magic = kFrameMagic;          // Tells a stray connection from a corrupt frame.
  uint16_t protocol = kProtocolVersion;  // Protocol version of the sender.
  uint16_t kind = 0;             // MessageKind: the struct of messages.h that the envelope encodes.
  uint64_t sender = 0;           // PeerId of the sender.
  uint64_t view = 0;             // Membership view the sender routed by.
  uint64_t request_id = 0;       // Echoed by the reply; reused, never renewed, by a retry.
  uint32_t envelope_bytes = 0;   // Length of the FlatBuffer after this header.
  uint8_t section_count = 0;     // Raw byte sections after the FlatBuffer.
  uint8_t shared_sections = 0;   // Bit i: section i came through shared memory.
  uint16_t group = 0;            // Between workers and servers: the group of shards.
  uint64_t body_bytes = 0;       // Envelope and sections together.
  uint64_t body_checksum = 0;    // Parts are hashed in order; shared sections are skipped.
  uint64_t header_checksum = 0;  // Checksum of the 56 bytes above; verified before the body.
};

static_assert(sizeof(FrameHeader) == 64);
static_assert(offsetof(FrameHeader, header_checksum) == 56);
static_assert(std::is_trivially_copyable_v<FrameHeader>);
static_assert(std::has_unique_object_representations_v<FrameHeader>, "no padding on the wire");

// Is true if section `i` came through shared memory. The checksum of the body skips it because it
// was never on a network.
inline bool IsShared(const FrameHeader& header, size_t i) {
  return (header.shared_sections >> i & 1) != 0;
}

// A frame in memory. Sections are aligned to 8 bytes, so arrays of keys and floats are used in
// place.
struct Frame {
  FrameHeader header;
  Buffer envelope;
  std::vector<Buffer> sections;
};

// The way in which the receiver verifies the body of a frame: by its checksum, or by the
// authentication tag of a session (zmq/frame_cipher.h), which is stronger. With a tag,
// `body_checksum` is 0.
enum class BodyCheck { kChecksum, kAuthTag };

// Fills in lengths and checksums of `frame.header` from the body. Call it last before sending; the
// caller sets `shared_sections` before.
void ChecksumFrame(Frame& frame, BodyCheck body = BodyCheck::kChecksum);

// Checks magic, protocol, header checksum, lengths, limits and body checksum. Errors:
// kInvalidArgument names both protocol versions if they differ; kCorruption for everything else.
Status CheckFrame(const Frame& frame, BodyCheck body = BodyCheck::kChecksum);

}  // namespace hdps
