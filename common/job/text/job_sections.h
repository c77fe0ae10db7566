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
struct TrainText;  // job_text.h, too.
struct WatchSpec;
enum class JobPart : uint8_t;  // job_differences.h

Section JobSection(const JobRegistry& registry);  // The whole job file, as JobText.

// Returns the part of the job in the form that its digest hashes.
JsonValue FormOf(const Job& job, JobPart part);

template <typename Struct>
class SettingTable;  // setting_table.h
// Adds the settings of "parallel" that split layers over the workers.
void AddStrategySettings(SettingTable<ParallelSpec>* parallel);
// Adds the settings of "train" for what evaluations tell, and for what follows from them.
void AddEvaluations(SettingTable<TrainText>* train);

Section DataSection();
Section ModelSection(const JobRegistry& registry);  // Settings of a ModelText.
Section ScheduleSection();
Section InitSection();
Section PolicySection();
Section TableSection(const OptimizerRegistry& optimizers);
Section OptimizerSection(const OptimizerRegistry& optimizers);
Section LayerSection(const LayerRegistry& layers);
// Returns the settings of a LayerSpec that say where a layer is computed and how it lies over the
// workers; they count for every kind.
Section PlacementSection();
// Returns the place of a placement setting of layer i: "model.layers.3.shard" where the job spells
// the layers out, else "model.layer_settings.deep1.shard".
std::string PlaceOfLayer(const JobSource& source, const Job& job, size_t i, const std::string& key);
// Adds the settings for the exchange of dense gradients under allreduce, which follow
// dense_exchange.
void AddDenseExchange(SettingTable<ParallelSpec>* parallel);

// Removes the settings without effect from the text of a job whose model is another program's
// (kTablesType), so that they are in no digest, and warns of those that are not the default. A text
// of another job stays as it is. Requires: CheckSection() accepted it.
void LeaveOutOfTablesJob(const Section& whole, JsonValue* root, std::vector<std::string>* warnings);
// Checks the tables of such a job, and a setting (`place`) that watches a figure of its program.
Status CheckTablesJob(const JobSource& source, const Job& job);
Status CheckOwnWatch(const JobSource& source, const std::string& place, bool chosen, const Job& job,
                     WatchSpec* watch);

// Fills in model and tables from the text under "model". Requires: job->data is filled in.
Status BuildJobModel(const JobSource& source, const ModelText& text, Job* job);

// Gives `all`, the schedule of "train", to each table without a schedule in the job text. Checks
// all schedules, and warns of tables whose learning rate is moved neither by them nor by
// train.plateau.
Status FillSchedules(const JobSource& source, const ScheduleSpec& all, Job* job);
// Checks that there are the labels, weights, groups and items that losses and metrics need, and
// that train.progressive can have scores.
Status CheckLosses(const JobSource& source, Job* job);

// Checks the layers' shards, the blocks and the search against the mode, and each alone. If they
// fit the number of workers is checked when that is known: common/planning/strategy_of_job.h.
Status CheckStrategySettings(const JobSource& source, const Job& job);
// Checks these settings against each other and against those of layers. The model must have been
// built.
Status CheckDenseExchange(const JobSource& source, Job* job);

// Checks micro-batches and copies of the model, and their other spelling. `worker_rows` is the
// number of rows that a worker has in a step.
Status CheckStepParts(const JobSource& source, uint32_t worker_rows, Job* job);
// Checks data.parts against the rows of a step, the number of workers if it is given, and settings
// that share the rows out otherwise.
Status CheckDataParts(const JobSource& source, const Job& job);
// Checks that all workers make the same steps if layers exchange something within a step.
Status CheckMeetings(const JobSource& source, const Job& job);
// Sets what follows from the slicing of tables over the servers, and refuses tables that cannot be
// sliced that way.
Status SliceTables(const JobSource& source, Job* job);

// Checks the number of workers, a worker's rank, and where their gradients meet.
Status CheckParallel(const JobSource& source, Job* job);
// Checks the tuples of parallel.dataset_strategy against their inputs.
Status CheckDatasetSlices(const JobSource& source, const Job& job);
// Refuses settings that have no meaning for data that is followed, or for a topic.
Status CheckFollow(const JobSource& source, const Job& job);
// The settings of data.kafka.
Section KafkaSection();
// Refuses settings that have no meaning for a topic, and entries that are no topic's.
Status CheckKafka(const JobSource& source, const Job& job);
// Checks the columns of images against their shape, after the checks for all columns.
Status CheckImages(const JobSource& source, const DataSpec& data);

// Builds the model, checks the whole job, and normalizes settings with two spellings (ssp with
// bound 0 is sync).
Status CheckJob(const JobSource& source, const JobText& text, Job* job);

// Checks that columns which read the cell of another name one that has its own cell.
Status CheckSharedCells(const JobSource& source, const DataSpec& data);
// Checks that columns of one vocabulary have the same ids or none, because they have the same keys.
Status CheckVocabularies(const JobSource& source, const DataSpec& data);
// Checks the numbers of data.distinct_half, and warns of features that the data does not have.
Status CheckDistinct(const JobSource& source, Job* job);
// Warns of columns that the model cannot use. The job must have passed every other check.
void WarnOfInputs(Job* job);

// A setting that has no effect while `is_idle` holds, where no condition of its record can express
// it.
struct IdleRule {
  std::string path;  // As in docs/job_file.md: "model.tables[].policy.evict_by".
  std::function<bool(const JobSource& source, const Job& job)> is_idle;
  std::string why;
};
const std::vector<IdleRule>& IdleRules();
// Warns of settings that have no effect in this job.
void WarnOfIdle(const JobSource& source, Job* job);

}  // namespace hdps
