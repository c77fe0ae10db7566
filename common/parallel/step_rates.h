// What a worker does in how much time, as far as a strategy depends on it.
#pragma once

namespace hdps {

// The values here are those of a machine of 2 cores with AVX-512, workers on one machine: a first
// guess where nothing was measured.
struct StepRates {
  double flops_per_second = 3.2e11;       // Products of a layer, forward and both gradients.
  double memory_bytes_per_second = 1e10;  // What only reads and writes its elements.
  double link_bytes_per_second = 2e9;     // Between two workers, each way.
  double exchange_seconds = 6e-5;         // Of any exchange, beside its bytes.
  double update_float_seconds = 0.5e-9;   // Of a weight with its state.
  double row_float_seconds = 1e-9;        // Of a table's row, from the servers or to them.
  friend bool operator==(const StepRates&, const StepRates&) = default;
};

}  // namespace hdps
