// Makes changed copies of frames.
#include "tests/sim/attacker.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"

namespace hdps::sim {
namespace {

constexpr size_t kSeenMax = 64;
constexpr uint64_t kStrangers = 500'000'000;  // First peer id of strangers.

void ChangeBytes(Buffer* part, const Draw& draw) {
  if (part->empty()) return;
  std::span<std::byte> copy;
  Buffer changed = Buffer::Allocate(part->size(), &copy);
  std::memcpy(copy.data(), part->data(), part->size());
  for (uint64_t bytes = 1 + draw(4); bytes > 0; --bytes) {
    copy[draw(copy.size())] = static_cast<std::byte>(draw(256));
  }
  *part = changed;
}

void ChangeLength(Buffer* part, const Draw& draw) {
  std::vector<std::byte> bytes(part->bytes().begin(), part->bytes().end());
  bytes.resize(draw(2) == 0 ? draw(bytes.size() + 1) : bytes.size() + 1 + draw(16));
  *part = Buffer::CopyOf(std::span<const std::byte>(bytes));
}

Buffer* PartOf(Frame* frame, const Draw& draw) {
  const uint64_t part = draw(frame->sections.size() + 1);
  return part == 0 ? &frame->envelope : &frame->sections[part - 1];
}

}  // namespace

void Harm(Frame* frame, const Draw& draw) {
  FrameHeader& header = frame->header;
  switch (draw(8)) {
    case 0:
      header.view = draw(2) == 0 ? header.view + draw(5) - 2 : draw(2) - 1;
      break;
    case 1:
      header.request_id += draw(5) - 2;
      break;
    case 2:
      header.group = static_cast<uint16_t>(draw(2) == 0 ? draw(4) : draw(65536));
      break;
    case 3:
      header.kind = static_cast<uint16_t>(draw(48));
      break;
    case 4:
      if (draw(2) == 0 && frame->sections.size() < kFrameSectionsMax) {
        frame->sections.push_back(
            Buffer::CopyOf<uint64_t>(std::vector<uint64_t>(draw(9), draw(9))));
      } else if (!frame->sections.empty()) {
        frame->sections.pop_back();
      }
      break;
    case 5:
      ChangeLength(PartOf(frame, draw), draw);
      break;
    default:
      ChangeBytes(PartOf(frame, draw), draw);
  }
  ChecksumFrame(*frame);
}

Attacker::Attacker(SimNetwork* network, uint64_t seed, AttackAs as)
    : network_(*network), random_(MixBits(seed ^ 0xa77ac4u)), as_(as) {
  network_.OnGiven([this](PeerId to, PeerId from, const Frame* frame) {
    if (frame != nullptr) See(to, from, *frame);
  });
}

void Attacker::See(PeerId to, PeerId from, const Frame& frame) {
  if (from.value >= kStrangers) return;  // The attacker's own frame.
  const Seen seen{from, to, frame};
  if (seen_.size() < kSeenMax) {
    seen_.push_back(seen);
  } else {
    seen_[seen_in_all_ % kSeenMax] = seen;
  }
  ++seen_in_all_;
  if (random_.Below(2) == 0) Attack();
}

void Attacker::Attack() {
  const Draw draw = [this](uint64_t bound) { return random_.Below(bound); };
  const Seen& seen = seen_[draw(seen_.size())];
  Frame frame = seen.frame;
  if (draw(8) > 0) Harm(&frame, draw);
  const PeerId to = draw(4) > 0 ? seen.to : seen_[draw(seen_.size())].to;
  PeerId from = seen.from;
  if (as_ == AttackAs::kStranger) {
    from = {kStrangers + draw(8)};
    JoinRequest join;
    ScaleRequest scale;
    if (DecodeMessage(frame, &scale).ok()) return;  // Anyone may send the request of `hdps scale`.
    if (DecodeMessage(frame, &join).ok()) {
      join.job_digest = draw(1000);
      frame = EncodeMessage(join);
    }
  }
  ++sent_;
  network_.Inject(from, to, std::move(frame));
}

}  // namespace hdps::sim
