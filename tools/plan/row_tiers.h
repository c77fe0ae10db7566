// How many rows stay in memory and how many come back from disk, by the law of their keys.
#pragma once

#include "tools/plan/job_shape.h"

namespace hdps {

// Expected number of distinct values among `draws` from `count`, value k with probability
// proportional to (k + 1)^-exponent.
double ExpectedDistinct(double count, double exponent, double draws);
// Of these, those among the `first` most frequent values.
double ExpectedDistinctOfFirst(double first, double count, double exponent, double draws);
// Draws until so many of them are expected; infinite where that is nearly all of the values.
double DrawsUntil(double count, double exponent, double distinct);

struct TierQuestion {
  const JobShape& shape;
  double values = 1, zipf = 1.05;  // Of a feature.
  double draws = 0;                // Examples of a step.
  // For rows in memory and for what finds the others, all servers together. A row in memory takes
  // `index_bytes` beside its own.
  double bytes = 0, index_bytes = 0;
};

struct RowTiers {
  double share_in_memory = 1;  // Of the rows of all tables.
  double rows_back = 0;        // From disk in a step, of all tables.
};

// With so many rows in each table, all of them there, and those in memory that were used last.
RowTiers PlanTiers(const TierQuestion& question, double rows);

}  // namespace hdps
