// Prints a plan's answer for people and for programs.
#pragma once

#include <string>

#include "tools/plan/cost_model.h"

namespace hdps {

// Names what was asked.
struct PlanSubject {
  std::string job_name, model, mode;
  std::string network;    // "25Gbit", or "local".
  std::string constants;  // The file; empty: the defaults.
  // Why cluster.memory_limit cannot be kept; empty: it can.
  std::string too_small;
  bool bf16 = false;  // The job multiplies in bf16, which the cost model does not cover.
};

std::string PlanText(const PlanSubject& subject, const PlanQuestion& question,
                     const PlanAnswer& answer);
std::string PlanJson(const PlanSubject& subject, const PlanQuestion& question,
                     const PlanAnswer& answer);

}  // namespace hdps
