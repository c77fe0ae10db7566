// A collective over Gloo's TCP transport: each rank adds up one segment, then hands it to all.
// Gloo's own allreduce adds in an order that depends on the rank and the length; only its
// connections are used here. Its exceptions end in this file.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "common/base/thread_annotations.h"
#include "worker/exchange/collective.h"

namespace hdps {
namespace {

// Up to so many floats over all ranks the time is in the number of exchanges, not in the bytes.
constexpr size_t kWholeFloatsMax = 32768;

// Keys and addresses of Gloo, kept on the job's board.
class BoardStore : public gloo::rendezvous::Store {
 public:
  BoardStore(Board* board, std::string prefix) : board_(board), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Throw(board_->Put(prefix_ + key, std::string(data.begin(), data.end())));
  }
  std::vector<char> get(const std::string& key) override {
    Result<std::string> value = board_->Get(prefix_ + key);
    Throw(value.status());
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  static void Throw(const Status& status) {
    if (!status.ok()) throw gloo::Exception(status.message());
  }

  Board* const board_;
  const std::string prefix_;
};

// One buffer's part in an exchange with every other rank.
struct Flow {
  Flow(gloo::Context& context, float* values, size_t count)
      : buffer(context.createUnboundBuffer(values, count * sizeof(float))) {}
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
  uint32_t pending = 0;  // Messages on their way.
};

class GlooCollective : public Collective {
 public:
  GlooCollective(const CollectiveOptions& options,
                 std::shared_ptr<gloo::rendezvous::Context> context)
      : options_(options), context_(std::move(context)) {}

  uint32_t rank() const override { return options_.rank; }
  uint32_t size() const override { return options_.size; }
  const char* name() const override { return "gloo"; }

  Status AllReduceSum(std::span<float> data) override {
    if (size() == 1 || data.empty()) return Status();
    try {
      if (data.size() * size() <= kWholeFloatsMax) return SumWhole(data);
      HDPS_RETURN_IF_ERROR(CollectSegments(data));
      AddSegment(data);
      return SpreadSegments(data);
    } catch (const std::exception& error) {
      return Unavailable("allreduce", error.what());
    }
  }

  Status Barrier() override {
    std::vector<float> all(size());
    return AllReduceSum(all);
  }

  void Abort() override {
    MutexLock lock(mutex_);
    aborted_ = true;
    for (Flow* flow : waiting_) {
      flow->buffer->abortWaitRecv();
      flow->buffer->abortWaitSend();
    }
  }

 private:
  Segment MySegment(size_t count) const { return SegmentOf(count, rank(), size()); }

  // One exchange instead of two: every rank gets everything and adds it up itself.
  Status SumWhole(std::span<float> data) {
    const size_t count = data.size();
    parts_.resize(count * size());
    Flow in(*context_, parts_.data(), parts_.size());
    Flow out(*context_, data.data(), count);
    const uint64_t slot = NextSlot();
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      Receive(&in, peer, slot, {count * peer, count});
      Send(&out, peer, slot, {0, count});
    }
    HDPS_RETURN_IF_ERROR(Finish(&in, &out));
    AddParts(data);
    return Status();
  }

  // parts_[r] = rank r's values of my segment.
  Status CollectSegments(std::span<float> data) {
    const Segment mine = MySegment(data.size());
    parts_.resize(mine.size * size());
    Flow in(*context_, parts_.data(), parts_.size());
    Flow out(*context_, data.data(), data.size());
    const uint64_t slot = NextSlot();
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      Receive(&in, peer, slot, {mine.size * peer, mine.size});
      Send(&out, peer, slot, SegmentOf(data.size(), peer, size()));
    }
    return Finish(&in, &out);
  }

  void AddSegment(std::span<float> data) {
    const Segment mine = MySegment(data.size());
    AddParts(data.subspan(mine.begin, mine.size));
  }

  // own = parts_[0] + parts_[1] + ..., where `own` is this rank's part.
  void AddParts(std::span<float> own) {
    const size_t count = own.size();
    std::copy(own.begin(), own.end(), parts_.begin() + static_cast<ptrdiff_t>(count * rank()));
    std::copy_n(parts_.begin(), count, own.begin());
    for (uint32_t r = 1; r < size(); ++r) {
      const float* part = parts_.data() + count * r;
      for (size_t i = 0; i < count; ++i) own[i] += part[i];
    }
  }

  // Every rank's segment of `data` to all.
  Status SpreadSegments(std::span<float> data) {
    const Segment mine = MySegment(data.size());
    Flow in(*context_, data.data(), data.size());
    Flow out(*context_, data.data(), data.size());
    const uint64_t slot = NextSlot();
    for (uint32_t peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      Receive(&in, peer, slot, SegmentOf(data.size(), peer, size()));
      Send(&out, peer, slot, mine);
    }
    return Finish(&in, &out);
  }

  // Empty segments are not sent: Gloo has no message without bytes.
  void Receive(Flow* flow, uint32_t peer, uint64_t slot, Segment segment) {
    if (segment.size == 0) return;
    flow->buffer->recv(static_cast<int>(peer), slot, segment.begin * sizeof(float),
                       segment.size * sizeof(float));
    ++flow->pending;
  }
  void Send(Flow* flow, uint32_t peer, uint64_t slot, Segment segment) {
    if (segment.size == 0) return;
    flow->buffer->send(static_cast<int>(peer), slot, segment.begin * sizeof(float),
                       segment.size * sizeof(float));
    ++flow->pending;
  }

  Status Finish(Flow* in, Flow* out) {
    {
      MutexLock lock(mutex_);
      if (aborted_) return Cancelled();
      waiting_ = {in, out};
    }
    const std::chrono::milliseconds timeout(options_.timeout_ms);
    bool whole = true;
    for (; whole && in->pending > 0; --in->pending) whole = in->buffer->waitRecv(nullptr, timeout);
    for (; whole && out->pending > 0; --out->pending) {
      whole = out->buffer->waitSend(nullptr, timeout);
    }
    MutexLock lock(mutex_);
    waiting_.clear();
    return whole ? Status() : Cancelled();
  }

  Status Unavailable(const std::string& what, const std::string& why) {
    MutexLock lock(mutex_);
    waiting_.clear();
    if (aborted_) return Cancelled();
    return Status(Code::kUnavailable, what + " of rank " + std::to_string(rank()) + " with " +
                                          std::to_string(size() - 1) + " others: " + why);
  }
  static Status Cancelled() { return Status(Code::kCancelled, "the group was given up"); }

  uint64_t NextSlot() { return next_slot_++; }

  const CollectiveOptions options_;
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  uint64_t next_slot_ = 1 << 20;  // Above those Gloo takes while it connects.
  std::vector<float> parts_;      // [size][my segment]

  Mutex mutex_;
  bool aborted_ HDPS_GUARDED_BY(mutex_) = false;
  std::vector<Flow*> waiting_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<Collective>> NewGlooCollective(const CollectiveOptions& options,
                                                      Board& board) {
  try {
    gloo::transport::tcp::attr where(options.host.c_str());
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank),
                                                               static_cast<int>(options.size));
    context->setTimeout(std::chrono::milliseconds(options.timeout_ms));
    BoardStore store(&board, options.group + "/gloo/");
    if (options.size > 1) context->connectFullMesh(store, device);
    return std::unique_ptr<Collective>(
        std::make_unique<GlooCollective>(options, std::move(context)));
  } catch (const std::exception& error) {
    return Status(Code::kUnavailable, "rank " + std::to_string(options.rank) + " at " +
                                          options.host + " could not connect to the other " +
                                          std::to_string(options.size - 1) +
                                          " ranks: " + error.what());
  }
}

}  // namespace hdps
