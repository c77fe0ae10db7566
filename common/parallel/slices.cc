// Copies slices in runs along the last axis.
#include "common/parallel/slices.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {

namespace {

std::string Shown(const std::vector<uint32_t>& tuple) {
  std::string text;
  for (const uint32_t parts : tuple) text += (text.empty() ? "[" : ", ") + std::to_string(parts);
  return (text.empty() ? "[" : text) + "]";
}

// Calls run(first element in the tensor, first element in the slice, count) for each run.
template <typename Run>
void ForRuns(std::span<const size_t> shape, std::span<const Cut> slice, const Run& run) {
  CHECK_EQ(shape.size(), slice.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) CHECK_LE(slice[axis].end(), shape[axis]);
  const size_t size = SizeOf(slice);
  if (size == 0) return;
  const size_t length = slice.empty() ? 1 : slice.back().size;
  std::vector<size_t> at(slice.size(), 0);  // Indices in the slice; the last stays 0.
  for (size_t done = 0; done < size; done += length) {
    size_t first = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      first = first * shape[axis] + slice[axis].begin + at[axis];
    }
    run(first, done, length);
    for (size_t axis = slice.size() - std::min<size_t>(1, slice.size()); axis-- > 0;) {
      if (++at[axis] < slice[axis].size) break;
      at[axis] = 0;
    }
  }
}

// Returns what is wrong with the axes of one tuple; `image` as in ProblemOfSlices().
std::string ProblemOfAxes(const std::vector<uint32_t>& tuple, const std::vector<uint32_t>& image) {
  constexpr size_t kAxes = 2;
  const bool by_pixels = tuple.size() == kAxes;
  if (!by_pixels && (image.empty() || tuple.size() != 1 + image.size())) {
    const std::string has = Shown(tuple) + " has " + std::to_string(tuple.size()) +
                            (tuple.size() == 1 ? " axis" : " axes");
    if (image.empty()) return has + "; an input has two, examples and features: [N, 1] or [1, N]";
    return has + "; images of data.image_shape " + Shown(image) + " have " +
           std::to_string(1 + image.size()) +
           ", the examples first: give as many, or two, examples and pixels";
  }
  if (std::ranges::count_if(tuple, [](uint32_t parts) { return parts > 1; }) > 1) {
    return Shown(tuple) + " cuts two axes of one input; cut one of them" +
           (by_pixels ? ": [N, 1] the examples or [1, N] the features" : "");
  }
  for (size_t axis = 0; !by_pixels && axis < image.size(); ++axis) {
    const uint32_t parts = tuple[1 + axis];
    if (parts <= image[axis]) continue;
    return Shown(tuple) + " has " + std::to_string(parts) + " parts of an axis of " +
           std::to_string(image[axis]) + "; give at most as many";
  }
  return "";
}

}  // namespace

std::vector<Cut> SliceOf(std::span<const size_t> shape, std::span<const uint32_t> strategy,
                         uint32_t rank) {
  CHECK_EQ(shape.size(), strategy.size());
  std::vector<Cut> slice(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    CHECK_GT(strategy[axis], 0u);
    slice[axis] = CutOf(shape[axis], rank % strategy[axis], strategy[axis]);
    rank /= strategy[axis];
  }
  CHECK_EQ(rank, 0u) << "more ranks than slices";
  return slice;
}

size_t SizeOf(std::span<const Cut> slice) {
  size_t size = 1;
  for (const Cut& cut : slice) size *= cut.size;
  return size;
}

void TakeSlice(std::span<const size_t> shape, std::span<const Cut> slice, const float* tensor,
               float* part) {
  ForRuns(shape, slice, [&](size_t first, size_t at, size_t count) {
    std::copy_n(tensor + first, count, part + at);
  });
}

void PutSlice(std::span<const size_t> shape, std::span<const Cut> slice, const float* part,
              float* tensor) {
  ForRuns(shape, slice, [&](size_t first, size_t at, size_t count) {
    std::copy_n(part + at, count, tensor + first);
  });
}

std::string ProblemOfSlices(const std::vector<std::vector<uint32_t>>& tuples, uint32_t workers,
                            const std::vector<uint32_t>& image) {
  constexpr size_t kInputs = 2;
  if (tuples.size() > kInputs) {
    return std::to_string(tuples.size()) +
           " tuples; there is one for the sparse features and one for the numeric columns";
  }
  uint32_t all = 0;  // Number of parts of the first input.
  for (const std::vector<uint32_t>& tuple : tuples) {
    const bool last = &tuple == &tuples.back();
    std::string problem = ProblemOfAxes(tuple, last ? image : std::vector<uint32_t>());
    if (!problem.empty()) return problem;
    const uint32_t parts = *std::ranges::max_element(tuple);
    if (all == 0 && parts > 1) all = parts;
    if (parts > 1 && parts != all) {
      return Shown(tuple) +
             " has other parts than the tuple before it; inputs that are cut have "
             "as many parts, " +
             std::to_string(all);
    }
    if (parts > 1 && workers > 0 && parts != workers) {
      return Shown(tuple) + " has " + std::to_string(parts) + " parts for " +
             std::to_string(workers) + " workers (device_num); each has one part";
    }
  }
  return "";
}

}  // namespace hdps
