// Makes of the files of a record what a replay has to do: which members train which steps, and in
// which order each server takes their requests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "server/record/order_format.h"

namespace hdps {

// Steps that the same members trained, one after the other, and that no loss has thrown away.
struct ReplaySegment {
  Clock begin = 0, end = 0;
  uint32_t workers = 0, servers = 0;
  ShardMap shards;
  std::vector<std::vector<OrderEntry>> orders;  // [servers]
  // [workers]: steps for all of whose rows a worker asked at once, and none ahead.
  std::vector<std::set<Clock>> asked_whole;
};

// Invariant: each segment begins where the one before it ends.
struct ReplayPlan {
  OrderHeader header;
  std::vector<ReplaySegment> segments;
  // The sum of the servers' digests at the end; none if the run was cut off or is not replayed so
  // far.
  std::optional<std::array<uint64_t, 2>> digest;
  bool whole = false;     // The run ended because nothing was left to train.
  bool end_known = true;  // False in sync mode without a digest: the job trains to its own end.
  std::vector<std::string> warnings;  // Tell people why the replay may not be the run.
  uint64_t entries = 0, bytes = 0;    // Of all files.
};

// A file of the record, and its name for messages.
struct NamedOrderFile {
  std::string name;
  OrderFile file;
};

// Reads the files of a record. Errors: kInvalidArgument if there are none, or one is damaged.
Result<std::vector<NamedOrderFile>> ReadRecord(FileSystem& files, const std::string& folder,
                                               uint64_t* bytes);

// Plans the replay until step `until`, or to the end of the record. Errors: kInvalidArgument if the
// files are not the whole record of one run, or it has no such step.
Result<ReplayPlan> PlanReplay(const std::vector<NamedOrderFile>& record,
                              std::optional<Clock> until);

}  // namespace hdps
