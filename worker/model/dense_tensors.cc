// The flat array of dense parameters: positions and initial values of tensors.
#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

float InitialValue(const InitSpec& init, uint64_t stream, uint64_t element) {
  switch (init.kind) {
    case InitKind::kZeros:
      return 0.0f;
    case InitKind::kConstant:
      return init.scale;
    case InitKind::kUniform:
      return init.scale * (2.0f * UnitFloat(RandomAt(stream, element)) - 1.0f);
    case InitKind::kNormal: {  // Box and Muller, 1958; 1 - u keeps the logarithm finite.
      constexpr double kTwoPi = 6.283185307179586;
      const double u = UnitDouble(RandomAt(stream, 2 * element));
      const double v = UnitDouble(RandomAt(stream, 2 * element + 1));
      return static_cast<float>(init.scale * std::sqrt(-2.0 * std::log(1.0 - u)) *
                                std::cos(kTwoPi * v));
    }
  }
  return 0.0f;
}

}  // namespace

size_t DenseTensor::size() const {
  size_t product = 1;
  for (const uint32_t extent : shape) product *= extent;
  return product;
}

size_t Model::dense_floats() const {
  size_t chunks = 0;
  for (const DenseTensor& tensor : tensors()) chunks += tensor.num_chunks;
  return chunks * kDenseChunkFloats;
}

void Model::SetDenseAt(size_t begin, std::span<const float> values) {
  if (float* const there = DenseOnDevice(); there != nullptr) {
    ops().Upload(values, there + begin);
  } else {
    std::ranges::copy(values, DenseInPlace().subspan(begin, values.size()).begin());
  }
}

std::vector<float> Model::InitialDense(uint64_t seed) const {
  std::vector<float> flat(dense_floats(), 0.0f);
  for (size_t t = 0; t < tensors().size(); ++t) {
    const DenseTensor& tensor = tensors()[t];
    const uint64_t stream = CombineKeys(seed, t);
    float* values = flat.data() + tensor.first_chunk * kDenseChunkFloats;
    for (size_t i = 0; i < tensor.size(); ++i) values[i] = InitialValue(tensor.init, stream, i);
  }
  return flat;
}

}  // namespace hdps
