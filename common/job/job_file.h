// A job as a file: read, checked, printed, and the hashes of what is printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"

namespace hdps {

class FileSystem;
struct JobRegistry;

// Whether who loads a job will read its data: a server's or scheduler's machine need not have it.
enum class DataFiles : uint8_t { kMustExist, kNotNeeded };

// Reads a job file (JSON, one schema; docs/job_file.md), applies `overrides` ("key.path=value"
// each) and checks the whole. Relative data paths are sought from the folder of the job file, then
// from the working directory, and stored as found; under kMustExist each has to be there. ParseJob
// takes paths as they are and looks for nothing. kInvalidArgument names the file, the line, the
// field, the value, and what would be right. `registry` has the kinds of layers and the optimizers
// that the job may use; not given, the built-in ones.
Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides, DataFiles needed,
                    const JobRegistry& registry);
Result<Job> LoadJob(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& overrides,
                    DataFiles needed = DataFiles::kMustExist);
Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides, const JobRegistry& registry);
Result<Job> ParseJob(const std::string& json, const std::string& origin,
                     const std::vector<std::string>& overrides);

// "a.b=1,c=[2,3]" as "a.b=1" and "c=[2,3]": the value of --set, cut at the commas that stand in no
// brackets and no quotes.
std::vector<std::string> SplitOverrides(const std::string& text);

// The job as JSON with every default written out and the model as a graph; ParseJob of it gives the
// same job.
std::string PrintJob(const Job& job);

// Equal for two jobs exactly when they train the same thing: all that PrintJob shows but the name,
// the paths, how many bad rows are borne, how far to train (epochs, max_steps) and when to
// evaluate, the device, which rows it keeps, the checkpoint and the cluster's timings. Checkpoints
// and joining members are matched by it.
uint64_t JobDigest(const Job& job);

// What follows from the job's tables and layers for checkpoints: tables, dims, rules, shards, seed.
uint64_t TablesDigest(const Job& job);

}  // namespace hdps
