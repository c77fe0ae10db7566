// What pulls and pushes are compared with: the rows without the wire, the wire without the rows,
// and a bare socket.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/clusters/row_load.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/protocol/manifest_parts.h"
#include "server/shard_set.h"

namespace hdps {

struct Job;

// The rows of one server in this process, asked without a message.
class RowsAlone {
 public:
  RowsAlone(const Job& job, int threads);

  // What a worker sends for each list.
  std::vector<PushRequest> RequestsFor(const KeyBatches& lists) const;
  // Each request once, in order.
  void PullAll(const std::vector<PushRequest>& requests);
  void PushAll(const std::vector<PushRequest>& requests);
  // The same with what two ends must do besides: the gradients are written, and looked at for
  // numbers that are not finite.
  void PushAllWritten(const std::vector<PushRequest>& requests);
  size_t bytes() const { return rows_.bytes(); }
  Result<std::vector<SavedFile>> Save(FileSystem& files, const std::string& folder, Clock clock) {
    return rows_.Save(files, folder, clock);
  }

 private:
  RequestPlan PlanOf(const PushRequest& request) const;
  void Push(const PushRequest& request);

  const Job& job_;
  const TableId table_;
  const std::unique_ptr<Executor> executor_;
  ShardMap shards_;
  ShardSet rows_;
  // Sections that are all in the same place, with room for the longest: what is read is not sent.
  class OnePlace : public SectionAllocator {
   public:
    Buffer Make(PeerId, size_t size, std::span<std::byte>* bytes) override {
      place_.resize(std::max(place_.size(), size));
      *bytes = std::span(place_).first(size);
      return Buffer();
    }

   private:
    std::vector<std::byte> place_;
  };
  OnePlace read_;
  std::vector<float> written_;  // Gradients of a request; room for the longest.
  int64_t step_ = 0;
};

// Two ends of a transport that carry the bytes of pulls and pushes and look at none of them. The
// far end has a thread of its own.
class WireAlone {
 public:
  static Result<std::unique_ptr<WireAlone>> Make(const std::string& transport,
                                                 const std::string& scratch, bool shared = true);
  ~WireAlone();

  // Sends requests of `request_bytes` and awaits replies of `reply_bytes`, `count` of them,
  // `window` on their way. False when an answer stays out.
  bool Exchange(size_t request_bytes, size_t reply_bytes, size_t count, size_t window);

 private:
  WireAlone() = default;
  void Answer();

  std::unique_ptr<Transport> near_, far_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

// Two connected stream sockets, "tcp" over loopback or unix; the caller closes them.
Result<std::array<int, 2>> SocketPair(const std::string& transport);

// Seconds of one of `count` round trips of 64 bytes over a bare socket, tcp or unix, that blocks:
// the median.
Result<double> SocketRoundTrip(const std::string& transport, size_t count);

}  // namespace hdps
