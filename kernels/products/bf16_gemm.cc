// Multiplies by oneDNN's matmul, one primitive for each thread and shape; in fp32 for shapes that
// it refuses.
#include "kernels/products/bf16_gemm.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

#include "common/platform/memory_full.h"
#include "kernels/host/half_floats.h"
#include "kernels/products/product_library.h"

namespace hdps {
namespace {

using Dims = dnnl::memory::dims;
using DataType = dnnl::memory::data_type;

dnnl::memory::dim AsDim(size_t value) { return static_cast<dnnl::memory::dim>(value); }

// Everything that the code of a primitive depends on. Two calls with the same shape have the same
// bits.
struct Shape {
  std::array<size_t, 6> sizes;  // Rows, columns, depth; strides of a, b and c.
  bool transpose_a, transpose_b, add, bias, relu, to_bf16;
  auto operator<=>(const Shape&) const = default;
};

// A primitive and the memory objects for its call. `refused`: the library has none.
struct Multiplier {
  dnnl::matmul primitive;
  dnnl::memory a, b, bias, c;
  bool refused = false;
};

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

Multiplier MakeMultiplier(const Shape& shape) {
  const auto [rows, cols, depth, stride_a, stride_b, stride_c] = shape.sizes;
  const auto matrix = [](size_t r, size_t c, DataType type, size_t stride, bool transposed) {
    const Dims strides = transposed ? Dims{1, AsDim(stride)} : Dims{AsDim(stride), 1};
    return dnnl::memory::desc({AsDim(r), AsDim(c)}, type, strides);
  };
  const auto a = matrix(rows, depth, DataType::bf16, stride_a, shape.transpose_a);
  const auto b = matrix(depth, cols, DataType::bf16, stride_b, shape.transpose_b);
  const auto c =
      matrix(rows, cols, shape.to_bf16 ? DataType::bf16 : DataType::f32, stride_c, false);
  const auto bias = matrix(1, cols, DataType::f32, cols, false);
  dnnl::post_ops behind;
  if (shape.add) behind.append_sum(1.0f);
  if (shape.relu) behind.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(behind);
  Multiplier made;
  try {
    const dnnl::matmul::desc desc =
        shape.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc chosen(desc, attributes, Engine());
    made.primitive = dnnl::matmul(chosen);
    made.a = dnnl::memory(a, Engine(), nullptr);
    made.b = dnnl::memory(b, Engine(), nullptr);
    made.c = dnnl::memory(c, Engine(), nullptr);
    if (shape.bias) made.bias = dnnl::memory(bias, Engine(), nullptr);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw MemoryFull(uint64_t{0});
    LOG(WARNING) << "oneDNN has no bf16 product of " << rows << " x " << depth << " x " << cols
                 << " (" << error.message << "): it is computed in fp32";
    made.refused = true;
  }
  return made;
}

// Returns the calling thread's primitive. Steps have few shapes, but batches of ever new sizes
// would fill the map.
Multiplier& MultiplierFor(const Shape& shape) {
  constexpr size_t kShapesMax = 512;
  thread_local std::map<Shape, Multiplier> made;
  const auto found = made.find(shape);
  if (found != made.end()) return found->second;
  if (made.size() >= kShapesMax) made.clear();
  return made.emplace(shape, MakeMultiplier(shape)).first->second;
}

// Returns false if the library refuses the shape.
bool MultiplyByLibrary(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& to) {
  PrepareProductLibrary();
  const bool to_bf16 = to.fp32.data == nullptr;
  const Shape shape{.sizes = {to.rows(), to.cols(), spec.transpose_a ? a.rows : a.cols, a.stride,
                              b.stride, to_bf16 ? to.bf16.stride : to.fp32.stride},
                    .transpose_a = spec.transpose_a,
                    .transpose_b = spec.transpose_b,
                    .add = spec.write == Write::kAdd,
                    .bias = spec.bias != nullptr,
                    .relu = spec.relu,
                    .to_bf16 = to_bf16};
  Multiplier& multiplier = MultiplierFor(shape);
  if (multiplier.refused) return false;
  thread_local const dnnl::stream stream(Engine());
  const auto argument = [](int kind, dnnl::memory& memory, const void* data) {
    CHECK_EQ(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data)), dnnl_success);
    return dnnl_exec_arg_t{kind, memory.get()};
  };
  std::array<dnnl_exec_arg_t, 4> arguments = {
      argument(DNNL_ARG_SRC, multiplier.a, a.data),
      argument(DNNL_ARG_WEIGHTS, multiplier.b, b.data),
      argument(DNNL_ARG_DST, multiplier.c,
               to_bf16 ? static_cast<void*>(to.bf16.data) : to.fp32.data)};
  int count = 3;
  if (shape.bias) arguments[count++] = argument(DNNL_ARG_BIAS, multiplier.bias, spec.bias);
  const dnnl_status_t status =
      dnnl_primitive_execute(multiplier.primitive.get(), stream.get(), count, arguments.data());
  if (status == dnnl_out_of_memory) throw MemoryFull(uint64_t{0});
  CHECK_EQ(status, dnnl_success) << to.rows() << " x " << to.cols();
  return true;
}

// Copies the numbers to fp32.
Matrix Widened(Bf16Matrix from, std::vector<float>* memory) {
  memory->resize(from.rows * from.cols);
  const Matrix to{memory->data(), from.rows, from.cols, from.cols};
  for (size_t r = 0; r < from.rows; ++r) {
    WidenFloats(WidestVectors(), DType::kBf16, reinterpret_cast<const std::byte*>(from.Row(r)),
                {to.Row(r), from.cols});
  }
  return to;
}

void MultiplyWidened(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& to) {
  thread_local std::vector<float> wide_a, wide_b, wide_c;
  Matrix c = to.fp32;
  if (c.data == nullptr) {
    wide_c.resize(to.bf16.rows * to.bf16.cols);
    c = {wide_c.data(), to.bf16.rows, to.bf16.cols, to.bf16.cols};
  }
  BlasGemm(spec, Widened(a, &wide_a), Widened(b, &wide_b), c);
  for (size_t r = 0; to.fp32.data == nullptr && r < c.rows; ++r) {
    NarrowFloats(WidestVectors(), DType::kBf16, {c.Row(r), c.cols},
                 reinterpret_cast<std::byte*>(to.bf16.Row(r)));
  }
}

}  // namespace

Bf16Products Bf16ProductsOfThisMachine() {
  if (WidenedBf16Asked()) return Bf16Products::kWidened;
  if (ProductLibraryHasAmx()) return Bf16Products::kAmx;
  return ProductLibraryHasAvx512Bf16() ? Bf16Products::kAvx512 : Bf16Products::kNone;
}

std::string_view Bf16ProductsName(Bf16Products products) {
  switch (products) {
    case Bf16Products::kNone:
      return "nothing";
    case Bf16Products::kWidened:
      return "widened fp32";
    case Bf16Products::kPlainTiles:
      return "plain tiles";
    case Bf16Products::kAvx512:
      return "AVX512-BF16";
    case Bf16Products::kAmx:
      return "AMX";
  }
  return "";
}

namespace {

// Computes a lone row beside a copy of itself, as the rows of larger products are computed.
void MultiplyPair(Bf16Products by, const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b,
                  const Bf16Tile& to) {
  constexpr size_t kRows = 2;
  const size_t cols = to.cols();
  std::vector<uint16_t> rows(kRows * a.cols), narrow(kRows * cols);
  std::vector<float> wide(kRows * cols);
  for (size_t r = 0; r < kRows; ++r) {
    std::copy_n(a.Row(0), a.cols, &rows[r * a.cols]);
    if (spec.write == Write::kAdd) std::copy_n(to.fp32.Row(0), cols, &wide[r * cols]);
  }
  Bf16Tile pair;
  if (to.fp32.data != nullptr) {
    pair.fp32 = {wide.data(), kRows, cols, cols};
  } else {
    pair.bf16 = {narrow.data(), kRows, cols, cols};
  }
  Bf16Gemm(by, spec, {rows.data(), kRows, a.cols, a.cols}, b, pair);
  if (to.fp32.data != nullptr) {
    std::copy_n(wide.data(), cols, to.fp32.Row(0));
  } else {
    std::copy_n(narrow.data(), cols, to.bf16.Row(0));
  }
}

}  // namespace

void Bf16Gemm(Bf16Products by, const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b,
              const Bf16Tile& to) {
  CHECK(by != Bf16Products::kNone);
  CHECK(spec.write == Write::kOver || to.fp32.data != nullptr) << "no sums in bf16";
  if (to.rows() == 0 || to.cols() == 0) return;
  const size_t depth = spec.transpose_a ? a.rows : a.cols;
  if (spec.rows_alike && to.rows() == 1 && !spec.transpose_a) {
    return MultiplyPair(by, spec, a, b, to);
  }
  if (by != Bf16Products::kWidened && depth > 0 && MultiplyByLibrary(spec, a, b, to)) return;
  MultiplyWidened(spec, a, b, to);
}

}  // namespace hdps
