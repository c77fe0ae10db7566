// Predicts the time of a step, and what bounds it, from a job, a cluster and a machine's constants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/plan/job_shape.h"
#include "tools/plan/machine_constants.h"

namespace hdps {

struct PlanQuestion {
  JobShape shape;
  uint32_t batch = 1024;  // Examples of one step over all workers.
  uint32_t micro_batches = 1;
  bool sync = true;        // False: the servers apply each push when it arrives.
  uint32_t lookahead = 1;  // Steps whose rows are requested before their turn.
  bool allreduce = false;  // Dense gradients travel between the workers, not through the servers.

  uint32_t servers = 1, workers = 1;
  // Number of machines over which the members are spread evenly, each with as many servers and as
  // many workers. 0: each member has a machine of its own. Messages between members of one machine
  // do not use the network.
  uint32_t machines = 0;
  uint32_t cores = 1;        // Cores of one machine.
  bool one_machine = false;  // All members share one machine; `network` does not count.
  bool inproc = false;       // With one_machine: all members share one process.
  double network_bytes_per_second = 0, network_round_trip_us = 0;

  double rows = 0;     // Distinct keys of the data.
  double zipf = 1.05;  // Exponent of the keys' frequency by rank.
  // Distinct keys per key of a worker's step; 0: computed from rows and zipf.
  double unique_share = 0;
  // Share of a step's rows that the previous step changed; below 0: computed from rows and zipf.
  double changed_share = -1;
  // Bytes of a weight or gradient between workers and servers.
  double wire_float_bytes = 4;
  double text_row_bytes = 0;
  bool first_epoch = false;  // The workers do not know yet where rows begin in the files.
  // Bytes that the rows of one server may take, with the index of those in memory and of those on
  // disk; below 0: no limit.
  double row_memory_bytes = -1;
  // Parsed rows that data.cache keeps in memory: bytes of one, and the share of a process's memory
  // that all of them may take. 0: it keeps none there.
  double kept_example_bytes = 0, kept_examples_share = 0;
  uint64_t checkpoint_every_steps = 0;
  double checkpoint_every_seconds = 0;  // 0: not by the clock.
  double dead_after_seconds = 10;
};

// Seconds that a step keeps one resource busy, if it never waits for another.
struct PlanPart {
  std::string name;  // "worker: products and layers"
  double seconds = 0;
};

inline constexpr size_t kReading = 2;  // Index of the reader's part in PlanAnswer::parts.

struct PlanAnswer {
  double step_seconds = 0, examples_per_second = 0;
  double unique_share = 0, changed_share = 0;
  bool first_layer_on_rows = false;
  double products_seconds = 0, compute_seconds = 0, exchange_seconds = 0, reader_seconds = 0;
  // Seconds if no other worker was served.
  double pull_seconds = 0, push_seconds = 0, repair_seconds = 0;
  // Sums and updates of the rows that every worker keeps.
  double kept_rows_seconds = 0;
  double core_seconds = 0;  // Core seconds of all members if they share a machine.
  // Share of reader_seconds that only the first epoch has; comes on top if first_epoch is not set.
  double first_epoch_seconds = 0;
  // Extra time of a step whose rows are all new.
  double new_rows_seconds = 0;
  std::vector<PlanPart> parts;
  size_t bottleneck = 0;  // Index into parts.

  // With a memory limit: the share of the rows in memory, the rows that come back from disk in a
  // step over all servers, and the core seconds that this takes.
  double share_in_memory = 1, rows_back = 0, rows_back_seconds = 0;

  double worker_bytes_in = 0, worker_bytes_out = 0;  // Link of one worker, per step.
  double server_bytes_in = 0, server_bytes_out = 0;  // Link of one server, per step.
  // Link of one machine per step, either direction; only with `machines`.
  double machine_bytes = 0;

  double server_rows = 0;  // Keys at one server.
  double server_row_bytes = 0, server_index_bytes = 0, server_buffer_bytes = 0;
  double worker_bytes = 0;
  double device_bytes = 0;  // Memory on the worker's GPU, if it has one.

  double checkpoint_bytes = 0;  // Bytes of all servers together.
  double checkpoint_seconds = 0;
  double detect_seconds = 0, load_seconds = 0, redo_seconds = 0, recovery_seconds = 0;
};

PlanAnswer Plan(const PlanQuestion& question, const MachineConstants& constants);

}  // namespace hdps
