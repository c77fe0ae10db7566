// The bytes of a record: the order in which one server took the requests of an asynchronous run.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/spec/train_spec.h"
#include "common/net/frame.h"

namespace hdps {

struct PullRequest;

enum class OrderKind : uint8_t {
  kTrainPull = 0,  // A pull to train that reads all rows of its list.
  kPrefetch,       // A pull ahead.
  kRefresh,        // The repair behind a pull ahead.
  kPush,
  kAdvance,  // Its step is the last that the worker has finished.
};
const char* OrderKindName(OrderKind kind);  // "pull", "push", ...

// A request that read or changed rows, or moved a clock.
struct OrderEntry {
  OrderKind kind = OrderKind::kTrainPull;
  WorkerId worker;
  Clock step = 0;
  uint32_t part = 0;  // Key list of the step, as PullRequest::part.

  friend auto operator<=>(const OrderEntry&, const OrderEntry&) = default;
};

// Returns the entry of a pull; none for one that does not train.
std::optional<OrderEntry> EntryOf(WorkerId worker, const PullRequest& request);
// Returns the entry of a worker's request; none if it is of another kind, or damaged.
std::optional<OrderEntry> EntryOf(WorkerId worker, const Frame& request);

// The group of the entries from here on.
struct GroupMark {
  ServerId group;
};
// A view that the server has entered.
struct ViewMark {
  ViewId view;
  uint32_t workers = 0;
  std::vector<ServerId> owner;  // [shards]: the group of each.
  std::vector<ServerId> led;    // Groups of which the server is the primary.
};
// The rows are those of `clock` now: the job begins there, goes back, or goes on.
struct LoadMark {
  Clock clock = 0;
};
// The digest of the server's rows at the end of the job.
struct DigestMark {
  std::array<uint64_t, 2> sum = {};
  Clock clock = 0;
  bool whole = false;  // Nothing was left to train: the job was not stopped.
};

// The order of the alternatives is that of their numbers in the bytes.
using OrderItem = std::variant<OrderEntry, GroupMark, ViewMark, LoadMark, DigestMark>;

// Describes the file before its first item.
struct OrderHeader {
  static constexpr uint32_t kVersion = 1;
  uint64_t job_digest = 0;  // JobDigest() of the run.
  Mode mode = Mode::kAsync;
};

// Makes bytes of items. Most entries are one byte: the worker, the kind, and whether the step is
// that of the worker's entry before or the next one.
//
// Invariant: a block decodes behind the blocks before it.
class OrderEncoder {
 public:
  static std::string Header(const OrderHeader& header);
  void Add(const OrderItem& item);
  size_t size() const { return bytes_.size(); }
  // Returns the items since the last call as a block with its length and checksum; empty if none.
  std::string TakeBlock();

 private:
  void AddEntry(const OrderEntry& entry);
  void AddNumber(uint64_t number);
  void AddFixed(uint64_t number);

  std::string bytes_;
  std::map<WorkerId, Clock> steps_;  // Of the last entry of each worker.
};

// A file of a record holds such items.
struct OrderFile {
  OrderHeader header;
  std::vector<OrderItem> items;
  bool cut = false;  // The last block is not whole: the server was killed while it wrote.
};
// Decodes a file; `name` is its name for messages. Errors: kInvalidArgument if it is no record, of
// another version, or damaged.
Result<OrderFile> DecodeOrderFile(std::span<const std::byte> bytes, const std::string& name);

}  // namespace hdps
