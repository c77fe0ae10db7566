// Adds up memory parts, and refuses too much.
#include "common/planning/memory_check.h"

#include <algorithm>
#include <functional>

#include "common/base/byte_count.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

std::vector<MemoryPart> MemoryOfWorker(const Job& job, bool kept_here) {
  std::vector<MemoryPart> parts;
  // A model that is cut over workers is held in parts.
  if (job.parallel.parallel_mode == ParallelMode::kData) {
    parts.push_back({"weights and gradients of the dense layers (model.hidden, model.layers)",
                     2 * DenseFloats(job) * sizeof(float)});
  }
  for (const TableSpec& table : job.tables) {
    if (table.dense || table.vocab_cache_size == 0 || !kept_here) continue;
    const size_t floats = table.dim + RecordOf(table.optimizer).StateFloats(table.dim);
    parts.push_back({"kept rows of table " + table.name + " (vocab_cache_size)",
                     table.vocab_cache_size * floats * sizeof(float)});
  }
  return parts;
}

Status CheckMemory(const std::string& who, std::vector<MemoryPart> parts, const MemoryLimit& most) {
  double sum = 0;  // The sum of the parts may exceed 64 bits.
  for (const MemoryPart& part : parts) sum += static_cast<double>(part.bytes);
  if (sum <= static_cast<double>(most.bytes)) return {};
  std::ranges::stable_sort(parts, std::greater<>(), &MemoryPart::bytes);
  std::string text = who + " cannot have the memory that the job asks for: ";
  // Reducing a part that is small beside the largest would not help.
  for (size_t i = 0; i < parts.size() && parts[i].bytes > parts[0].bytes / 100; ++i) {
    text += (i == 0 ? "" : ", ") + ShowByteCount(parts[i].bytes) + " for " + parts[i].what;
  }
  return {Code::kInvalidArgument, text + "; there are " + ShowByteCount(most.bytes) + " in all (" +
                                      most.by + "); lower these settings, or give it more"};
}

}  // namespace hdps
