// Job files: parsing, checking, printing, and digests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"

namespace hdps {

class FileSystem;
struct DataSpec;
struct JobRegistry;

// Says if the process reads the job's data. The machines of servers and the scheduler need not have
// it.
enum class DataFiles : uint8_t { kMustExist, kNotNeeded };

// Reads a job file (JSON, one schema; docs/job_file.md), applies `overrides` ("key.path=value"
// each) and checks the result. Relative data paths are searched from the folder of the job file,
// then from the working directory, and stored as found; with kMustExist each must exist. ParseJob()
// takes paths as they are and searches nothing. Errors: kInvalidArgument names the file, the line,
// the field, the value, and what would be right. `registry` has the layer kinds and optimizers that
// the job may use; the default is the built-in ones.
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

// Splits the value of --set at commas outside brackets and quotes: "a.b=1,c=[2,3]" into "a.b=1" and
// "c=[2,3]".
std::vector<std::string> SplitOverrides(const std::string& text);

// Prints the job as JSON with every default written out and the model as a graph. ParseJob() of the
// result gives the same job.
std::string PrintJob(const Job& job);

// Prints the settings of the section "data", every default written out.
std::string PrintData(const DataSpec& data);

// Returns a digest that is equal for two jobs exactly if they train the same thing. It covers
// everything that PrintJob() prints except the name, the paths, the number of bad rows tolerated,
// how far to train (epochs, max_steps), when to evaluate, the device, which rows workers keep, the
// checkpoint settings and the timings of the cluster. Checkpoints and joining members must match
// it.
uint64_t JobDigest(const Job& job);

// Returns a digest of everything that determines the rows of checkpoints: tables, dims, rules,
// shards, seed.
uint64_t TablesDigest(const Job& job);

}  // namespace hdps
