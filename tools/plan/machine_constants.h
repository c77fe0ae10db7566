// What one machine does in how much time: measured by `hdps-bench constants`, read by `hdps plan`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// How fast the products of a layer are: forward and both gradients, on all cores.
struct ProductRate {
  double inputs = 0, units = 0, batch = 0;
  double gflops = 0;
};

// A pull or a push of a worker that waits for it, from the list of keys to the rows at hand: base +
// rows * row + floats * float, on threads of this machine. `dense` is for the long rows of dense
// layers. Rows that came through memory are at hand where the server wrote them.
struct ExchangeCost {
  double base_us = 0, row_ns = 0, float_ns = 0, dense_float_ns = 0;
};

// What is left at a step's turn where its rows were asked for ahead: each is put in its place and
// looked at again, and those come once more that a push has changed.
struct RepairCost {
  double base_us = 0, row_ns = 0, float_ns = 0, changed_row_ns = 0, changed_float_ns = 0;
};

// One way between a worker and a server: inproc (memory), local (one machine: sockets, large
// sections in shared memory), socket (sockets alone, as between machines).
struct PathCosts {
  ExchangeCost pull, push;
  RepairCost repair;
};

// Everything in the unit that the name ends with. The values here are those of a machine of 2 cores
// with AVX-512 on which hdps was developed: a first guess where nothing was measured.
struct MachineConstants {
  double cores = 2;  // That the products and layers ran on.
  std::vector<ProductRate> products = {{429, 1024, 4096, 310},
                                       {1024, 512, 4096, 330},
                                       {429, 64, 4096, 360},
                                       {64, 32, 4096, 270},
                                       {3120, 1024, 4096, 355}};
  // Layers beside their products, on all cores. A first layer on distinct rows takes `row_gflops`
  // for the products of these, `row_float` for each of their floats and `gather_float` for each key
  // and unit instead.
  double model_example_ns = 1400, model_embedding_float_ns = 0.8;
  double model_activation_float_ns = 0.1;
  double model_row_gflops = 300, model_row_float_ns = 1, model_gather_float_ns = 0.1;
  // Micro-batches, one core: their rows cut out of those of the step and their gradients added up.
  double model_merge_row_ns = 1, model_merge_float_ns = 1;
  // The reader, one core. `scan` is what a byte costs that belongs to another worker's row. One of
  // many workers looks for line ends in all bytes in the first epoch (`find`), draws all rows and
  // fetches its own.
  double read_byte_ns = 2.4, scan_byte_ns = 0.3, dedup_key_ns = 10, split_key_ns = 1.5;
  double find_byte_ns = 0.17, draw_row_ns = 9, fetch_row_ns = 3000;
  double cut_key_ns = 11;  // A key of an example that goes into a micro-batch.
  PathCosts inproc = {{55, 6, 0.3, 0.5}, {85, 8, 0.9, 1}, {70, 4, 0.4, 0, 1.2}};
  PathCosts local = {{190, 9, 0.4, 0.6}, {270, 7, 1.1, 0.9}, {140, 5, 0.4, 0, 1.3}};
  PathCosts socket = {{170, 11, 2.1, 2.1}, {260, 3, 2.9, 2.5}, {220, 2, 0.4, 0, 2.8}};
  double exchange_busy_cores = 1.4;  // While one worker waits.
  // Where threads share cores: core seconds that a second of work beside a worker costs more, both
  // together; the part of the cores' time that workers use who wait for each other every step.
  double sharing_beside = 0.1, sharing_lockstep = 1;
  // A server's share of it, one core.
  double server_pull_row_ns = 13, server_pull_float_ns = 0.2;
  double server_push_row_ns = 9, server_push_float_ns = 0.7;
  double server_new_row_ns = 13, server_new_float_ns = 30;  // More, for a row that is made.
  double server_dense_pull_float_ns = 0.25, server_dense_push_float_ns = 0.5;
  double server_message_us = 10;  // Of any request.
  double wire_byte_ns = 0.5;      // Over a socket, one way, both ends' work included.
  double index_row_bytes = 30;    // Of a row, beside its floats.
  double tier_row_back_us = 2.5;  // Of a row on disk, one core, while another leaves memory.
  double save_byte_ns = 1.2, load_byte_ns = 1.5;  // A checkpoint, one core, without the disk.
  double disk_write_byte_ns = 1, disk_read_byte_ns = 1;
  double start_seconds = 1;  // From the start of a cluster to its first step, without data.

  // GFLOP/s for a layer of this shape: the measured shapes nearest to it, on a logarithmic scale.
  double GflopsFor(double inputs, double units, double batch) const;
};

// One of the constants, as it is named in the bench's JSON: CASE.FIGURE.
struct NamedConstant {
  std::string name;
  const char* unit;
  double* value;
};
// All but the products.
std::vector<NamedConstant> NamedConstants(MachineConstants* constants);
// "products_429x1024_batch4096", figure "gflops".
std::string ProductCase(const ProductRate& rate);

// The results of `hdps-bench constants --json=F`. kInvalidArgument names the file and what is
// missing in it.
Result<MachineConstants> ReadConstants(FileSystem& files, const std::string& path);
// From values by "CASE.FIGURE"; kInvalidArgument names what is missing or out of range.
Result<MachineConstants> ConstantsFrom(const std::map<std::string, double>& values);

}  // namespace hdps
