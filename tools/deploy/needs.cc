// Adds what a process takes beside its rows, and a margin.
#include "tools/deploy/needs.h"

#include <algorithm>
#include <cmath>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "tools/plan/cost_model.h"
#include "tools/plan/plan_question.h"

namespace hdps {
namespace {

constexpr double kMiB = 1 << 20;
// A process without rows: the program, its libraries, heaps and messages on their way. A worker
// also has the workspaces of its products, and with a GPU the driver's.
constexpr double kSchedulerBytes = 192 * kMiB, kServerBytes = 128 * kMiB, kWorkerBytes = 384 * kMiB;
constexpr double kGpuHostBytes = 2048 * kMiB;
// What is planned counts bytes, and what is used follows the data: a limit is this much above.
constexpr double kMargin = 1.5;
constexpr double kNetworkBytesPerSecond = 25e9 / 8, kRoundTripUs = 50;
constexpr uint32_t kCoresMax = 32;
// Cores are added as long as they shorten the step by more than this share.
constexpr double kGainMin = 0.1;

// Returns needs of whole MiB.
MemberNeeds NeedsOf(double own_bytes, double planned_bytes, uint32_t cores) {
  const auto whole = [](double bytes) {
    return static_cast<uint64_t>(std::ceil(bytes / kMiB) * kMiB);
  };
  MemberNeeds needs;
  needs.request_bytes = whole(own_bytes + planned_bytes);
  needs.limit_bytes = whole(kMargin * (own_bytes + planned_bytes));
  needs.cores = cores;
  return needs;
}

// Returns the cores of each worker beyond which more hardly shorten a step.
uint32_t CoresOf(PlanQuestion question) {
  question.cores = 1;
  double seconds = Plan(question, MachineConstants()).step_seconds;
  while (question.cores < kCoresMax) {
    PlanQuestion more = question;
    more.cores *= 2;
    const double then = Plan(more, MachineConstants()).step_seconds;
    if (then > (1 - kGainMin) * seconds) break;
    question.cores = more.cores;
    seconds = then;
  }
  return question.cores;
}

// Returns the bytes of all rows as a process that answers requests holds them: weights and keys.
double ServedBytes(const PlanQuestion& question) {
  constexpr double kIndex = 1.3;  // Places of a hash table that are free.
  double row_bytes = 0;
  for (const JobShape::Table& table : question.shape.tables) {
    row_bytes += sizeof(uint64_t) + sizeof(float) * double(table.dim);
  }
  return kIndex * question.rows * row_bytes + sizeof(float) * double(question.shape.dense_floats);
}

}  // namespace

Status ForeseeNeeds(const Job& job, double rows, double zipf, Deployment* deployment) {
  HDPS_ASSIGN_OR_RETURN(PlanQuestion question,
                        QuestionOf(job, deployment->servers, deployment->workers, rows));
  question.network_bytes_per_second = kNetworkBytesPerSecond;
  question.network_round_trip_us = kRoundTripUs;
  question.zipf = zipf;
  question.cores = CoresOf(question);
  const PlanAnswer answer = Plan(question, MachineConstants());
  constexpr size_t kServersPart = 6;  // "server: rows and messages".
  const double busy = answer.parts.at(kServersPart).seconds / answer.step_seconds;
  const auto server_cores =
      static_cast<uint32_t>(std::clamp(std::ceil(busy * question.cores), 1.0, double(kCoresMax)));
  const double rows_bytes =
      answer.server_row_bytes + answer.server_index_bytes + answer.server_buffer_bytes;
  const uint32_t gpus = deployment->worker.gpus;
  deployment->scheduler = NeedsOf(kSchedulerBytes, 0, 1);
  deployment->server = NeedsOf(kServerBytes, rows_bytes, server_cores);
  if (const uint64_t limit = job.cluster.memory_limit; limit > 0) {
    // The server keeps to it by itself, with what a process takes anyway inside.
    deployment->server = NeedsOf(0, static_cast<double>(limit), server_cores);
  }
  deployment->worker =
      NeedsOf(kWorkerBytes + (gpus > 0 ? kGpuHostBytes : 0), answer.worker_bytes, question.cores);
  deployment->worker.gpus = gpus;
  deployment->serving = NeedsOf(kServerBytes, ServedBytes(question), question.cores);
  return {};
}

MemberNeeds WithMemory(MemberNeeds needs, uint64_t limit_bytes) {
  needs.limit_bytes = limit_bytes;
  needs.request_bytes = static_cast<uint64_t>(double(limit_bytes) / kMargin);
  return needs;
}

}  // namespace hdps
