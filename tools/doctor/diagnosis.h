// What of a machine does not fit a job: each with its place, what was found, and the mend.
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
  std::string text;     // What was found, and where it is not good, the mend.
};

// Members of the job that this machine will run.
struct MembersHere {
  uint32_t servers = 1, workers = 1;
  bool all = true;  // The job has no others, elsewhere.
};

// `answer` foresees a server and a worker; null: nobody has said how many rows there are.
std::vector<Diagnosis> Diagnose(const Job& job, const MembersHere& here, const MachineFacts& facts,
                                const PlanAnswer* answer);

}  // namespace hdps
