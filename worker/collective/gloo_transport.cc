// Transport between ranks over Gloo's TCP connections. Gloo's own allreduce is not used, because
// its order of addition depends on rank and length. Gloo's exceptions end in this file.
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <exception>
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

class GlooTransport : public HostTransport {
 public:
  GlooTransport(const CollectiveOptions& options,
                std::shared_ptr<gloo::rendezvous::Context> context)
      : HostTransport(options.rank, options.size),
        timeout_(options.timeout_ms),
        context_(std::move(context)),
        next_sent_(options.size, kFirstMessage),
        next_received_(options.size, kFirstMessage) {}

  const char* name() const override { return "gloo"; }

  Status Exchange(std::span<const RankMove> sends, std::span<const RankMove> receives) override {
    Buffers in, out;  // Abort() may use these until receiving_ and sending_ are reset.
    try {
      for (const RankMove& move : receives) {
        in.push_back(context_->createUnboundBuffer(move.data, move.size));
        in.back()->recv(static_cast<int>(move.peer), next_received_[move.peer]++, 0, move.size);
      }
      for (const RankMove& move : sends) {
        out.push_back(context_->createUnboundBuffer(move.data, move.size));
        out.back()->send(static_cast<int>(move.peer), next_sent_[move.peer]++, 0, move.size);
      }
      return WaitFor(in, out);
    } catch (const std::exception& error) {
      MutexLock lock(mutex_);
      receiving_ = sending_ = nullptr;
      if (aborted_) return Cancelled();
      return Status(Code::kUnavailable, "a collective of rank " + std::to_string(rank()) +
                                            " with " + std::to_string(size() - 1) +
                                            " others: " + error.what());
    }
  }

  void Abort() override {
    MutexLock lock(mutex_);
    aborted_ = true;
    if (receiving_ == nullptr) return;
    for (const auto& buffer : *receiving_) buffer->abortWaitRecv();
    for (const auto& buffer : *sending_) buffer->abortWaitSend();
  }

 private:
  using Buffers = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;

  Status WaitFor(const Buffers& in, const Buffers& out) {
    {
      MutexLock lock(mutex_);
      if (aborted_) return Cancelled();
      receiving_ = &in;
      sending_ = &out;
    }
    bool whole = true;
    for (size_t i = 0; whole && i < in.size(); ++i) whole = in[i]->waitRecv(nullptr, timeout_);
    for (size_t i = 0; whole && i < out.size(); ++i) whole = out[i]->waitSend(nullptr, timeout_);
    MutexLock lock(mutex_);
    receiving_ = sending_ = nullptr;
    return whole ? Status() : Cancelled();
  }

  static Status Cancelled() { return Status(Code::kCancelled, "the group was given up"); }

  const std::chrono::milliseconds timeout_;
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  // [ranks]: both ends of a connection count its messages.
  std::vector<uint64_t> next_sent_, next_received_;

  Mutex mutex_;
  bool aborted_ HDPS_GUARDED_BY(mutex_) = false;
  // Buffers of the exchange that is waited for; null: none.
  const Buffers* receiving_ HDPS_GUARDED_BY(mutex_) = nullptr;
  const Buffers* sending_ HDPS_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace

Result<std::shared_ptr<RankTransport>> NewGlooTransport(const CollectiveOptions& options,
                                                        RendezvousStore& store) {
  try {
    gloo::transport::tcp::attr where(options.host.c_str());
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank),
                                                               static_cast<int>(options.size));
    context->setTimeout(std::chrono::milliseconds(options.timeout_ms));
    GlooStore gloo_store(&store, options.group + "/gloo/");
    if (options.size > 1) context->connectFullMesh(gloo_store, device);
    return std::shared_ptr<RankTransport>(
        std::make_shared<GlooTransport>(options, std::move(context)));
  } catch (const std::exception& error) {
    return Status(Code::kUnavailable, "rank " + std::to_string(options.rank) + " at " +
                                          options.host + " could not connect to the other " +
                                          std::to_string(options.size - 1) +
                                          " ranks: " + error.what());
  }
}

}  // namespace hdps
