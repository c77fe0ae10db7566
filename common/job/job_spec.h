// What to train, on what, and how: the sections of a job, each of which has a header of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hdps {

// Of common/job/spec: who reads a section of a job includes the one that it is of.
struct DataSpec;
struct ModelSpec;
struct TableSpec;
struct TrainSpec;
struct ParallelSpec;
struct CheckpointSpec;
struct ClusterSpec;

// A value: a copy has sections of its own. Who is given a const job only reads it; that it is const
// does not keep its sections, known by name alone here, from being changed.
//
// Invariant of a job that LoadJob returned: every name refers to something, every number is in its
// range, layers are in order, `tables` holds what the layers use, and the dense table is last.
struct Job {
  Job();
  Job(const Job& other);
  Job& operator=(const Job& other);
  ~Job();

 private:
  struct Sections;
  std::unique_ptr<Sections> sections_;  // What the references below are of.

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
  std::vector<std::string> warnings;  // Keys that count for nothing, and the like; for the log.
};

}  // namespace hdps
