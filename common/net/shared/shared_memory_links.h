// The ways from one transport to peers of the same machine through shared memory: offered,
// answered, used for large sections, and given up without a word to anyone above.
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

// Sections below this go with the frame: a block and its way home cost more than the copy.
inline constexpr size_t kSharedSectionBytesMin = 32u << 10;

// Makes sections in the arenas that are in use.
class SharedSections : public SectionAllocator {
 public:
  Buffer Make(PeerId to, size_t size, std::span<std::byte>* bytes) override HDPS_EXCLUDES(mutex_);
  // Null: none any more.
  void Use(PeerId to, std::shared_ptr<SharedArena> arena) HDPS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<PeerId, std::shared_ptr<SharedArena>> arenas_ HDPS_GUARDED_BY(mutex_);
};

// One transport's side of all its paths. The way to a peer begins with an offer of an arena when
// the first large section is to be sent; it is used once the peer has answered that it found it.
// Until then, when the peer is on another machine, and while the arena is full, sections travel in
// the frame. Offers, answers and marks are frames between transports, kept from the nodes.
//
// Requires of the transport: frames to one peer are seen by it in the order they were sent in;
// some may get lost. Invariant: what a peer sends costs at most the frames and the memory shared
// with that peer.
class SharedMemoryLinks {
 public:
  // `bytes_per_peer` 0: nothing is ever offered or accepted.
  SharedMemoryLinks(PeerId self, size_t bytes_per_peer);
  ~SharedMemoryLinks();

  // Puts sections of `frame` into the arena for `to`, as far as there is one and it has room, and
  // sets their bits in the header. The blocks are in the order of the bits. Those that were made
  // there are not copied.
  std::vector<SharedBlock> Place(PeerId to, Frame* frame);
  // The frame was not sent after all.
  void TakeBack(PeerId to, const std::vector<SharedBlock>& blocks);
  // The section that stands in the frame as `descriptor`. kCorruption when there is none such.
  Result<Buffer> Take(PeerId from, const Buffer& descriptor);

  static bool IsControl(const FrameHeader& header);
  // Requires: the frame passed CheckFrame.
  void OnControl(PeerId from, const Frame& frame);
  // Frames to be sent before any other to the same peers.
  std::vector<Outgoing> TakeOutgoing();
  // One of them could not be sent, as the peer is not connected yet.
  void Unsent(const Outgoing& control);

  // Descriptors for poll(): one is readable when its peer's process has ended.
  std::vector<int> Watches() const;
  void ForgetEnded(int watch);
  void Forget(PeerId peer);
  // Null where nothing is ever shared.
  SectionAllocator* sections() { return machine_ != 0 ? &sections_ : nullptr; }

 private:
  enum class Way { kNone, kOffered, kActive, kRefused };
  struct Path {
    Way way = Way::kNone;
    std::shared_ptr<SharedArena> arena;  // Ours: kOffered and kActive.
    std::shared_ptr<SharedView> view;    // The peer's, once we accepted it.
    uint32_t unanswered = 0;             // Frames since the offer.
    uint32_t without_room = 0;           // Sections since the last mark.
    int watch = -1;
  };

  Path* PathTo(PeerId peer);  // Made if it is missing; nullptr when there are too many.
  void Offer(PeerId to, Path& path);
  void OnOffer(PeerId from, const Buffer& envelope);
  void OnAnswer(PeerId from, const Buffer& envelope);
  void Watch(Path& path, uint64_t pid);
  template <typename Body>
  void Send(PeerId to, uint16_t kind, const Body& body);

  const PeerId self_;
  const size_t bytes_per_peer_;
  const uint64_t machine_;  // 0: unknown, so nothing is shared.
  std::map<PeerId, Path> paths_;
  SharedSections sections_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace hdps
