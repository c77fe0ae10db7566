// Computes, tile by tile, the gradients of the distinct rows and of their weights.
#include <algorithm>

#include "kernels/products/gemm.h"
#include "kernels/products/unique_row_gemm.h"

namespace hdps {
namespace {

// Floats of rows and gradients for features that share a tile of dy while it is in the cache.
constexpr size_t kGroupFloats = size_t{640} << 10;

size_t Blocks(size_t count, size_t block) { return (count + block - 1) / block; }

}  // namespace

void UniqueRowGemm::Backward(const RowLayer& layer, ConstMatrix y, Matrix dy,
                             const RowLayerGradients& out) {
  const std::vector<Stripe> tiles = StripesOf(dy.cols, kGatherTile);
  if (out.write_rows == Write::kOver && !index_.covers_table() && !index_.divides_table()) {
    for (size_t p = 0; p < out.rows.count(); ++p) std::ranges::fill(out.rows.piece(p), 0.0f);
  }
  const size_t tile_floats = dy.rows * kGatherTile;
  TileScratch::Block gradient = scratch_.Take(tiles.size() * tile_floats);
  TakeGradient(layer, y, dy, out.mask_dy, gradient.floats.get());
  const std::vector<size_t> groups = BackwardGroups(layer.dim);
  executor_.ParallelFor(groups.size(), [&](size_t piece) {
    for (size_t t = 0; t < tiles.size(); ++t) {
      const float* of_tile = gradient.floats.get() + t * tile_floats;
      if (piece + 1 == groups.size()) {
        BackwardPlain(layer, tiles[t], dy.rows, of_tile, out);
        continue;
      }
      for (size_t f = groups[piece]; f < groups[piece + 1]; ++f) {
        BackwardField(layer, tiles[t], f, of_tile, out);
      }
    }
  });
  scratch_.GiveBack(std::move(gradient));
  AddScatteredGradients(layer.dim, out);
}

std::vector<size_t> UniqueRowGemm::BackwardGroups(uint32_t dim) const {
  constexpr size_t kGroupsAThread = 4;
  const size_t num_fields = index_.fields().size();
  const size_t wanted = kGroupsAThread * static_cast<size_t>(executor_.threads());
  const size_t fields_max = std::max<size_t>(1, num_fields / wanted);
  std::vector<size_t> begins;
  size_t floats = 0;
  for (size_t f = 0; f < num_fields; ++f) {
    const size_t of_field = 2 * index_.fields()[f].unique() * dim;
    if (begins.empty() || f - begins.back() == fields_max || floats + of_field > kGroupFloats) {
      begins.push_back(f);
      floats = 0;
    }
    floats += of_field;
  }
  begins.push_back(num_fields);
  return begins;
}

void UniqueRowGemm::TakeGradient(const RowLayer& layer, ConstMatrix y, Matrix dy, bool mask_dy,
                                 float* tiles) const {
  constexpr size_t kBlockRows = 64;
  const std::vector<Stripe> cut = StripesOf(dy.cols, kGatherTile);
  executor_.ParallelFor(Blocks(dy.rows, kBlockRows), [&](size_t block) {
    const size_t end = std::min(dy.rows, (block + 1) * kBlockRows);
    for (size_t r = block * kBlockRows; r < end; ++r) {
      for (size_t t = 0; t < cut.size(); ++t) {
        const size_t first = cut[t].first, count = cut[t].count;
        const float* __restrict value = y.Row(r) + first;
        float* __restrict to = tiles + (t * dy.rows + r) * kGatherTile;
        std::copy_n(dy.Row(r) + first, count, to);
        for (size_t j = 0; layer.relu && j < count; ++j) to[j] = value[j] > 0.0f ? to[j] : 0.0f;
        if (mask_dy) std::copy_n(to, count, dy.Row(r) + first);
      }
    }
  });
}

void UniqueRowGemm::BackwardPlain(const RowLayer& layer, const Stripe& tile, size_t num_examples,
                                  const float* gradient, const RowLayerGradients& out) const {
  float bias_sum[kGatherTile] = {};
  WithVectors(
      width_, [&]() __attribute__((always_inline)) {
        for (size_t r = 0; r < num_examples; ++r) {
          const float* __restrict row = gradient + r * kGatherTile;
          for (size_t j = 0; j < kGatherTile; ++j) bias_sum[j] += row[j];
        }
      });
  std::copy_n(bias_sum, tile.count, out.bias + tile.first);
  GemmSpec spec;
  spec.transpose_a = true;
  for (const PlainColumns& plain : layer.plain) {
    BlasGemm(spec, plain.x, {gradient, num_examples, tile.count, kGatherTile},
             out.weights.Rows(plain.first_input, plain.x.cols).Columns(tile.first, tile.count));
  }
}

// Returns the place of the field's row gradients: in place, or beside it until
// AddScatteredGradients.
float* UniqueRowGemm::GradientRowsOf(const RowLayer& layer, const Stripe& tile, size_t field,
                                     const RowLayerGradients& out) {
  const FeatureRow& of = index_.fields()[field];
  if (float* const in_place = of.InPlace(out.rows, layer.dim); in_place != nullptr) return in_place;
  scattered_gradients_[field].resize(of.unique() * layer.dim);
  float* const beside = scattered_gradients_[field].data();
  // In place, but in several pieces: the sums start from the present values.
  if (of.in_place && out.write_rows == Write::kAdd && tile.first == 0) {
    of.ForEachRun(out.rows, layer.dim, [&](const float* from, size_t first, size_t count) {
      std::copy_n(from, count, beside + first);
    });
  }
  return beside;
}

void UniqueRowGemm::BackwardField(const RowLayer& layer, const Stripe& tile, size_t field,
                                  const float* gradient, const RowLayerGradients& out) {
  const FeatureRow& of = index_.fields()[field];
  const bool first = tile.first == 0 && !(of.in_place && out.write_rows == Write::kAdd);
  const FieldGradients to{GradientRowsOf(layer, tile, field, out),
                          first ? Write::kOver : Write::kAdd,
                          out.weights.Rows(layer.first_input + field * layer.dim, layer.dim)
                              .Columns(tile.first, tile.count)};
  if (layer.dim % kSmallProductCols == 0 && layer.dim <= kSmallDimMax) {
    return BackwardInChunks(layer, tile, field, gradient, to);
  }
  TileScratch::Block block = scratch_.Take(of.unique() * kGatherTile);
  float* const sums = block.floats.get();
  loops_.add_segments(
      {of.row_begin, of.row_bag.data(), of.row_factor.empty() ? nullptr : of.row_factor.data()},
      Write::kOver, gradient, kGatherTile, sums);
  const ConstMatrix of_tile = {sums, of.unique(), tile.count, kGatherTile};
  GemmSpec weights_spec;
  weights_spec.transpose_a = true;
  BlasGemm(weights_spec, RowsOf(layer, field), of_tile, to.weights);
  GemmSpec rows_spec;
  rows_spec.transpose_b = true;
  rows_spec.write = to.write_rows;
  BlasGemm(rows_spec, of_tile, WeightsOf(layer, field, tile),
           {to.rows, of.unique(), layer.dim, layer.dim});
  scratch_.GiveBack(std::move(block));
}

void UniqueRowGemm::BackwardInChunks(const RowLayer& layer, const Stripe& tile, size_t field,
                                     const float* gradient, const FieldGradients& to) const {
  constexpr size_t kChunkRows = 64;
  const FeatureRow& of = index_.fields()[field];
  const size_t dim = layer.dim;
  const float* const rows = RowsOf(layer, field).data;
  const ConstMatrix weights = WeightsOf(layer, field, tile);
  alignas(64) float transposed[kGatherTile * kSmallDimMax];        // [tile.count, dim]
  alignas(64) float weight_gradients[kSmallDimMax * kGatherTile];  // [dim, kGatherTile]
  alignas(64) float sums[kChunkRows * kGatherTile];
  for (size_t d = 0; d < dim; ++d) {
    for (size_t j = 0; j < tile.count; ++j) transposed[j * dim + d] = weights.Row(d)[j];
  }
  std::fill_n(weight_gradients, dim * kGatherTile, 0.0f);
  for (size_t first = 0; first < of.unique(); first += kChunkRows) {
    const size_t count = std::min(kChunkRows, of.unique() - first);
    loops_.add_segments({std::span(of.row_begin).subspan(first, count + 1), of.row_bag.data(),
                         of.row_factor.empty() ? nullptr : of.row_factor.data()},
                        Write::kOver, gradient, kGatherTile, sums);
    multiply_({.a = sums,
               .a_row = kGatherTile,
               .b = transposed,
               .b_stride = dim,
               .c = to.rows + first * dim,
               .c_stride = dim,
               .rows = count,
               .depth = tile.count,
               .cols = dim,
               .write = to.write_rows});
    multiply_({.a = rows + first * dim,
               .a_row = 1,
               .a_depth = dim,
               .b = sums,
               .b_stride = kGatherTile,
               .c = weight_gradients,
               .c_stride = kGatherTile,
               .rows = dim,
               .depth = count,
               .cols = kGatherTile,
               .write = Write::kAdd});
  }
  for (size_t d = 0; d < dim; ++d) {
    std::copy_n(weight_gradients + d * kGatherTile, tile.count, to.weights.Row(d));
  }
}

void UniqueRowGemm::AddScatteredGradients(uint32_t dim, const RowLayerGradients& out) {
  // No other field writes the row, and nothing is in it yet.
  const bool alone = out.write_rows == Write::kOver && index_.divides_table();
  const auto add = [&](size_t f) {
    const FeatureRow& field = index_.fields()[f];
    if (field.InPlace(out.rows, dim) != nullptr) return;
    const float* const from = scattered_gradients_[f].data();
    field.ForEachRun(out.rows, dim, [&](float* to, size_t first, size_t count) {
      const float* const gradients = from + first;
      if (alone || field.in_place) {
        std::copy_n(gradients, count, to);
      } else {
        for (size_t i = 0; i < count; ++i) to[i] += gradients[i];
      }
    });
  };
  const size_t num_fields = index_.fields().size();
  if (index_.disjoint()) {
    executor_.ParallelFor(num_fields, add);
  } else {  // In order of feature.
    for (size_t f = 0; f < num_fields; ++f) add(f);
  }
}

}  // namespace hdps
