// What workers ask of servers in a benchmark: lists of distinct keys, and a worker that pulls and
// pushes them.
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

// The distinct keys of a step; and, once they go by shard, where those of each shard begin, as
// whoever finds the keys of a step knows it (KeySet).
struct StepKeys {
  std::vector<Key> keys;
  std::vector<uint32_t> shard_begin;  // [shards + 1], or empty.

  KeysOfTable OfTable(TableId table, uint32_t row_floats) const;
};
using KeyBatches = std::vector<StepKeys>;

// Each list the distinct ones of `draws` keys out of `rows`, Zipf with `exponent`.
KeyBatches ZipfLists(uint64_t rows, double exponent, size_t draws, size_t lists, uint64_t seed);
// Each list the distinct ones of `batch` examples of 26 ids, each log-uniform over a million of its
// field: the load that ps-lite was measured with.
KeyBatches LogUniformLists(size_t batch, size_t lists, uint64_t seed);
// All of 0..rows-1, cut into lists.
KeyBatches AllKeys(uint64_t rows);
size_t CountKeys(const KeyBatches& lists);
// The same lists in the order in which a worker knows the keys of a step: by shard.
KeyBatches ByShard(KeyBatches lists, uint32_t num_shards);

// Sets every one of `values`, as fast as lines can be written.
void FillLines(std::span<float> values, float value);

// A job whose table kRowsTable has rows of `dim` floats changed by `rule`.
std::string RowsJob(uint32_t dim, const std::string& rule, const std::string& mode = "async");
TableId RowsTable(const Job& job);

// Pulls and pushes lists as a worker does: split by server, asked for, put in place. Rows of a list
// in the order of its shards stay where they came.
class RowWorker {
 public:
  static Result<std::unique_ptr<RowWorker>> Make(RowCluster& cluster, uint32_t worker);

  // From now on a byte of each line of the rows that came is read, as whoever uses them does.
  void ReadRows() { reads_rows_ = true; }
  // Each list once, and all of them again in every other pass, up to `window` on their way.
  Status PullAll(const KeyBatches& lists, size_t window, size_t passes = 1);
  Status PushAll(const KeyBatches& lists, size_t window, size_t passes = 1);
  // What a step asks ahead of its turn, until the rows are here.
  Status PullAhead(const StepKeys& list);
  // The same step at its turn: rows are put in place, and what has changed is asked for: all that
  // pushes since have changed, or nothing. Requires: a PullAhead before it.
  enum class Changes : uint8_t { kAll, kNone };
  Status Repair(Changes changes);
  // So many requests without keys at once, and their answers.
  Status PullNothing(size_t count = 1);
  uint32_t seen() const { return seen_; }
  TransportCounters counters() const { return client_->transport().counters(); }

 private:
  // One list on its way.
  struct Flight {
    KeySplit split;
    PullPlan pull;
    std::vector<float> rows;   // [keys, dim], unless they stay where they came.
    std::vector<Buffer> held;  // There.
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
  uint32_t seen_ = 0;  // What was read: a reader that a compiler cannot leave out.
  std::vector<Flight> flights_;
  Flight ahead_;
  std::vector<PullReply> ahead_replies_;  // [servers asked]
  std::vector<float> gradients_;
  uint64_t next_sequence_ = 0, next_list_ = 1;
};

}  // namespace hdps
