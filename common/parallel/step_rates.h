// The speeds of a worker on which the cost of a strategy depends.
#pragma once

namespace hdps {

// The default values are from a machine with 2 cores with AVX-512 and all workers on it: a first
// guess if nothing was measured.
struct StepRates {
  double flops_per_second = 3.2e11;       // Products of a layer, forward and both gradients.
  double memory_bytes_per_second = 1e10;  // Operations that only read and write elements.
  double link_bytes_per_second = 2e9;     // Between two workers, in each direction.
  double exchange_seconds = 6e-5;         // Fixed cost of an exchange.
  double update_float_seconds = 0.5e-9;   // Update of a weight and its state.
  double row_float_seconds = 1e-9;        // One float of a row, to or from the servers.
  double row_seconds = 1e-8;              // A row besides its floats, likewise.
  friend bool operator==(const StepRates&, const StepRates&) = default;
};

}  // namespace hdps
