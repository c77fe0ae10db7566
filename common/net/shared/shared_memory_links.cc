// Offers, accepts and uses arenas. SharedMemory decides which process may open which memory.
#include "common/net/shared/shared_memory_links.h"

#include <glog/logging.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "common/base/hash.h"
#include "common/platform/process_watch.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr size_t kPathsMax = 256;
constexpr uint32_t kOfferAgain = 256;    // Offer again after so many frames without an answer.
constexpr uint32_t kSectionsAMark = 16;  // Send a mark after so many sections found no room.

// Kinds of frames between transports, above every MessageKind.
constexpr uint16_t kOfferKind = 0xff01;
constexpr uint16_t kAnswerKind = 0xff02;
constexpr uint16_t kMarkKind = 0xff03;

struct OfferBody {
  uint64_t machine = 0;
  SharedPlace place;
  ArenaLabel label;
};
enum class Verdict : uint64_t { kRefused = 0, kAccepted = 1, kUnknown = 2 };
struct AnswerBody {
  uint64_t arena = 0;
  Verdict verdict = Verdict::kRefused;
  uint64_t pid = 0;  // Process id of the sender.
};
struct MarkBody {
  uint64_t arena = 0;
  uint64_t sequence = 0;
};

template <typename Body>
bool ReadBody(const Buffer& envelope, Body* body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (envelope.size() != sizeof(Body)) return false;
  std::memcpy(static_cast<void*>(body), envelope.data(), sizeof(Body));
  return true;
}

uint64_t MachineNumber() {
  const std::string identity = MachineIdentity();
  return identity.empty() ? 0 : HashString(identity);
}

}  // namespace

Buffer SharedSections::Make(PeerId to, size_t size, std::span<std::byte>* bytes) {
  std::shared_ptr<SharedArena> arena;
  if (size >= kSharedSectionBytesMin) {
    MutexLock lock(mutex_);
    if (const auto found = arenas_.find(to); found != arenas_.end()) arena = found->second;
  }
  Buffer made = arena != nullptr ? arena->Make(size, bytes) : Buffer();
  return made.empty() ? Buffer::Allocate(size, bytes) : made;
}

void SharedSections::Use(PeerId to, std::shared_ptr<SharedArena> arena) {
  MutexLock lock(mutex_);
  if (arena == nullptr) {
    arenas_.erase(to);
  } else {
    arenas_[to] = std::move(arena);
  }
}

SharedMemoryLinks::SharedMemoryLinks(PeerId self, size_t bytes_per_peer)
    : self_(self),
      bytes_per_peer_(bytes_per_peer / kArenaChunkBytes * kArenaChunkBytes),
      machine_(bytes_per_peer_ > 0 ? MachineNumber() : 0) {}

SharedMemoryLinks::~SharedMemoryLinks() {
  for (const auto& [peer, path] : paths_) {
    if (path.watch >= 0) close(path.watch);
  }
}

SharedMemoryLinks::Path* SharedMemoryLinks::PathTo(PeerId peer) {
  const auto found = paths_.find(peer);
  if (found != paths_.end()) return &found->second;
  return paths_.size() < kPathsMax ? &paths_[peer] : nullptr;
}

std::vector<SharedBlock> SharedMemoryLinks::Place(PeerId to, Frame* frame) {
  std::vector<SharedBlock> blocks;
  frame->header.shared_sections = 0;
  if (machine_ == 0) return blocks;
  bool large = false;
  for (const Buffer& section : frame->sections) {
    large = large || section.size() >= kSharedSectionBytesMin;
  }
  Path* path = large ? PathTo(to) : nullptr;
  if (path == nullptr || path->way == Way::kRefused) return blocks;
  if (path->way == Way::kNone) Offer(to, *path);
  if (path->way == Way::kOffered && ++path->unanswered % kOfferAgain == 0) Offer(to, *path);
  if (path->way != Way::kActive) return blocks;
  if (path->without_room >= kSectionsAMark) {
    // Blocks may have been lost in transit. The mark is sent before this frame, so it needs the
    // lower number.
    path->without_room = 0;
    Send(to, kMarkKind, MarkBody{path->arena->label().secret, path->arena->NextMark()});
  }
  for (size_t i = 0; i < frame->sections.size(); ++i) {
    if (frame->sections[i].size() < kSharedSectionBytesMin) continue;
    SharedBlock block;
    if (!path->arena->Lend(frame->sections[i], &block) &&
        !path->arena->Put(frame->sections[i].bytes(), &block)) {
      ++path->without_room;
      continue;
    }
    frame->header.shared_sections |= static_cast<uint8_t>(1u << i);
    blocks.push_back(block);
  }
  return blocks;
}

void SharedMemoryLinks::TakeBack(PeerId to, const std::vector<SharedBlock>& blocks) {
  const auto path = paths_.find(to);
  if (path == paths_.end() || path->second.arena == nullptr) return;
  for (const SharedBlock& block : blocks) path->second.arena->TakeBack(block);
}

Result<Buffer> SharedMemoryLinks::Take(PeerId from, const Buffer& descriptor) {
  SharedBlock block;
  if (!ReadBody(descriptor, &block)) {
    return Status(Code::kCorruption, "a shared section without its place");
  }
  const auto path = paths_.find(from);
  if (path == paths_.end() || path->second.view == nullptr ||
      path->second.view->label().secret != block.arena) {
    Send(from, kAnswerKind, AnswerBody{block.arena, Verdict::kUnknown, 0});
    return Status(Code::kCorruption, "a shared section of memory that is not shared with us");
  }
  return path->second.view->Take(block);
}

// ---- Agreeing.

bool SharedMemoryLinks::IsControl(const FrameHeader& header) {
  return header.kind >= kOfferKind && header.kind <= kMarkKind;
}

void SharedMemoryLinks::Offer(PeerId to, Path& path) {
  path.way = Way::kOffered;
  if (path.arena == nullptr) {
    const ArenaLabel label{self_.value, to.value, NewPeerId().value};
    Result<std::shared_ptr<SharedArena>> arena = SharedArena::Create(label, bytes_per_peer_);
    if (!arena.ok()) {
      LOG(WARNING) << "nothing is shared with a peer of this machine: " << arena.status().message();
      path.way = Way::kRefused;
      return;
    }
    path.arena = *std::move(arena);
  }
  Send(to, kOfferKind, OfferBody{machine_, path.arena->place(), path.arena->label()});
}

void SharedMemoryLinks::OnControl(PeerId from, const Frame& frame) {
  if (frame.header.kind == kOfferKind) return OnOffer(from, frame.envelope);
  if (frame.header.kind == kAnswerKind) return OnAnswer(from, frame.envelope);
  MarkBody mark;
  const auto path = paths_.find(from);
  if (!ReadBody(frame.envelope, &mark) || path == paths_.end()) return;
  const std::shared_ptr<SharedView>& view = path->second.view;
  if (view != nullptr && view->label().secret == mark.arena) view->Pass(mark.sequence);
}

void SharedMemoryLinks::OnOffer(PeerId from, const Buffer& envelope) {
  OfferBody offer;
  if (!ReadBody(envelope, &offer)) return;
  const AnswerBody refused{offer.label.secret, Verdict::kRefused, 0};
  const ArenaLabel expected{from.value, self_.value, offer.label.secret};
  Path* path = PathTo(from);
  if (machine_ == 0 || offer.machine != machine_ || offer.label != expected || path == nullptr) {
    return Send(from, kAnswerKind, refused);
  }
  if (path->view == nullptr || path->view->label() != expected) {
    Result<std::shared_ptr<SharedView>> view = SharedView::Open(offer.place, expected);
    if (!view.ok()) {
      LOG(WARNING) << "memory that peer " << from.value
                   << " offered is not used: " << view.status().message();
      return Send(from, kAnswerKind, refused);
    }
    path->view = *std::move(view);
    Watch(*path, offer.place.pid);
    LOG(INFO) << "large sections of a peer come through shared memory";
  }
  Send(from, kAnswerKind,
       AnswerBody{offer.label.secret, Verdict::kAccepted, static_cast<uint64_t>(getpid())});
}

void SharedMemoryLinks::OnAnswer(PeerId from, const Buffer& envelope) {
  AnswerBody answer;
  const auto found = paths_.find(from);
  if (!ReadBody(envelope, &answer) || found == paths_.end()) return;
  Path& path = found->second;
  if (path.arena == nullptr || path.arena->label().secret != answer.arena) return;
  if (answer.verdict == Verdict::kAccepted) {
    path.way = Way::kActive;
    sections_.Use(from, path.arena);
    Watch(path, answer.pid);
    return;
  }
  // A new process in the peer's place knows nothing of what was shared, and may accept an offer.
  path.way = answer.verdict == Verdict::kUnknown ? Way::kNone : Way::kRefused;
  path.arena.reset();
  sections_.Use(from, nullptr);
  VLOG(1) << "large sections to a peer go with their frames";
}

template <typename Body>
void SharedMemoryLinks::Send(PeerId to, uint16_t kind, const Body& body) {
  Frame frame;
  frame.header.kind = kind;
  frame.envelope = Buffer::CopyOf(std::as_bytes(std::span(&body, 1)));
  outgoing_.push_back({to, std::move(frame)});
}

std::vector<Outgoing> SharedMemoryLinks::TakeOutgoing() { return std::exchange(outgoing_, {}); }

void SharedMemoryLinks::Unsent(const Outgoing& control) {
  const auto path = paths_.find(control.to);
  if (control.frame.header.kind != kOfferKind || path == paths_.end()) return;
  if (path->second.way == Way::kOffered) path->second.way = Way::kNone;
}

// ---- Parting.

void SharedMemoryLinks::Watch(Path& path, uint64_t pid) {
  if (path.watch >= 0 || pid == static_cast<uint64_t>(getpid())) return;
  path.watch = WatchProcess(pid);
}

std::vector<int> SharedMemoryLinks::Watches() const {
  std::vector<int> watches;
  for (const auto& [peer, path] : paths_) {
    if (path.watch >= 0) watches.push_back(path.watch);
  }
  return watches;
}

void SharedMemoryLinks::ForgetEnded(int watch) {
  for (const auto& [peer, path] : paths_) {
    if (path.watch != watch) continue;
    VLOG(1) << "a peer has ended: nothing is shared with it any more";
    return Forget(peer);
  }
}

void SharedMemoryLinks::Forget(PeerId peer) {
  const auto path = paths_.find(peer);
  if (path == paths_.end()) return;
  if (path->second.watch >= 0) close(path->second.watch);
  sections_.Use(peer, nullptr);
  paths_.erase(path);
}

}  // namespace hdps
