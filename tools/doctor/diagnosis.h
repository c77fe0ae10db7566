// Compares a machine with the needs of a job: each finding has a subject, a text and a remedy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor/machine_facts.h"
#include "tools/plan/cost_model.h"

namespace hdps {

struct Job;

enum class Finding : uint8_t { kGood, kWarning, kFault };

struct Diagnosis {
  Finding finding = Finding::kGood;
  std::string subject;  // "memory"
  std::string text;     // The finding; if it is not good, also the remedy.
};

// The members of the job that this machine will run.
struct LocalMembers {
  uint32_t servers = 1, workers = 1;
  bool all = true;  // The job has no other members elsewhere.
};

// Compares the facts with the job. `answer` predicts the memory of a server and a worker; it is
// null if the number of rows is not known.
std::vector<Diagnosis> Diagnose(const Job& job, const LocalMembers& here, const MachineFacts& facts,
                                const PlanAnswer* answer);

}  // namespace hdps
