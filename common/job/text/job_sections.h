// The sections of the job file, and the steps from its text to a checked Job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/text/setting.h"

namespace hdps {

class LayerRegistry;
class OptimizerRegistry;
struct DataSpec;
struct Job;
struct JobRegistry;
struct JobText;    // job_text.h
struct ModelText;  // job_text.h, too.
struct ParallelSpec;
struct ScheduleSpec;
enum class JobPart : uint8_t;  // job_differences.h

Section JobSection(const JobRegistry& registry);  // Of JobText: the whole.

// The form of that part of the job that its digest is the hash of.
JsonValue FormOf(const Job& job, JobPart part);

template <typename Struct>
class SettingTable;  // setting_table.h
// The rows of "parallel" that say how layers lie over the workers.
void AddStrategySettings(SettingTable<ParallelSpec>* parallel);

Section DataSection();
Section ModelSection(const JobRegistry& registry);  // Of ModelText.
Section ScheduleSection();
Section OptimizerSection(const OptimizerRegistry& optimizers);
Section LayerSection(const LayerRegistry& layers);
// The settings of how dense gradients travel under allreduce, behind dense_exchange.
void AddDenseExchange(SettingTable<ParallelSpec>* parallel);

// Fills model and tables from what stands under "model"; needs job->data.
Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job);

// Gives each table that the job text gives no schedule `all`, that of train; checks all, and warns
// of tables whose learning rate neither that nor train.plateau moves.
Status FillSchedules(const JobSource& source, const ScheduleSpec& all, Job* job);
// Labels, weights, groups and items against the losses and metrics that need them.
Status CheckLosses(const JobSource& source, Job* job);

// Layers' shards, blocks and the search against the mode, and each for itself. How they fit the
// number of workers is known when that is: common/planning/strategy_of_job.h.
Status CheckStrategySettings(const JobSource& source, const Job& job);
// Those settings, and what layers say of it, against each other. The model has been built.
Status CheckDenseExchange(const JobSource& source, Job* job);

// Micro-batches and copies of the model, and their other spelling. `worker_rows`: the rows a worker
// has of a step.
Status CheckStepParts(const JobSource& source, uint32_t worker_rows, Job* job);
// Layers that exchange something within a step need all workers in the same one.
Status CheckMeetings(const JobSource& source, const Job& job);
// Sets what follows from how tables are cut over the servers, and refuses what cannot be cut so.
Status SliceTables(const JobSource& source, Job* job);

// The tuples of parallel.dataset_strategy against what they are for.
Status CheckDatasetSlices(const JobSource& source, const ParallelSpec& parallel);
// The columns of images against their shape; what holds of all columns was checked.
Status CheckImages(const JobSource& source, const DataSpec& data);

// Builds the model and checks the whole; normalises what has two spellings (ssp with bound 0 is
// sync).
Status CheckJob(const JobSource& source, const JobText& text, Job* job);

// Checks that columns which read the cell of another name one that has a cell of its own.
Status CheckSharedCells(const JobSource& source, const DataSpec& data);
// Names what the data has and the model cannot use. The job has passed every other check.
void WarnOfInputs(Job* job);

// A setting that changes nothing while `is_idle` holds, which no condition of its record can say.
struct IdleRule {
  std::string path;  // As in docs/job_file.md: "model.tables[].policy.evict_by".
  std::function<bool(const JobSource& source, const Job& job)> is_idle;
  std::string why;
};
const std::vector<IdleRule>& IdleRules();
// Names the settings that change nothing in this job.
void WarnOfIdle(const JobSource& source, Job* job);

}  // namespace hdps
