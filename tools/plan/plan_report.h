// A plan's answer for people and for programs.
#pragma once

#include <string>

#include "tools/plan/cost_model.h"

namespace hdps {

// What the answer is about, as it was asked.
struct PlanSubject {
  std::string job_name, model, mode;
  std::string network;    // "25Gbit", or "local".
  std::string constants;  // The file; empty: those that hdps brings along.
  std::string too_small;  // Why cluster.memory_limit cannot be kept; empty: it can.
  bool bf16 = false;      // The job multiplies in bf16, which the model of costs does not know.
};

std::string PlanText(const PlanSubject& subject, const PlanQuestion& question,
                     const PlanAnswer& answer);
std::string PlanJson(const PlanSubject& subject, const PlanQuestion& question,
                     const PlanAnswer& answer);

}  // namespace hdps
