// Generates the requests of workers in a benchmark: lists of distinct keys, and a worker that pulls
// and pushes them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/clusters/row_cluster.h"
#include "common/protocol/row_messages.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/pull_plan.h"

namespace hdps {

struct Job;

// The distinct keys of a step. If they are in the order of shards, also where each shard's keys
// begin, as in KeySet.
struct StepKeys {
  std::vector<Key> keys;
  std::vector<uint32_t> shard_begin;  // [shards + 1]; empty: not ordered by shard.

  KeysOfTable OfTable(TableId table, uint32_t row_floats) const;
};
using KeyBatches = std::vector<StepKeys>;

// Makes lists of the distinct keys among `draws` keys out of `rows`, by Zipf's law with `exponent`.
KeyBatches ZipfLists(uint64_t rows, double exponent, size_t draws, size_t lists, uint64_t seed);
// Makes lists of the distinct keys of `batch` examples of 26 ids, each log-uniform over a million
// per field: the load that ps-lite was measured with.
KeyBatches LogUniformLists(size_t batch, size_t lists, uint64_t seed);
// Cuts the keys 0 to rows-1 into lists.
KeyBatches AllKeys(uint64_t rows);
size_t CountKeys(const KeyBatches& lists);
// Returns the lists ordered by shard, as a worker has the keys of a step.
KeyBatches ByShard(KeyBatches lists, uint32_t num_shards);

// Sets all of `values`, at the speed of memory.
void FillLines(std::span<float> values, float value);

// Returns a job whose RowsTable(), which changes without the others, has rows of `dim` floats with
// optimizer `rule`.
std::string RowsJob(uint32_t dim, const std::string& rule, const std::string& mode = "async");
TableId RowsTable(const Job& job);

// Pulls and pushes lists like a worker: splits them by server, sends requests and places the rows.
// The rows of a list ordered by shard stay in the buffers they arrived in.
class RowWorker {
 public:
  static Result<std::unique_ptr<RowWorker>> Make(RowCluster& cluster, uint32_t worker);

  // From now on reads a byte of each cache line of the pulled rows, as a user of rows would.
  void ReadRows() { reads_rows_ = true; }
  // Processes each list once per pass, with up to `window` in flight.
  Status PullAll(const KeyBatches& lists, size_t window, size_t passes = 1);
  Status PushAll(const KeyBatches& lists, size_t window, size_t passes = 1);
  // Prefetches the rows of a step and waits for them.
  Status PullAhead(const StepKeys& list);
  // Processes the prefetched step at its turn: places the rows and requests those that changed.
  // kAll: every row that was pushed since has changed; kNone: none has. Requires: a PullAhead
  // before.
  enum class Changes : uint8_t { kAll, kNone };
  Status Repair(Changes changes);
  // Sends `count` requests without keys at once and waits for the replies.
  Status PullNothing(size_t count = 1);
  uint32_t seen() const { return seen_; }
  TransportCounters counters() const { return client_->transport().counters(); }

 private:
  // One list in flight.
  struct Flight {
    KeySplit split;
    PullPlan pull;
    // [keys, dim]; empty if the rows stay in `held`.
    std::vector<float> rows;
    std::vector<Buffer> held;  // Buffers the rows arrived in.
    Ticket ticket;
  };
  RowWorker(RowCluster& cluster, std::unique_ptr<RowClient> client);
  Buffer MakeSectionFor(ServerId to, size_t size, std::span<std::byte>* bytes);
  void Split(const StepKeys& list, Flight* flight);
  void StartPull(const StepKeys& list, Flight* flight);
  Status FinishPull(Flight* flight);
  void StartPush(const StepKeys& list, Flight* flight);
  Status FinishPush(Flight* flight);

  RowCluster& cluster_;
  const std::unique_ptr<RowClient> client_;
  const TableId table_;
  const uint32_t dim_;
  const bool sync_;
  bool reads_rows_ = false;
  uint32_t seen_ = 0;  // Sum of what was read, so that the compiler keeps the reads.
  std::vector<Flight> flights_;
  Flight ahead_;
  std::vector<PullReply> ahead_replies_;  // One per server asked.
  std::vector<float> gradients_;
  uint64_t next_sequence_ = 0, next_list_ = 1;
};

}  // namespace hdps
