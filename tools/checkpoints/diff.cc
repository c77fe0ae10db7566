// Implements hdps diff: compares two checkpoints.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "embedding/table.h"
#include "tools/checkpoints/local_checkpoint.h"
#include "tools/checkpoints/opened_checkpoint.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/scoring/checkpoint_model.h"

namespace hdps {
namespace {

// Differences in one table, or in one of its shards.
struct Difference {
  uint64_t rows = 0;      // Rows that either checkpoint has.
  uint64_t only[2] = {};  // Rows that only the first or only the second has.
  uint64_t differ = 0;    // Rows whose weights or state differ.
  // Largest difference of a weight; a missing row counts as its initial value.
  float largest = 0;
  Key key = 0;  // Key of the row with the largest difference.

  void Add(const Difference& other) {
    rows += other.rows;
    for (int i = 0; i < 2; ++i) only[i] += other.only[i];
    differ += other.differ;
    Take(other.largest, other.key);
  }
  void Take(float difference, Key of) {
    if (difference <= largest) return;
    largest = difference;
    key = of;
  }
};

Result<std::vector<Key>> KeysOf(const TableSlice& slice) {
  std::vector<Key> keys;
  HDPS_RETURN_IF_ERROR(
      slice.VisitRows(4096, [&](std::span<const Key> some, std::span<const float>) {
        keys.insert(keys.end(), some.begin(), some.end());
        return Status();
      }));
  return keys;
}

Result<Difference> Compare(TableSlice& a, TableSlice& b) {
  Difference found;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Key> of_b, KeysOf(b));
  for (TableSlice* holder : {&a, &b}) {
    const bool second = holder == &b;
    TableSlice& other = second ? a : b;
    std::vector<Key> others = of_b;
    if (second) {
      HDPS_ASSIGN_OR_RETURN(others, KeysOf(a));
    }
    const uint32_t dim = holder->dim(), row_floats = dim + holder->state_floats();
    const bool same_state = other.state_floats() == holder->state_floats();
    const uint32_t other_floats = same_state ? row_floats : dim;
    const auto compare = [&](std::span<const Key> keys, std::span<const float> rows) {
      std::vector<float> read(keys.size() * other_floats);
      other.Read(keys, other_floats, read);
      for (size_t k = 0; k < keys.size(); ++k) {
        const bool both = std::ranges::binary_search(others, keys[k]);
        if (both && second) continue;
        ++found.rows;
        if (!both) ++found.only[second];
        const float* const own = rows.data() + k * row_floats;
        const float* const theirs = read.data() + k * other_floats;
        if (both && (!same_state || !std::equal(own, own + row_floats, theirs))) ++found.differ;
        for (uint32_t i = 0; i < dim; ++i) found.Take(std::fabs(own[i] - theirs[i]), keys[k]);
      }
      return Status();
    };
    HDPS_RETURN_IF_ERROR(holder->VisitRows(4096, compare));
  }
  return found;
}

Status CheckComparable(const OpenedCheckpoint& a, const OpenedCheckpoint& b) {
  const auto refuse = [&](const std::string& what) {
    return Status(Code::kInvalidArgument,
                  a.found.folder + " and " + b.found.folder + " cannot be compared: " + what);
  };
  if (a.found.manifest.num_shards != b.found.manifest.num_shards) {
    return refuse("they have " + std::to_string(a.found.manifest.num_shards) + " and " +
                  std::to_string(b.found.manifest.num_shards) + " shards");
  }
  if (a.job.tables.size() != b.job.tables.size()) {
    return refuse("they have " + std::to_string(a.job.tables.size()) + " and " +
                  std::to_string(b.job.tables.size()) + " tables");
  }
  for (size_t t = 0; t < a.job.tables.size(); ++t) {
    const TableSpec &left = a.job.tables[t], &right = b.job.tables[t];
    if (!SameCut(left, right)) {
      return refuse("table '" + left.name + "' has slice_mode " +
                    std::string(WordOf(left.slice_mode)) + " and " +
                    std::string(WordOf(right.slice_mode)) + ", or other slices");
    }
    if (left.name != right.name || left.dim != right.dim || left.shard_by != right.shard_by) {
      return refuse("table '" + left.name + "' of dim " + std::to_string(left.dim) +
                    " stands where the other has '" + right.name + "' of dim " +
                    std::to_string(right.dim));
    }
  }
  return {};
}

Status Diff(const std::vector<std::string>& arguments) {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  if (arguments.size() != 2) {
    return {Code::kInvalidArgument,
            std::to_string(arguments.size()) +
                " checkpoints are named: expected two, hdps diff CHECKPOINT CHECKPOINT"};
  }
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const WantedCopies wanted = WantedCopies::Of(flags.which);
  HDPS_ASSIGN_OR_RETURN(const LocalCheckpoint first,
                        LocalCheckpoint::Open(*files, arguments[0], wanted));
  HDPS_ASSIGN_OR_RETURN(const LocalCheckpoint second,
                        LocalCheckpoint::Open(*files, arguments[1], wanted));
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint a, OpenWithJob(*files, first.path(), flags.which));
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint b, OpenWithJob(*files, second.path(), flags.which));
  HDPS_RETURN_IF_ERROR(CheckComparable(a, b));
  std::vector<Difference> tables(a.job.tables.size());
  for (uint32_t shard = 0; shard < a.found.manifest.num_shards; ++shard) {
    HDPS_ASSIGN_OR_RETURN(std::vector<TableSlice> of_a, ReadShard(*files, a.found, a.job, {shard}));
    HDPS_ASSIGN_OR_RETURN(std::vector<TableSlice> of_b, ReadShard(*files, b.found, b.job, {shard}));
    for (size_t t = 0; t < tables.size(); ++t) {
      HDPS_ASSIGN_OR_RETURN(const Difference found, Compare(of_a[t], of_b[t]));
      tables[t].Add(found);
    }
  }
  PrintOut("a           %s, step %" PRId64 "\n", a.found.folder.c_str(), a.found.manifest.clock);
  PrintOut("b           %s, step %" PRId64 "\n\n", b.found.folder.c_str(), b.found.manifest.clock);
  PrintOut("%-24s %12s %12s %12s %12s %14s  %s\n", "table", "rows", "only in a", "only in b",
           "differ", "largest", "at key");
  float overall = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const Difference& table = tables[t];
    PrintOut("%-24s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %14.9g  ",
             EscapeUntrusted(a.job.tables[t].name).c_str(), table.rows, table.only[0],
             table.only[1], table.differ, static_cast<double>(table.largest));
    if (table.largest == 0) {
      PrintOut("-\n");
    } else {
      PrintOut("%" PRIu64 "\n", table.key);
    }
    if (!(table.largest <= overall)) overall = table.largest;
  }
  PrintOut("\nlargest difference %.9g\n", static_cast<double>(overall));
  return {};
}

}  // namespace

Subcommand DiffCommand() {
  return {"diff",
          "compare two checkpoints",
          "hdps diff CHECKPOINT CHECKPOINT [--which=newest]\n"
          "Prints the rows that only one of them holds, the rows that differ (in weights or\n"
          "optimizer state), and the largest difference of a weight and its key. CHECKPOINT\n"
          "is a checkpoint's folder, or the --out of a run, here or NAME:PATH of rclone.",
          {"which"},
          nullptr,
          Diff};
}

}  // namespace hdps
