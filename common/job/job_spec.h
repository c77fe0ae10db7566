// A job: what to train, on what data, and how. Each section has a header of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hdps {

// Defined in common/job/spec; include the header of the section that you use.
struct DataSpec;
struct ModelSpec;
struct TableSpec;
struct TrainSpec;
struct ParallelSpec;
struct CheckpointSpec;
struct ClusterSpec;

// Has value semantics: a copy has its own sections. Treat a const job as read-only: the sections
// are only references here, so const does not protect them from changes.
//
// Invariant of a job that LoadJob() returned: every name refers to something, every number is in
// its range, layers are in order, `tables` holds what the layers use, and the dense table is last.
struct Job {
  Job();
  Job(const Job& other);
  Job& operator=(const Job& other);
  ~Job();

 private:
  struct Sections;
  std::unique_ptr<Sections> sections_;  // Holds what the references below refer to.

 public:
  std::string name = "job";
  uint64_t seed = 1;
  DataSpec& data;
  ModelSpec& model;
  std::vector<TableSpec> tables;
  TrainSpec& train;
  ParallelSpec& parallel;
  CheckpointSpec& checkpoint;
  ClusterSpec& cluster;
  std::vector<std::string> warnings;  // Keys without effect and the like; for the log.
};

}  // namespace hdps
