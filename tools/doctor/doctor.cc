// Implements hdps doctor: checks whether this machine is fit for a job before it starts.
#include <gflags/gflags.h>

#include <memory>
#include <optional>

#include "common/base/outside_text.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/placement.h"
#include "common/process/command_line.h"
#include "common/process/connections.h"
#include "common/process/elect_flags.h"
#include "common/process/terminal.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/doctor/diagnosis.h"
#include "worker/data/data_preview.h"

DEFINE_string(
    listen, "",
    "doctor: address where a daemon will listen on this machine, tcp://HOST:PORT; serve: address "
    "at which predictions are asked over ZeroMQ, for who has a reader's key; member: address of "
    "this scheduler or server, tcp://HOST:PORT or ipc://PATH; empty: none, and for member one of "
    "this machine with a free port, or for the scheduler the one that --scheduler names");
DECLARE_string(scheduler);
DECLARE_string(rows);
DECLARE_double(zipf);
DECLARE_uint32(servers);
DECLARE_uint32(workers);

namespace hdps {
namespace {

const char* WordOf(Finding finding) {
  switch (finding) {
    case Finding::kGood:
      return "good";
    case Finding::kWarning:
      return "warning";
    case Finding::kFault:
      return "FAULT";
  }
  return "";
}

Result<std::optional<PlanAnswer>> Foresee(const Job& job) {
  if (FLAGS_rows.empty()) return std::optional<PlanAnswer>();
  HDPS_RETURN_IF_ERROR(NeedsLayers(job, "hdps doctor --rows"));
  PlanQuestion question;
  HDPS_ASSIGN_OR_RETURN(question.shape, ShapeOf(job));
  HDPS_ASSIGN_OR_RETURN(question.rows, ReadRowsFlag(0));
  question.batch = job.train.batch_size;
  question.micro_batches = job.train.micro_batches;
  question.lookahead = job.train.lookahead;
  question.allreduce = job.parallel.dense_exchange == DenseExchange::kAllreduce;
  question.servers = FLAGS_servers;
  question.workers = FLAGS_workers;
  question.one_machine = true;
  question.zipf = FLAGS_zipf;
  return std::optional<PlanAnswer>(Plan(question, MachineConstants()));
}

// Reads the beginning of the data, as the workers will.
Diagnosis LookAtData(FileSystem& files, const Job& job) {
  if (job.data.train.empty()) return {Finding::kGood, "data", "the job has none of its own"};
  const Result<DataPreview> preview = PreviewJobData(files, job);
  if (!preview.ok()) return {Finding::kFault, "data", preview.status().message()};
  if (!preview->warnings.empty()) return {Finding::kWarning, "data", preview->warnings.front()};
  if (preview->rows == 0) return {Finding::kWarning, "data", "no row was found to look at"};
  return {Finding::kGood, "data", std::to_string(preview->rows) + " rows looked at"};
}

Status Run() {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  if (flags.job.empty()) return {Code::kInvalidArgument, "--job is missing; give the job's file"};
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "error"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const Job job,
                        LoadPlannedJob(*files, flags.job, &flags.overrides, FLAGS_workers));
  const std::string spill = job.cluster.memory_limit > 0 ? job.cluster.spill_path : "";
  HDPS_ASSIGN_OR_RETURN(const Connections connections,
                        ReadConnections({KeyRole::kScheduler, KeyRole::kServer, KeyRole::kWorker,
                                         KeyRole::kReader, KeyRole::kAdmin, KeyRole::kServing}));
  Result<std::string> scheduler = FLAGS_scheduler;
  if (IsLookedUp(FLAGS_scheduler)) scheduler = AskForScheduler(FLAGS_scheduler, connections);
  MachineFacts facts = GatherFacts(
      *files,
      {flags.out, spill, FLAGS_listen, scheduler.ok() ? *scheduler : "", connections.may_leave()});
  if (!scheduler.ok()) facts.scheduler_trouble = scheduler.status().message();
  HDPS_ASSIGN_OR_RETURN(const std::optional<PlanAnswer> answer, Foresee(job));
  std::vector<Diagnosis> found = {{Finding::kGood, "job", job.name}, LookAtData(*files, job)};
  const bool elsewhere = !FLAGS_listen.empty() || !FLAGS_scheduler.empty();
  for (Diagnosis& one : Diagnose(job, {FLAGS_servers, FLAGS_workers, !elsewhere}, facts,
                                 answer ? &*answer : nullptr)) {
    found.push_back(std::move(one));
  }
  size_t faults = 0, warnings = 0;
  for (const Diagnosis& one : found) {
    faults += one.finding == Finding::kFault;
    warnings += one.finding == Finding::kWarning;
    PrintOut("%-8s %-14s %s\n", WordOf(one.finding), EscapeUntrusted(one.subject).c_str(),
             EscapeUntrusted(one.text, std::string::npos).c_str());
  }
  if (FLAGS_rows.empty()) {
    PrintOut(
        "\nwith --rows=NUMBER of distinct keys it also says whether memory and disk will do\n");
  }
  PrintOut("\n%zu fault(s), %zu warning(s)\n", faults, warnings);
  if (faults == 0) return {};
  return {Code::kInvalidArgument,
          std::to_string(faults) +
              " fault(s): the job cannot run on this machine; mend what is told above"};
}

}  // namespace

Subcommand DoctorCommand() {
  return {"doctor",
          "check before the start that this machine is fit for a job",
          "hdps doctor --job=FILE --out=DIR [--servers=M --workers=N] [--rows=500M]\n"
          "            [--listen=ADDRESS] [--scheduler=ADDRESS] [--keys=DIR]\n"
          "Checks job, data, disk, memory, limits, addresses, GPU and clock, and says how\n"
          "to mend each fault. --servers and --workers count the members that run here.\n"
          "Ends with status 2 when there is a fault.",
          {"job", "set", "out", "servers", "workers", "rows", "zipf", "listen", "scheduler",
           "elect_file", "keys", "insecure"},
          Run};
}

}  // namespace hdps
