// Collectives over any transport. Every rank reduces one segment in the order of the ranks and
// sends it to the others. The reductions of libraries, whose order depends on rank and length, are
// used only where they are asked for.
#include "worker/collective/collective.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "worker/collective/library_sums.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// Up to this many bytes over all ranks, the number of exchanges determines the time, not the bytes.
constexpr size_t kWholeBytesMax = 128 << 10;
// A list up to this size travels whole beside longer ones.
constexpr size_t kBesideBytesMax = 4 << 10;

// Sums of integers are the same in any order, so libraries are left out of them.
bool OrderCounts(Reduction reduction) {
  return reduction == Reduction::kSumFloat || reduction == Reduction::kSumFp16 ||
         reduction == Reduction::kSumBf16;
}

class GroupCollective : public Collective {
 public:
  // `members` [size]: ranks of the members in the transport, ascending; `rank` is this one's index
  // there. `library` belongs to the transport, if the members are all its ranks; null: every sum
  // is in order.
  GroupCollective(std::shared_ptr<RankTransport> transport, LibraryCalls* library,
                  std::vector<uint32_t> members, uint32_t rank,
                  std::shared_ptr<CollectiveCounts> counts, CollectiveWatch* watch)
      : transport_(std::move(transport)),
        library_(library),
        members_(std::move(members)),
        rank_(rank),
        counts_(std::move(counts)),
        watch_(watch) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(members_.size()); }
  const char* name() const override { return transport_->name(); }
  void Abort() override { transport_->Abort(); }
  CollectiveCounts counts() const override { return *counts_; }

  Status AllReduce(std::span<const ReducedValues> lists) override {
    if (size() == 1) return Status();
    const WatchedCall call = Begin(CollectiveKind::kAllReduce);
    if (library_ == nullptr) return AllReduceInOrder(lists);
    std::vector<ReducedValues> in_order, by_library;
    for (const ReducedValues& values : lists) {
      if (values.count > 0)
        (OrderCounts(values.reduction) ? by_library : in_order).push_back(values);
    }
    // Counted as a ring sends them.
    for (const ReducedValues& values : by_library) {
      now_->bytes += 2 * values.bytes() * (size() - 1) / size();
    }
    HDPS_RETURN_IF_ERROR(AllReduceByLibrary(*transport_, by_library));
    return in_order.empty() ? Status() : AllReduceInOrder(in_order);
  }

  Status ReduceScatter(const ReducedValues& values, std::span<const size_t> counts,
                       void* mine) override {
    CHECK_EQ(counts.size(), members_.size());
    const bool here = values.space == transport_->space();
    if (values.count == 0) return Status();
    const WatchedCall call = Begin(CollectiveKind::kReduceScatter);
    if (library_ != nullptr && library_->scatters() && size() > 1 &&
        OrderCounts(values.reduction)) {
      now_->bytes += values.bytes() - counts[rank_] * ElementBytes(values.reduction);
      return ReduceScatterByLibrary(*transport_, values, counts, mine);
    }
    HDPS_RETURN_IF_ERROR(Stage({&values, 1}, /*segments_only=*/true));
    lists_.front().counts = counts;
    const Segment segment = SegmentIn(lists_.front(), rank_);
    HDPS_RETURN_IF_ERROR(ExchangeParts());
    const List& list = lists_.front();
    const size_t bytes = list.BytesOf(segment.size);
    // Other ranks have received their segments of the staged copy, so its memory is free.
    auto* const result = here ? static_cast<std::byte*>(mine) : list.data;
    HDPS_RETURN_IF_ERROR(CombineInto(list, segment.size, result));
    if (!here) HDPS_RETURN_IF_ERROR(transport_->CopyOut(mine, values.space, result, bytes));
    return transport_->Finish();
  }

  Status Broadcast(uint32_t root, std::span<std::byte> data, MemorySpace space) override {
    CHECK_LT(root, size());
    if (size() == 1 || data.empty()) return Status();
    const WatchedCall call = Begin(CollectiveKind::kBroadcast);
    std::byte* own = data.data();
    const bool staged = space != transport_->space();
    if (staged) {
      HDPS_ASSIGN_OR_RETURN(own, transport_->Reserve(Scratch::kStaged, data.size()));
      if (rank_ == root) {
        HDPS_RETURN_IF_ERROR(transport_->CopyIn(own, data.data(), space, data.size()));
      }
    }
    const RankMove part = {members_[root], own, data.size()};
    HDPS_RETURN_IF_ERROR(Spread({&part, 1}));
    if (staged && rank_ != root) {
      HDPS_RETURN_IF_ERROR(transport_->CopyOut(data.data(), space, own, data.size()));
    }
    return transport_->Finish();
  }

  Status AllGather(std::span<const std::byte> mine, std::span<const size_t> sizes,
                   std::span<std::byte> all, MemorySpace space) override {
    CHECK_EQ(sizes.size(), members_.size());
    CHECK_EQ(sizes[rank_], mine.size());
    const WatchedCall call = Begin(CollectiveKind::kAllGather);
    std::byte* to = all.data();
    const bool staged = space != transport_->space();
    if (staged) {
      HDPS_ASSIGN_OR_RETURN(to, transport_->Reserve(Scratch::kStaged, all.size()));
    }
    std::vector<RankMove> parts;
    size_t at = 0;
    for (uint32_t r = 0; r < size(); ++r) {
      if (r == rank_ && to + at != mine.data()) {
        HDPS_RETURN_IF_ERROR(transport_->CopyIn(to + at, mine.data(), space, mine.size()));
      }
      if (sizes[r] > 0) parts.push_back({members_[r], to + at, sizes[r]});
      at += sizes[r];
    }
    CHECK_EQ(at, all.size());
    // The libraries' own calls take as many bytes from each rank.
    if (library_ != nullptr && size() > 1 && parts.size() == size() &&
        std::ranges::all_of(sizes, [&](size_t bytes) { return bytes == mine.size(); })) {
      now_->bytes += mine.size() * (size() - 1);
      HDPS_RETURN_IF_ERROR(library_->AllGather(to, mine.size()));
    } else if (size() > 1) {
      HDPS_RETURN_IF_ERROR(Spread(parts));
    }
    if (staged) HDPS_RETURN_IF_ERROR(transport_->CopyOut(all.data(), space, to, all.size()));
    return transport_->Finish();
  }

  Status Exchange(std::span<const RankBytes> sends, std::span<const RankBytes> receives) override {
    const WatchedCall call = Begin(CollectiveKind::kExchange);
    const bool staged = transport_->space() != MemorySpace::kHost;
    size_t bytes = 0;
    for (const RankBytes& part : sends) {
      bytes += Aligned(part.size);
      now_->bytes += part.size;
    }
    for (const RankBytes& part : receives) bytes += Aligned(part.size);
    std::byte* at = nullptr;
    if (staged) {
      HDPS_ASSIGN_OR_RETURN(at, transport_->Reserve(Scratch::kStaged, bytes));
    }
    sends_.clear();
    receives_.clear();
    for (const RankBytes& part : sends) {
      if (staged) {
        HDPS_RETURN_IF_ERROR(transport_->CopyIn(at, part.data, MemorySpace::kHost, part.size));
      }
      sends_.push_back({members_[part.rank], staged ? at : part.data, part.size});
      at += staged ? Aligned(part.size) : 0;
    }
    for (const RankBytes& part : receives) {
      receives_.push_back({members_[part.rank], staged ? at : part.data, part.size});
      at += staged ? Aligned(part.size) : 0;
    }
    HDPS_RETURN_IF_ERROR(transport_->Exchange(sends_, receives_));
    for (size_t i = 0; staged && i < receives.size(); ++i) {
      HDPS_RETURN_IF_ERROR(transport_->CopyOut(receives[i].data, MemorySpace::kHost,
                                               receives_[i].data, receives[i].size));
    }
    return transport_->Finish();
  }

  Status Barrier() override {
    if (size() == 1) return Status();
    const WatchedCall call = Begin(CollectiveKind::kBarrier);
    HDPS_ASSIGN_OR_RETURN(std::byte* const all, transport_->Reserve(Scratch::kStaged, size()));
    std::vector<RankMove> parts;
    for (uint32_t r = 0; r < size(); ++r) parts.push_back({members_[r], all + r, 1});
    HDPS_RETURN_IF_ERROR(Spread(parts));
    return transport_->Finish();
  }

  Result<std::unique_ptr<Collective>> Split(uint32_t part) override {
    std::vector<uint32_t> parts(size());
    const std::vector<size_t> sizes(size(), sizeof(part));
    HDPS_RETURN_IF_ERROR(AllGather(std::as_bytes(std::span(&part, 1)), sizes,
                                   std::as_writable_bytes(std::span(parts)), MemorySpace::kHost));
    std::vector<uint32_t> members;
    uint32_t rank = 0;
    for (uint32_t r = 0; r < size(); ++r) {
      if (parts[r] != part) continue;
      if (r < rank_) ++rank;
      members.push_back(members_[r]);
    }
    return std::unique_ptr<Collective>(std::make_unique<GroupCollective>(
        transport_, nullptr, std::move(members), rank, counts_, watch_));
  }

 private:
  // A list of values during a call.
  struct List {
    ReducedValues values;
    bool whole = false;   // Each rank receives the whole list and reduces it itself: one exchange.
    bool staged = false;  // `data` is a copy.
    std::byte* data = nullptr;   // In the transport's space.
    std::byte* parts = nullptr;  // What this rank reduces, from all ranks.
    size_t stride = 0;           // Bytes from one rank's part to the next.
    // Number of values that each rank reduces; empty: by SegmentOf.
    std::span<const size_t> counts = {};

    size_t BytesOf(size_t count) const { return count * ElementBytes(values.reduction); }
  };

  // Returns the values of a list that a rank reduces.
  Segment SegmentIn(const List& list, uint32_t rank) const {
    if (list.counts.empty()) return SegmentOf(list.values.count, rank, size());
    Segment segment = {0, list.counts[rank]};
    for (uint32_t r = 0; r < rank; ++r) segment.begin += list.counts[r];
    return segment;
  }

  WatchedCall Begin(CollectiveKind kind) {
    now_ = &counts_->kinds[static_cast<size_t>(kind)];
    if (size() > 1) ++now_->calls;
    return WatchedCall(size() > 1 ? watch_ : nullptr);
  }

  // Sends parts to all other members, and counts the bytes that leave this rank.
  Status Spread(std::span<const RankMove> parts) {
    for (const RankMove& part : parts) {
      if (part.peer == transport_->rank()) now_->bytes += part.size * (size() - 1);
    }
    return transport_->Spread(members_, parts);
  }

  Status AllReduceInOrder(std::span<const ReducedValues> lists) {
    HDPS_RETURN_IF_ERROR(Stage(lists));
    HDPS_RETURN_IF_ERROR(ExchangeParts());
    for (const List& list : lists_) {
      const Segment mine = list.whole ? Segment{0, list.values.count} : SegmentIn(list, rank_);
      HDPS_RETURN_IF_ERROR(CombineInto(list, mine.size, list.data + list.BytesOf(mine.begin)));
    }
    HDPS_RETURN_IF_ERROR(SpreadSegments());
    for (const List& list : lists_) {
      if (!list.staged) continue;
      HDPS_RETURN_IF_ERROR(
          transport_->CopyOut(list.values.data, list.values.space, list.data, list.values.bytes()));
    }
    return transport_->Finish();
  }

  // Fills lists_ with the non-empty lists. Those that travel whole come first in the staged memory,
  // so that they are one message per rank.
  Status Stage(std::span<const ReducedValues> lists, bool segments_only = false) {
    lists_.clear();
    size_t total = 0;
    for (const ReducedValues& values : lists) total += values.bytes();
    for (const ReducedValues& values : lists) {
      if (values.count == 0) continue;
      List& list = lists_.emplace_back();
      list.values = values;
      list.whole = !segments_only &&
                   (total * size() <= kWholeBytesMax || values.bytes() * size() <= kBesideBytesMax);
      list.staged = list.whole || values.space != transport_->space();
    }
    std::stable_partition(lists_.begin(), lists_.end(), [](const List& l) { return l.whole; });
    size_t bytes = 0;
    whole_bytes_ = 0;
    for (const List& list : lists_) {
      if (list.staged) bytes += Aligned(list.values.bytes());
      if (list.whole) whole_bytes_ = bytes;
    }
    HDPS_ASSIGN_OR_RETURN(staged_, transport_->Reserve(Scratch::kStaged, bytes));
    std::byte* at = staged_;
    for (List& list : lists_) {
      list.data = list.staged ? at : static_cast<std::byte*>(list.values.data);
      if (!list.staged) continue;
      at += Aligned(list.values.bytes());
      HDPS_RETURN_IF_ERROR(
          transport_->CopyIn(list.data, list.values.data, list.values.space, list.values.bytes()));
    }
    return Status();
  }

  // Sets `parts` of each list to every rank's values of what this rank reduces.
  Status ExchangeParts() {
    size_t bytes = whole_bytes_ * size();
    for (const List& list : lists_) {
      if (!list.whole) bytes += Aligned(list.BytesOf(SegmentIn(list, rank_).size)) * size();
    }
    HDPS_ASSIGN_OR_RETURN(std::byte* const parts, transport_->Reserve(Scratch::kParts, bytes));
    sends_.clear();
    receives_.clear();
    if (whole_bytes_ > 0) HDPS_RETURN_IF_ERROR(MoveWhole(parts));
    std::byte* at = parts + whole_bytes_ * size();
    for (List& list : lists_) {
      if (list.whole) {
        list.parts = parts + (list.data - staged_);
        list.stride = whole_bytes_;
      } else {
        list.parts = at;
        list.stride = Aligned(list.BytesOf(SegmentIn(list, rank_).size));
        at += list.stride * size();
        HDPS_RETURN_IF_ERROR(MoveSegments(list));
      }
    }
    for (const RankMove& move : sends_) now_->bytes += move.size;
    return transport_->Exchange(sends_, receives_);
  }

  Status MoveWhole(std::byte* parts) {
    for (uint32_t r = 0; r < size(); ++r) {
      if (r == rank_) continue;
      sends_.push_back({members_[r], staged_, whole_bytes_});
      receives_.push_back({members_[r], parts + whole_bytes_ * r, whole_bytes_});
    }
    return transport_->CopyIn(parts + whole_bytes_ * rank_, staged_, transport_->space(),
                              whole_bytes_);
  }

  Status MoveSegments(const List& list) {
    const Segment mine = SegmentIn(list, rank_);
    for (uint32_t r = 0; r < size(); ++r) {
      const Segment theirs = SegmentIn(list, r);
      std::byte* const data = list.data + list.BytesOf(theirs.begin);
      std::byte* const part = list.parts + list.stride * r;
      if (r == rank_) {
        HDPS_RETURN_IF_ERROR(
            transport_->CopyIn(part, data, transport_->space(), list.BytesOf(mine.size)));
        continue;
      }
      if (theirs.size > 0) sends_.push_back({members_[r], data, list.BytesOf(theirs.size)});
      if (mine.size > 0) receives_.push_back({members_[r], part, list.BytesOf(mine.size)});
    }
    return Status();
  }

  Status CombineInto(const List& list, size_t count, std::byte* result) {
    return transport_->Combine(list.values.reduction, list.parts, list.stride, size(), count,
                               result);
  }

  // Sends every rank's segments to all ranks.
  Status SpreadSegments() {
    std::vector<RankMove> segments;
    for (const List& list : lists_) {
      for (uint32_t r = 0; !list.whole && r < size(); ++r) {
        const Segment segment = SegmentOf(list.values.count, r, size());
        if (segment.size == 0) continue;
        segments.push_back(
            {members_[r], list.data + list.BytesOf(segment.begin), list.BytesOf(segment.size)});
      }
    }
    return segments.empty() ? Status() : Spread(segments);
  }

  const std::shared_ptr<RankTransport> transport_;
  LibraryCalls* const library_;
  const std::vector<uint32_t> members_;
  const uint32_t rank_;
  const std::shared_ptr<CollectiveCounts> counts_;
  CollectiveWatch* const watch_;

  // The current call.
  CollectiveCounts::OfKind* now_ = nullptr;
  std::vector<List> lists_;  // Lists that travel whole come first.
  std::byte* staged_ = nullptr;
  size_t whole_bytes_ = 0;  // At the front of staged_.
  std::vector<RankMove> sends_, receives_;
};

}  // namespace

Status Collective::ReduceScatter(const ReducedValues& values, void* mine) {
  std::vector<size_t> counts;
  for (uint32_t r = 0; r < size(); ++r) {
    counts.push_back(SegmentOf(values.count, r, size()).size);
  }
  return ReduceScatter(values, counts, mine);
}

std::unique_ptr<Collective> NewCollectiveOver(std::shared_ptr<RankTransport> transport,
                                              CollectiveWatch* watch, bool by_library) {
  std::vector<uint32_t> members;
  for (uint32_t r = 0; r < transport->size(); ++r) members.push_back(r);
  const uint32_t rank = transport->rank();
  LibraryCalls* const library = by_library ? transport->library() : nullptr;
  return std::make_unique<GroupCollective>(std::move(transport), library, std::move(members), rank,
                                           std::make_shared<CollectiveCounts>(), watch);
}

}  // namespace hdps
