// Predicts how many rows stay in memory and how many come back from disk, from the law of their
// keys.
#pragma once

#include "tools/plan/job_shape.h"

namespace hdps {

struct TierQuestion {
  const JobShape& shape;
  double values = 1, zipf = 1.05;  // Distinct values of a feature, and the exponent of their law.
  double draws = 0;                // Examples of a step.
  // Memory of all servers for rows and for the index of those on disk. A row in memory takes
  // `index_bytes` besides its own bytes.
  double bytes = 0, index_bytes = 0;
};

struct RowTiers {
  double share_in_memory = 1;  // Mean over all tables.
  double rows_back = 0;        // Rows that come back from disk in a step, over all tables.
};

// Predicts the tiers if each table has `rows` rows, all of which exist, and those used last stay in
// memory.
RowTiers PlanTiers(const TierQuestion& question, double rows);

}  // namespace hdps
