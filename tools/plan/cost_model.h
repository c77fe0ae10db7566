// From a job, a cluster and a machine's constants to the time of a step, and what bounds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/plan/job_shape.h"
#include "tools/plan/machine_constants.h"

namespace hdps {

struct PlanQuestion {
  JobShape shape;
  uint32_t batch = 1024;  // Of one step over all workers.
  uint32_t micro_batches = 1;
  bool sync = true;        // Else each push is applied as it comes.
  uint32_t lookahead = 1;  // Steps whose rows are asked for ahead of their turn.
  bool allreduce = false;  // Dense gradients between the workers, not through the servers.

  uint32_t servers = 1, workers = 1;
  // Over which the members are spread evenly, as many servers and as many workers on each; 0: each
  // member has a machine of its own. What members of one machine say to each other stays in it.
  uint32_t machines = 0;
  uint32_t cores = 1;        // Of each machine.
  bool one_machine = false;  // All members share it; `network` does not count.
  bool inproc = false;       // With one_machine: in one process.
  double network_bytes_per_second = 0, network_round_trip_us = 0;

  double rows = 0;              // Distinct keys of the data.
  double zipf = 1.05;           // How unequal they are.
  double unique_share = 0;      // Distinct among a worker's keys of a step; 0: from rows and zipf.
  double changed_share = -1;    // Of a step's rows, those that the step before changed; below 0:
                                // likewise.
  double wire_float_bytes = 4;  // Of weights and gradients to and from servers.
  double text_row_bytes = 0;
  bool first_epoch = false;  // Where rows lie in the files is not known yet.
  // Bytes that one server's rows may take, with their index and what finds those on disk; below 0:
  // as much as they need.
  double row_memory_bytes = -1;
  uint64_t checkpoint_every_steps = 0;
  double dead_after_seconds = 10;
};

// Seconds that a step keeps one thing busy, if it had nothing else to wait for.
struct PlanPart {
  std::string name;  // "worker: products and layers"
  double seconds = 0;
};

inline constexpr size_t kReading = 2;  // Index of the reader's part.

struct PlanAnswer {
  double step_seconds = 0, examples_per_second = 0;
  double unique_share = 0, changed_share = 0;
  bool first_layer_on_rows = false;
  double products_seconds = 0, compute_seconds = 0, exchange_seconds = 0, reader_seconds = 0;
  double pull_seconds = 0, push_seconds = 0, repair_seconds = 0;  // If nobody else was served.
  double kept_rows_seconds = 0;    // Of rows kept at every worker: their sums and updates.
  double core_seconds = 0;         // All members together, if they share a machine.
  double first_epoch_seconds = 0;  // Of reader_seconds, or more where it is not the first.
  double new_rows_seconds = 0;     // More, where none of a step's rows is there yet.
  std::vector<PlanPart> parts;
  size_t bottleneck = 0;  // Index into parts.

  // With a limit: of a table's rows, those in memory; rows that come back from disk a step, of all
  // servers; and the core seconds that takes.
  double share_in_memory = 1, rows_back = 0, rows_back_seconds = 0;

  double worker_bytes_in = 0, worker_bytes_out = 0;  // A worker's link, a step.
  double server_bytes_in = 0, server_bytes_out = 0;  // A server's link, a step.
  double machine_bytes = 0;  // With `machines`: each one's link, a step, in either direction.

  double server_rows = 0;  // Keys at one server.
  double server_row_bytes = 0, server_index_bytes = 0, server_buffer_bytes = 0;
  double worker_bytes = 0;
  double device_bytes = 0;  // Of its GPU, if it has one.

  double checkpoint_bytes = 0;  // Of all servers.
  double checkpoint_seconds = 0;
  double detect_seconds = 0, load_seconds = 0, redo_seconds = 0, recovery_seconds = 0;
};

PlanAnswer Plan(const PlanQuestion& question, const MachineConstants& constants);

}  // namespace hdps
