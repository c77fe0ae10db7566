// Measures the yardsticks of pulls and pushes: rows without a wire, the wire without rows, and a
// bare socket.
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

// The rows of one server in this process, called without messages.
class RowsAlone {
 public:
  RowsAlone(const Job& job, int threads);

  // Returns the requests that a worker would send for the lists.
  std::vector<PushRequest> RequestsFor(const KeyBatches& lists) const;
  // Executes each request once, in order.
  void PullAll(const std::vector<PushRequest>& requests);
  void PushAll(const std::vector<PushRequest>& requests);
  // Does the same with the work of both ends of a connection: writes the gradients and checks that
  // they are finite.
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
  // Places all sections in the same buffer, which has room for the longest, because replies are not
  // sent.
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
  std::vector<float> written_;  // Gradients of a request, with room for the longest.
  int64_t step_ = 0;
};

// A transport with two ends that carry the bytes of pulls and pushes without reading them. The far
// end has its own thread.
class WireAlone {
 public:
  static Result<std::unique_ptr<WireAlone>> Make(const std::string& transport,
                                                 const std::string& scratch, bool shared = true);
  ~WireAlone();

  // Sends `count` requests of `request_bytes` and waits for replies of `reply_bytes`, with `window`
  // in flight. Returns false if a reply does not arrive.
  bool Exchange(size_t request_bytes, size_t reply_bytes, size_t count, size_t window);

 private:
  WireAlone() = default;
  void Answer();

  std::unique_ptr<Transport> near_, far_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Thread> thread_;
};

// Returns two connected stream sockets, "tcp" over loopback or unix; the caller closes them.
Result<std::array<int, 2>> SocketPair(const std::string& transport);

// Returns the median seconds of `count` round trips of 64 bytes over a blocking bare socket, tcp or
// unix.
Result<double> SocketRoundTrip(const std::string& transport, size_t count);

}  // namespace hdps
