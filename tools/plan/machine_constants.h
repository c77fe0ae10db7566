// Holds the speeds of one machine: `hdps-bench constants` measures them, `hdps plan` reads them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Speed of the products of a layer on all cores: forward and both gradients.
struct ProductRate {
  double inputs = 0, units = 0, batch = 0;
  double gflops = 0;
};

// Cost of a pull or a push that a worker waits for, from the list of keys to the rows in place:
// base + rows * row + floats * float. It depends on this machine's threads. `dense` is for the long
// rows of dense layers. Rows that arrive in shared memory are used where the server wrote them.
struct ExchangeCost {
  double base_us = 0, row_ns = 0, float_ns = 0, dense_float_ns = 0;
};

// Cost of a step's turn if its rows were prefetched: each row is put in place and checked, and the
// rows that a push has changed are sent again.
struct RepairCost {
  double base_us = 0, row_ns = 0, float_ns = 0, changed_row_ns = 0, changed_float_ns = 0;
};

// Costs of one path between worker and server: inproc (memory), local (one machine: sockets, with
// large sections in shared memory) or socket (sockets alone, as between machines).
struct PathCosts {
  ExchangeCost pull, push;
  RepairCost repair;
};

// Each constant has the unit that its name ends with. The defaults belong to the machine on which
// hdps was developed, with 2 cores and AVX-512: a first guess if nothing was measured.
struct MachineConstants {
  double cores = 2;  // Cores that the products and layers were measured on.
  std::vector<ProductRate> products = {{429, 1024, 4096, 310},
                                       {1024, 512, 4096, 330},
                                       {429, 64, 4096, 360},
                                       {64, 32, 4096, 270},
                                       {3120, 1024, 4096, 355}};
  // Layers beside their products, on all cores. A first layer on distinct rows has other costs:
  // `row_gflops` for the products of these rows, `row_float` for each float of theirs, and
  // `gather_float` for each key and unit.
  double model_example_ns = 1400, model_embedding_float_ns = 0.8;
  double model_activation_float_ns = 0.1;
  double model_row_gflops = 300, model_row_float_ns = 1, model_gather_float_ns = 0.1;
  // Micro-batches, one core: cutting their rows out of those of the step, and summing their
  // gradients.
  double model_merge_row_ns = 1, model_merge_float_ns = 1;
  // The reader, one core. `scan` is the cost of a byte in another worker's row. If there are many
  // workers, each searches all bytes for line ends in the first epoch (`find`), draws all rows, and
  // fetches its own.
  double read_byte_ns = 2.4, scan_byte_ns = 0.3, dedup_key_ns = 10, split_key_ns = 1.5;
  double find_byte_ns = 0.17, draw_row_ns = 9, fetch_row_ns = 3000;
  double cut_key_ns = 11;  // Cost of each key of an example that goes into a micro-batch.
  PathCosts inproc = {{55, 6, 0.3, 0.5}, {85, 8, 0.9, 1}, {70, 4, 0.4, 0, 1.2}};
  PathCosts local = {{190, 9, 0.4, 0.6}, {270, 7, 1.1, 0.9}, {140, 5, 0.4, 0, 1.3}};
  PathCosts socket = {{170, 11, 2.1, 2.1}, {260, 3, 2.9, 2.5}, {220, 2, 0.4, 0, 2.8}};
  double exchange_busy_cores = 1.4;  // While one worker waits.
  // If threads share cores: `beside` is the extra core time per second of work that runs beside a
  // worker; `lockstep` is the share of the cores' time that workers use if they wait for each other
  // in every step.
  double sharing_beside = 0.1, sharing_lockstep = 1;
  // The server's part of an exchange, one core.
  double server_pull_row_ns = 13, server_pull_float_ns = 0.2;
  double server_push_row_ns = 9, server_push_float_ns = 0.7;
  double server_new_row_ns = 13, server_new_float_ns = 30;  // Extra cost of a new row.
  double server_dense_pull_float_ns = 0.25, server_dense_push_float_ns = 0.5;
  double server_message_us = 10;  // Per request of any kind.
  double wire_byte_ns = 0.5;      // Over a socket, one way, with the work of both ends.
  double index_row_bytes = 30;    // Index of a row, beside its floats.
  // One core: a row comes back from disk while another leaves memory.
  double tier_row_back_us = 2.5;
  // Work of one core for a checkpoint, without the disk.
  double save_byte_ns = 1.2, load_byte_ns = 1.5;
  double disk_write_byte_ns = 1, disk_read_byte_ns = 1;
  double start_seconds = 1;  // From the start of a cluster to its first step, without data.

  // Returns the GFLOP/s for a layer of this shape: a mean of the measured ones that weighs the
  // nearest most, on a logarithmic scale.
  double GflopsFor(double inputs, double units, double batch) const;
};

// One constant with its name in the bench's JSON, CASE.FIGURE.
struct NamedConstant {
  std::string name;
  const char* unit;
  double* value;
};
// Lists all constants but the products.
std::vector<NamedConstant> NamedConstants(MachineConstants* constants);
// Returns the case of a product, "products_429x1024_batch4096"; its figure is "gflops".
std::string ProductCase(const ProductRate& rate);

// Reads the results of `hdps-bench constants --json=F`. A kInvalidArgument names the file and what
// is missing in it.
Result<MachineConstants> ReadConstants(FileSystem& files, const std::string& path);
// Makes constants from values by "CASE.FIGURE". A kInvalidArgument names what is missing or out of
// range.
Result<MachineConstants> ConstantsFrom(const std::map<std::string, double>& values);

}  // namespace hdps
