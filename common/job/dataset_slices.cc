// The last tuple belongs to the numeric columns if it does not belong to the sparse features.
#include "common/job/dataset_slices.h"

#include <algorithm>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"

namespace hdps {
namespace {

bool FirstIsSparse(const Job& job) {
  return job.parallel.dataset_slices.size() > 1 || !FeaturesOf(job.data).sparse.empty();
}

}  // namespace

const std::vector<uint32_t>* SparseTuple(const Job& job) {
  const auto& tuples = job.parallel.dataset_slices;
  return tuples.empty() || !FirstIsSparse(job) ? nullptr : &tuples[0];
}

const std::vector<uint32_t>* NumericTuple(const Job& job) {
  const auto& tuples = job.parallel.dataset_slices;
  const size_t place = FirstIsSparse(job) ? 1 : 0;
  return place < tuples.size() ? &tuples[place] : nullptr;
}

bool CutsColumns(const std::vector<uint32_t>* tuple) {
  if (tuple == nullptr || tuple->empty()) return false;
  return std::any_of(tuple->begin() + 1, tuple->end(), [](uint32_t parts) { return parts > 1; });
}

AxisFirst NumericOrder(const Job& job) {
  AxisFirst order;
  const std::vector<uint32_t>* const tuple = NumericTuple(job);
  const std::vector<uint32_t>& image = job.data.image_shape;
  if (!CutsColumns(tuple) || tuple->size() != 1 + image.size()) return order;
  bool behind = false;  // The cut axis was passed.
  for (size_t axis = 0; axis < image.size(); ++axis) {
    const bool cut = (*tuple)[1 + axis] > 1;
    if (!cut) (behind ? order.unit : order.blocks) *= image[axis];
    behind = behind || cut;
  }
  return order;
}

}  // namespace hdps
