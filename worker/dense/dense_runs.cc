// Lists keys and floats of dense tensors.
#include "worker/dense/dense_runs.h"

#include <glog/logging.h>

#include <algorithm>
#include <numeric>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

std::vector<Key> DenseKeys(const std::vector<DenseTensor>& tensors) {
  std::vector<uint32_t> all(tensors.size());
  std::iota(all.begin(), all.end(), 0u);
  std::vector<Key> keys = DenseKeys(tensors, all);
  CHECK(tensors.empty() || keys.size() == tensors.back().first_chunk + tensors.back().num_chunks)
      << "tensors lie one behind the other";
  return keys;
}

std::vector<Key> DenseKeys(const std::vector<DenseTensor>& tensors,
                           std::span<const uint32_t> members) {
  std::vector<Key> keys;
  for (const uint32_t t : members) {
    for (size_t c = 0; c < tensors[t].num_chunks; ++c) keys.push_back(Key{t} << 32 | c);
  }
  return keys;
}

FloatRun RunOf(const DenseTensor& tensor) {
  return {tensor.first_chunk * kDenseChunkFloats, tensor.num_chunks * kDenseChunkFloats};
}

std::vector<FloatRun> RunsOf(const std::vector<DenseTensor>& tensors,
                             std::span<const uint32_t> members) {
  std::vector<FloatRun> runs;
  for (const uint32_t t : members) runs.push_back(RunOf(tensors[t]));
  std::ranges::sort(runs, {}, &FloatRun::begin);
  std::vector<FloatRun> joined;
  for (const FloatRun& run : runs) {
    if (!joined.empty() && joined.back().begin + joined.back().size == run.begin) {
      joined.back().size += run.size;
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

std::vector<bool> HeldByServers(const Job& job, const std::vector<DenseTensor>& tensors) {
  std::vector<bool> held;
  for (const DenseTensor& tensor : tensors) {
    held.push_back(AtServers(job, job.model.layers[tensor.layer]));
  }
  return held;
}

}  // namespace hdps
