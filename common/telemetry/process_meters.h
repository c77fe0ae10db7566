// Counts what the system knows of a process, for programs that are one member.
#pragma once

#include "common/telemetry/meters.h"
#include "common/telemetry/process_usage.h"

namespace hdps {

inline void SetProcess(const ProcessUsage& usage, Meters* meters) {
  meters->SetTotal(FigureNamed("process_cpu_seconds_total"), static_cast<uint64_t>(usage.cpu_ns));
  meters->Set(FigureNamed("process_resident_memory_bytes"),
              static_cast<double>(usage.resident_bytes));
  meters->Set(FigureNamed("process_open_fds"), static_cast<double>(usage.open_fds));
  meters->Set(FigureNamed("process_start_time_seconds"), usage.start_unix_seconds);
}

}  // namespace hdps
