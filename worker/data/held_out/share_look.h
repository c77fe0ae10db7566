// Examines the share of the training rows that is held out for validation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

// Limits of the examination, from the beginning of data.train.
inline constexpr uint64_t kShareRowsMax = 50'000, kShareBytesMax = uint64_t{64} << 20;
// Metrics over fewer different rows than these mean little.
inline constexpr double kShareDifferentMin = 50;

// Counts of rows on both sides. Rows that differ only in their labels are equal.
struct ShareLook {
  bool whole = false;  // All rows of the files were read.
  uint64_t trained = 0, held_out = 0;
  // Number of different, equally frequent rows that would repeat as often as those held out: one
  // over the probability that two of them, drawn at random, are equal (Simpson 1949).
  double different = 0;
  // [classes] of the first label; empty if it is no class.
  std::vector<uint64_t> trained_labels = {}, held_out_labels = {};
};

// Splits the rows of data.train by the job's data.validation_share, which must not be 0, and its
// seed. Unreadable rows are skipped.
Result<ShareLook> LookAtShare(FileSystem& files, const Job& job);
// Returns why metrics over these rows would mislead, one sentence each: there are few different
// rows, or a class is missing on one side. Empty: there is no objection.
std::vector<std::string> WhyNotShare(const ShareLook& look, double share);

}  // namespace hdps
