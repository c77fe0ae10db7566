// Rules for the parts of a step, and for layers that need all workers in the same step.
#include <numeric>
#include <string>

#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/job/text/job_text.h"

namespace hdps {

Status CheckStepParts(const JobSource& source, uint32_t worker_rows, Job* job) {
  TrainSpec& train = job->train;
  const JsonValue* const parallel = source.root.Find("parallel");
  const JsonValue* const steps =
      parallel == nullptr ? nullptr : parallel->Find("grad_accumulation_step");
  std::string key = "train.micro_batches";
  if (steps != nullptr) {
    const auto count = static_cast<uint32_t>(steps->number);
    const JsonValue* const text = source.root.Find("train");
    if (text != nullptr && text->Find("micro_batches") != nullptr && train.micro_batches != count) {
      return Refuse(source, "parallel.grad_accumulation_step",
                    std::to_string(count) + " contradicts train.micro_batches = " +
                        std::to_string(train.micro_batches) + "; give one of them");
    }
    train.micro_batches = count;
    key = "parallel.grad_accumulation_step";
  }
  if (train.micro_batches > worker_rows) {
    return Refuse(source, key,
                  std::to_string(train.micro_batches) + " parts of a worker's " +
                      std::to_string(worker_rows) + " examples; at most one part an example");
  }
  const uint32_t part_rows = worker_rows / train.micro_batches;
  if (job->parallel.interleave_num > part_rows) {
    const std::string of = train.micro_batches == 1 ? "a worker's " : "a micro-batch's ";
    return Refuse(source, "parallel.interleave_num",
                  std::to_string(job->parallel.interleave_num) + " copies for " + of +
                      std::to_string(part_rows) + " examples; at most one copy an example");
  }
  return {};
}

Status CheckDataParts(const JobSource& source, const Job& job) {
  const std::vector<uint32_t>& parts = job.data.parts;
  const ParallelSpec& parallel = job.parallel;
  if (parts.empty()) return {};
  const bool alone = parallel.parallel_mode == ParallelMode::kStandAlone;
  if (!parallel.dataset_slices.empty() ||
      parallel.dataset_strategy != DatasetStrategy::kDataParallel ||
      (parallel.parallel_mode != ParallelMode::kData && !alone)) {
    return Refuse(source, "data.parts",
                  "it gives each worker rows of its own for the whole model; leave it out, or take "
                  "parallel.parallel_mode and parallel.dataset_strategy = data_parallel");
  }
  const uint32_t workers = alone ? 1 : parallel.device_num;
  if (workers != 0 && parts.size() != workers) {
    return Refuse(source, "data.parts",
                  "there are " + std::to_string(parts.size()) + " numbers for " +
                      std::to_string(workers) +
                      (alone ? " worker (stand_alone)" : " workers (parallel.device_num)") +
                      "; give one for each");
  }
  const uint64_t sum = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
  if (sum == job.train.batch_size) return {};
  return Refuse(source, "data.parts",
                "the sum is " + std::to_string(sum) + ", and train.batch_size is " +
                    std::to_string(job.train.batch_size) + "; make them equal");
}

Status CheckMeetings(const JobSource& source, const Job& job) {
  if (job.train.mode == Mode::kSync) return {};
  for (const LayerSpec& layer : job.model.layers) {
    const auto over = layer.words.find("over");
    if (layer.kind != "batch_norm" || over == layer.words.end() || over->second != "batch") {
      continue;
    }
    return Refuse(source, "train.mode",
                  "layer " + Quoted(layer.name) + " normalizes over the batch of all workers " +
                      "(over = batch), which have to make the same step for it; use sync, or " +
                      "over = part (in a recipe, model.batch_norm_over)");
  }
  return {};
}

}  // namespace hdps
