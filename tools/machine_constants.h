// What one machine does in how much time: measured by `hdps-bench constants`, read by `hdps plan`.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/file_system.h"
#include "common/status.h"

namespace hdps {

// How fast the products of a layer are: forward and both gradients, on all cores.
struct ProductRate {
  double inputs = 0, units = 0, batch = 0;
  double gflops = 0;
};

// A pull or a push of a worker that waits for it, over one transport, from the list of keys to the
// rows in place: base + rows * row + floats * float. `dense` is for the long rows of dense layers.
struct ExchangeCost {
  double base_us = 0, row_ns = 0, float_ns = 0, dense_float_ns = 0;
};

// Everything in the unit that the name ends with. The values here are those of a machine of 2 cores
// with AVX-512 on which hdps was developed: a first guess where nothing was measured.
struct MachineConstants {
  double cores = 2;  // That the products and layers ran on.
  std::vector<ProductRate> products = {{429, 1024, 4096, 150},
                                       {1024, 512, 4096, 160},
                                       {429, 64, 4096, 90},
                                       {64, 32, 4096, 30},
                                       {3120, 1024, 4096, 160}};
  // Layers beside their products, on all cores.
  double model_example_ns = 300, model_embedding_float_ns = 0.5, model_activation_float_ns = 1;
  // The reader, one core. `scan` is what a byte costs that belongs to another worker's row.
  double read_byte_ns = 2.8, scan_byte_ns = 0.9, dedup_key_ns = 15;
  // Exchanges through memory, and over sockets of one machine.
  ExchangeCost inproc_pull = {40, 20, 0.6, 0.6}, inproc_push = {40, 25, 1, 1};
  ExchangeCost tcp_pull = {100, 25, 1.2, 1.2}, tcp_push = {100, 30, 1.6, 1.6};
  double exchange_busy_cores = 1.3;  // While one worker waits.
  // A server's share of it, one core.
  double server_pull_row_ns = 15, server_pull_float_ns = 0.3;
  double server_push_row_ns = 20, server_push_float_ns = 0.6;
  double server_dense_pull_float_ns = 0.3, server_dense_push_float_ns = 1;
  double server_message_us = 15;  // Of any request.
  double wire_byte_ns = 0.5;      // Over a socket, one way, both ends' work included.
  double index_row_bytes = 30;    // Of a row, beside its floats.
  double save_byte_ns = 1.2, load_byte_ns = 1.5;  // A checkpoint, one core, without the disk.
  double disk_write_byte_ns = 1, disk_read_byte_ns = 1;
  double start_seconds = 1;  // From the start of a cluster to its first step, without data.

  // GFLOP/s for a layer of this shape: the measured shapes nearest to it, on a logarithmic scale.
  double GflopsFor(double inputs, double units, double batch) const;
};

// One constant: how it is named in the bench's JSON, as CASE.FIGURE.
struct ConstantName {
  const char* name;
  const char* unit;
  double MachineConstants::*field;
};
struct ExchangeName {
  const char* name;  // Of the case.
  ExchangeCost MachineConstants::*field;
};
std::span<const ConstantName> AllConstants();
std::span<const ExchangeName> AllExchanges();
// "products_429x1024_batch4096", figure "gflops".
std::string ProductCase(const ProductRate& rate);

// The results of `hdps-bench constants --json=F`. kInvalidArgument names the file and what is
// missing in it.
Result<MachineConstants> ReadConstants(FileSystem& files, const std::string& path);
// From values by "CASE.FIGURE"; kInvalidArgument names what is missing or out of range.
Result<MachineConstants> ConstantsFrom(const std::map<std::string, double>& values);

}  // namespace hdps
