// What a share of the training rows that is held out for validation looks like.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

// How much of data.train is looked at, from its beginning: so many rows or bytes.
inline constexpr uint64_t kShareRowsMax = 50'000, kShareBytesMax = uint64_t{64} << 20;
// Figures of fewer different rows than these say little.
inline constexpr double kShareDifferentMin = 50;

// Rows are equal that differ in their labels alone.
struct ShareLook {
  bool whole = false;  // All rows of the files were looked at.
  uint64_t trained = 0, held_out = 0;
  // How many different rows, all equally frequent, would repeat as those held out do: one over the
  // chance that two of them, drawn at random, are equal (Simpson 1949).
  double different = 0;
  // [classes] of the first label; empty where it is no class.
  std::vector<uint64_t> trained_labels = {}, held_out_labels = {};
};

// Parts the rows of data.train as the job's data.validation_share, which is not 0, and its seed
// say. Rows that cannot be read are passed over.
Result<ShareLook> LookAtShare(FileSystem& files, const Job& job);
// Why figures of these rows would mislead, a sentence each: they are few different ones, or a class
// is missing on one side. Empty: nothing speaks against the share.
std::vector<std::string> WhyNotShare(const ShareLook& look, double share);

}  // namespace hdps
