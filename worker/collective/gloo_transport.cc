// Transport between ranks over Gloo's TCP connections, and Gloo's own allreduce. Gloo's exceptions
// end in this file.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <exception>
#include <set>
#include <utility>

#include "common/base/thread_annotations.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// First message number; Gloo uses lower ones while it connects.
constexpr uint64_t kFirstMessage = 1 << 20;

// Keeps Gloo's keys and addresses in the job's store.
class GlooStore : public gloo::rendezvous::Store {
 public:
  GlooStore(RendezvousStore* store, std::string prefix)
      : store_(store), prefix_(std::move(prefix)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Throw(store_->Put(prefix_ + key, std::string(data.begin(), data.end())));
  }
  std::vector<char> get(const std::string& key) override {
    Result<std::string> value = store_->Get(prefix_ + key);
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

  RendezvousStore* const store_;
  const std::string prefix_;
};

// The buffers of a group that may be waited for, those of Gloo's own algorithms among them.
//
// Invariant: no wait begins after Abort(), and none goes on.
class OpenBuffers {
 public:
  void Add(gloo::transport::UnboundBuffer* buffer) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    buffers_.insert(buffer);
  }
  void Remove(gloo::transport::UnboundBuffer* buffer) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    buffers_.erase(buffer);
  }
  void Abort() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    aborted_ = true;
    for (gloo::transport::UnboundBuffer* const buffer : buffers_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }
  bool aborted() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return aborted_;
  }

 private:
  Mutex mutex_;
  bool aborted_ HDPS_GUARDED_BY(mutex_) = false;
  std::set<gloo::transport::UnboundBuffer*> buffers_ HDPS_GUARDED_BY(mutex_);
};

// Throws where a wait was aborted, because Gloo's algorithms do not look at what a wait returns.
class OpenBuffer : public gloo::transport::UnboundBuffer {
 public:
  OpenBuffer(std::shared_ptr<OpenBuffers> open, std::unique_ptr<UnboundBuffer> buffer)
      : UnboundBuffer(buffer->ptr, buffer->size),
        open_(std::move(open)),
        buffer_(std::move(buffer)) {
    open_->Add(buffer_.get());
  }
  ~OpenBuffer() override { open_->Remove(buffer_.get()); }

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    return Whole(!open_->aborted() && buffer_->waitRecv(rank, timeout));
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    return Whole(!open_->aborted() && buffer_->waitSend(rank, timeout));
  }
  void abortWaitRecv() override { buffer_->abortWaitRecv(); }
  void abortWaitSend() override { buffer_->abortWaitSend(); }
  void send(int to, uint64_t slot, size_t offset, size_t bytes) override {
    buffer_->send(to, slot, offset, bytes);
  }
  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override {
    buffer_->recv(from, slot, offset, bytes);
  }
  void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override {
    buffer_->recv(std::move(from), slot, offset, bytes);
  }

 private:
  static bool Whole(bool whole) {
    if (!whole) throw gloo::Exception("the group was given up");
    return true;
  }

  const std::shared_ptr<OpenBuffers> open_;
  const std::unique_ptr<UnboundBuffer> buffer_;
};

// Makes every buffer an OpenBuffer.
class OpenConnections : public gloo::transport::Context {
 public:
  OpenConnections(std::shared_ptr<OpenBuffers> open, std::shared_ptr<Context> connections)
      : Context(connections->rank, connections->size),
        open_(std::move(open)),
        connections_(std::move(connections)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override {
    return connections_->getPair(peer);
  }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    return connections_->createPair(peer);
  }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      size_t bytes) override {
    return std::make_unique<OpenBuffer>(open_, connections_->createUnboundBuffer(data, bytes));
  }

 private:
  const std::shared_ptr<OpenBuffers> open_;
  const std::shared_ptr<Context> connections_;
};

// A group of ranks whose waits can be aborted once they are connected.
class GlooGroup : public gloo::rendezvous::Context {
 public:
  using Context::Context;

  void Connect(GlooStore& store, std::shared_ptr<gloo::transport::Device>& device) {
    connectFullMesh(store, device);
    transportContext_ =
        std::make_shared<OpenConnections>(open_buffers_, std::move(transportContext_));
  }
  OpenBuffers& open_buffers() { return *open_buffers_; }

 private:
  const std::shared_ptr<OpenBuffers> open_buffers_ = std::make_shared<OpenBuffers>();
};

class GlooTransport : public HostTransport, private LibraryCalls {
 public:
  GlooTransport(const CollectiveOptions& options, std::shared_ptr<GlooGroup> group)
      : HostTransport(options.rank, options.size),
        timeout_(options.timeout_ms),
        group_(std::move(group)),
        next_sent_(options.size, kFirstMessage),
        next_received_(options.size, kFirstMessage) {}

  const char* name() const override { return "gloo"; }

  Status Exchange(std::span<const RankMove> sends, std::span<const RankMove> receives) override {
    return Try([&] {
      std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> in, out;
      for (const RankMove& move : receives) {
        in.push_back(group_->createUnboundBuffer(move.data, move.size));
        in.back()->recv(static_cast<int>(move.peer), next_received_[move.peer]++, 0, move.size);
      }
      for (const RankMove& move : sends) {
        out.push_back(group_->createUnboundBuffer(move.data, move.size));
        out.back()->send(static_cast<int>(move.peer), next_sent_[move.peer]++, 0, move.size);
      }
      for (const auto& buffer : in) buffer->waitRecv(nullptr, timeout_);
      for (const auto& buffer : out) buffer->waitSend(nullptr, timeout_);
    });
  }

  void Abort() override { group_->open_buffers().Abort(); }

  // Gloo's own reduce-scatter waits in buffers of another kind, which Abort() could not end.
  LibraryCalls* library() override { return this; }
  bool scatters() const override { return false; }
  Status ReduceScatter(Reduction, std::byte*, size_t) override {
    return Status(Code::kInvalidArgument, "Gloo's reduce-scatter is not used");
  }

  Status AllReduce(std::span<const ReducedValues> lists) override {
    return Try([&] {
      for (const ReducedValues& values : lists) {
        gloo::AllreduceOptions options(group_);
        if (ElementBytes(values.reduction) == sizeof(float)) {
          options.setOutput(static_cast<float*>(values.data), values.count);
        } else {
          options.setOutput(static_cast<uint16_t*>(values.data), values.count);
        }
        options.setReduceFunction(
            [of = values.reduction](void* sum, const void* a, const void* b, size_t count) {
              const std::byte* const parts[] = {static_cast<const std::byte*>(a),
                                                static_cast<const std::byte*>(b)};
              CombineOnHost(of, parts, count, static_cast<std::byte*>(sum));
            });
        gloo::allreduce(options);
      }
    });
  }

  Status AllGather(std::byte* all, size_t bytes) override {
    return Try([&] {
      gloo::AllgatherOptions options(group_);
      options.setOutput(reinterpret_cast<uint8_t*>(all), bytes * size());
      gloo::allgather(options);
    });
  }

 private:
  // Makes calls of Gloo; what they throw becomes a status.
  template <typename Calls>
  Status Try(const Calls& calls) {
    const Status cancelled(Code::kCancelled, "the group was given up");
    if (group_->open_buffers().aborted()) return cancelled;
    try {
      calls();
      return Status();
    } catch (const std::exception& error) {
      if (group_->open_buffers().aborted()) return cancelled;
      return Status(Code::kUnavailable, "a collective of rank " + std::to_string(rank()) +
                                            " with " + std::to_string(size() - 1) +
                                            " others: " + error.what());
    }
  }

  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<GlooGroup> group_;
  // [ranks]: both ends of a connection count its messages.
  std::vector<uint64_t> next_sent_, next_received_;
};

}  // namespace

Result<std::shared_ptr<RankTransport>> NewGlooTransport(const CollectiveOptions& options,
                                                        RendezvousStore& store) {
  try {
    gloo::transport::tcp::attr where(options.host.c_str());
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
    auto group =
        std::make_shared<GlooGroup>(static_cast<int>(options.rank), static_cast<int>(options.size));
    group->setTimeout(std::chrono::milliseconds(options.timeout_ms));
    GlooStore gloo_store(&store, options.group + "/gloo/");
    if (options.size > 1) group->Connect(gloo_store, device);
    return std::shared_ptr<RankTransport>(
        std::make_shared<GlooTransport>(options, std::move(group)));
  } catch (const std::exception& error) {
    return Status(Code::kUnavailable, "rank " + std::to_string(options.rank) + " at " +
                                          options.host + " could not connect to the other " +
                                          std::to_string(options.size - 1) +
                                          " ranks: " + error.what());
  }
}

}  // namespace hdps
