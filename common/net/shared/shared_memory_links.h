// Moves large sections to peers on the same machine through shared memory: offers arenas, answers
// offers, uses and drops them, invisibly to the layers above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/net/frame.h"
#include "common/net/node.h"
#include "common/net/section_allocator.h"
#include "common/net/shared/shared_arena.h"

namespace hdps {

// Smaller sections travel in the frame: copying them is cheaper than a block and its return.
inline constexpr size_t kSharedSectionBytesMin = 32u << 10;

// Allocates sections in the arenas that are in use.
class SharedSections : public SectionAllocator {
 public:
  Buffer Make(PeerId to, size_t size, std::span<std::byte>* bytes) override HDPS_EXCLUDES(mutex_);
  // Sets the arena for `to`; null removes it.
  void Use(PeerId to, std::shared_ptr<SharedArena> arena) HDPS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<PeerId, std::shared_ptr<SharedArena>> arenas_ HDPS_GUARDED_BY(mutex_);
};

// All shared-memory links of one transport. When the first large section is to be sent to a peer,
// an arena is offered; it is used once the peer has answered that it could open it. Until then, if
// the peer is on another machine, and while the arena is full, sections travel in the frame.
// Offers, answers and marks are frames between transports that nodes never see.
//
// Requires of the transport: frames to one peer arrive in the order of sending; some may get lost.
// Invariant: what a peer sends costs at most its frames and the memory shared with that peer.
class SharedMemoryLinks {
 public:
  // If `bytes_per_peer` is 0, nothing is ever offered or accepted.
  SharedMemoryLinks(PeerId self, size_t bytes_per_peer);
  ~SharedMemoryLinks();

  // Moves large sections of `frame` into the arena for `to`, as far as there is an arena with room,
  // and sets their bits in the header. Returns the blocks in the order of the bits. Sections that
  // were made in the arena are not copied.
  std::vector<SharedBlock> Place(PeerId to, Frame* frame);
  // Takes back the blocks of a frame that was not sent after all.
  void TakeBack(PeerId to, const std::vector<SharedBlock>& blocks);
  // Returns the section that `descriptor` in a frame of `from` names. Errors: kCorruption if there
  // is none.
  Result<Buffer> Take(PeerId from, const Buffer& descriptor);

  static bool IsControl(const FrameHeader& header);
  // Handles an offer, an answer or a mark. Requires: the frame passed CheckFrame.
  void OnControl(PeerId from, const Frame& frame);
  // Returns control frames that must be sent before any other frame to the same peers.
  std::vector<Outgoing> TakeOutgoing();
  // Notes that a control frame could not be sent, because the peer is not connected yet.
  void Unsent(const Outgoing& control);

  // Returns descriptors for poll(); each is readable once the process of its peer has ended.
  std::vector<int> Watches() const;
  void ForgetEnded(int watch);
  void Forget(PeerId peer);
  // Returns null if nothing is ever shared.
  SectionAllocator* sections() { return machine_ != 0 ? &sections_ : nullptr; }

 private:
  enum class Way { kNone, kOffered, kActive, kRefused };
  struct Path {
    Way way = Way::kNone;
    std::shared_ptr<SharedArena> arena;  // Our arena, in kOffered and kActive.
    std::shared_ptr<SharedView> view;    // The peer's arena, once accepted.
    uint32_t unanswered = 0;             // Frames since the offer.
    uint32_t without_room = 0;           // Sections since the last mark.
    int watch = -1;
  };

  Path* PathTo(PeerId peer);  // Creates the path if missing; returns null if there are too many.
  void Offer(PeerId to, Path& path);
  void OnOffer(PeerId from, const Buffer& envelope);
  void OnAnswer(PeerId from, const Buffer& envelope);
  void Watch(Path& path, uint64_t pid);
  template <typename Body>
  void Send(PeerId to, uint16_t kind, const Body& body);

  const PeerId self_;
  const size_t bytes_per_peer_;
  const uint64_t machine_;  // 0 means unknown, so nothing is shared.
  std::map<PeerId, Path> paths_;
  SharedSections sections_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace hdps
