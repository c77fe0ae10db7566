// Computes stripes of units one after the other, so that a stripe's operands and sums stay in the
// cache.
#include "kernels/products/unique_row_gemm.h"

#include <algorithm>
#include <utility>

#include "common/job/spec/pooling.h"
#include "kernels/products/gemm.h"

namespace hdps {
namespace {

// Returns the units of one product: more if reading the rows for it costs more.
size_t StripeWidth(uint32_t dim) { return dim <= 32 ? kGatherTile : 2 * kGatherTile; }
// With fewer stripes than this, all threads work on each of them.
constexpr size_t kStripesMany = 4;
// Examples in one piece of work if threads share a stripe.
constexpr size_t kBlockExamples = 256;
// Floats of P for features that are gathered together.
constexpr size_t kGroupFloats = size_t{256} << 10;

// Rows of y prefetched for writing.
constexpr size_t kRowsAhead = 32, kLineFloats = 16;

size_t Blocks(size_t count, size_t block) { return (count + block - 1) / block; }

}  // namespace

TileScratch::Block TileScratch::Take(size_t floats) {
  Block block;
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      block = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (block.size < floats) {
    block.floats = AllocateFloats(floats);
    block.size = floats;
  }
  return block;
}

void TileScratch::GiveBack(Block block) {
  MutexLock lock(mutex_);
  free_.push_back(std::move(block));
}

bool UniqueRowGemmPays(const UniqueRowGemmShape& shape) {
  // Costs in floating-point operations a unit: the plain layer multiplies a row for every key, this
  // one once a distinct row, but it also adds a row of the tile for every key. Rows that are not
  // whole vectors cost more.
  const bool whole = shape.dim % kSmallProductCols == 0;
  const size_t row_price = whole ? 6 : 7, gather_price = whole ? 25 : 30;
  const size_t plain = 6 * shape.keys * shape.dim;
  const size_t unique = row_price * shape.unique_rows * shape.dim + gather_price * shape.keys;
  return unique < plain;
}

bool UniqueRowGemmPaysInScores(uint32_t dim) {
  constexpr size_t kKeys = 2;
  return UniqueRowGemmPays({.keys = kKeys, .unique_rows = kKeys / 2, .dim = dim, .units = 1});
}

UniqueRowGemm::UniqueRowGemm(Executor& executor)
    : executor_(executor),
      loops_(GatherLoopsOfThisMachine()),
      multiply_(SmallGemmOfThisMachine()) {}

void UniqueRowGemm::Load(std::span<const Bags> features, Pooling pooling, uint32_t num_rows) {
  index_.Load(features, pooling, num_rows, executor_);
  scattered_rows_.resize(std::max(scattered_rows_.size(), features.size()));
  scattered_gradients_.resize(scattered_rows_.size());
}

std::vector<UniqueRowGemm::Stripe> UniqueRowGemm::StripesOf(size_t units, size_t width) {
  std::vector<Stripe> stripes;
  for (size_t first = 0; first < units; first += width) {
    stripes.push_back({first, std::min(width, units - first), width});
  }
  return stripes;
}

ConstMatrix UniqueRowGemm::RowsOf(const RowLayer& layer, size_t field) const {
  const FeatureRow& of = index_.fields()[field];
  const float* const in_place = of.InPlace(layer.rows, layer.dim);
  return {in_place != nullptr ? in_place : scattered_rows_[field].data(), of.unique(), layer.dim,
          layer.dim};
}

ConstMatrix UniqueRowGemm::WeightsOf(const RowLayer& layer, size_t field, const Stripe& stripe) {
  return layer.weights.Rows(layer.first_input + field * layer.dim, layer.dim)
      .Columns(stripe.first, stripe.count);
}

void UniqueRowGemm::CopyScatteredRows(const RowLayer& layer) {
  executor_.ParallelFor(index_.fields().size(), [&](size_t f) {
    const FeatureRow& field = index_.fields()[f];
    if (field.InPlace(layer.rows, layer.dim) != nullptr) return;
    scattered_rows_[f].resize(field.unique() * layer.dim);
    float* const to = scattered_rows_[f].data();
    field.ForEachRun(layer.rows, layer.dim, [&](const float* from, size_t first, size_t count) {
      std::copy_n(from, count, to + first);
    });
  });
}

// Examples [begin, begin + count) and features [first_field, end_field).
struct UniqueRowGemm::Part {
  size_t begin, count;
  float* sums;  // [tiles of the stripe][count, kGatherTile]
  size_t first_field = 0, end_field = 0;
  const float* const* products = nullptr;  // [end_field - first_field], by Multiply.
};

void UniqueRowGemm::Forward(const RowLayer& layer, Matrix y) {
  if (y.rows == 0) return;
  CopyScatteredRows(layer);
  const std::vector<Stripe> stripes = StripesOf(y.cols, StripeWidth(layer.dim));
  if (stripes.size() < kStripesMany) {
    for (const Stripe& stripe : stripes) ForwardTogether(layer, stripe, y);
  } else {
    executor_.ParallelFor(stripes.size(), [&](size_t s) { ForwardStripe(layer, stripes[s], y); });
  }
}

void UniqueRowGemm::ForwardStripe(const RowLayer& layer, const Stripe& stripe, Matrix y) {
  const std::span<const FeatureRow> fields = index_.fields();
  TileScratch::Block sums = scratch_.Take(y.rows * stripe.width);
  Part part{0, y.rows, sums.floats.get()};
  BeginSums(layer, stripe, part);
  std::vector<const float*> products;
  while (part.first_field < fields.size()) {
    size_t floats = 0;  // In the group, which has at least one feature.
    part.end_field = part.first_field;
    while (part.end_field < fields.size() && (floats == 0 || floats < kGroupFloats)) {
      floats += (fields[part.end_field++].unique() + 1) * stripe.width;
    }
    TileScratch::Block group = scratch_.Take(floats);
    float* place = group.floats.get();
    products.clear();
    for (size_t f = part.first_field; f < part.end_field; ++f) {
      Multiply(layer, stripe, f, place);
      products.push_back(place);
      place += (fields[f].unique() + 1) * stripe.width;
    }
    part.products = products.data();
    AddFields(stripe, part);
    scratch_.GiveBack(std::move(group));
    part.first_field = part.end_field;
  }
  FinishSums(layer, stripe, part, y);
  scratch_.GiveBack(std::move(sums));
}

void UniqueRowGemm::ForwardTogether(const RowLayer& layer, const Stripe& stripe, Matrix y) {
  const std::span<const FeatureRow> fields = index_.fields();
  size_t floats = 0;
  for (const FeatureRow& field : fields) floats += (field.unique() + 1) * stripe.width;
  TileScratch::Block all = scratch_.Take(floats);
  std::vector<float*> places(fields.size());
  float* place = all.floats.get();
  for (size_t f = 0; f < fields.size(); ++f) {
    places[f] = place;
    place += (fields[f].unique() + 1) * stripe.width;
  }
  executor_.ParallelFor(fields.size(), [&](size_t f) { Multiply(layer, stripe, f, places[f]); });
  executor_.ParallelFor(Blocks(y.rows, kBlockExamples), [&](size_t block) {
    TileScratch::Block sums = scratch_.Take(kBlockExamples * stripe.width);
    const size_t begin = block * kBlockExamples;
    const Part part{
        begin,        std::min(kBlockExamples, y.rows - begin), sums.floats.get(), 0, fields.size(),
        places.data()};
    BeginSums(layer, stripe, part);
    AddFields(stripe, part);
    FinishSums(layer, stripe, part, y);
    scratch_.GiveBack(std::move(sums));
  });
  scratch_.GiveBack(std::move(all));
}

void UniqueRowGemm::Multiply(const RowLayer& layer, const Stripe& stripe, size_t field,
                             float* products) const {
  const size_t unique = index_.fields()[field].unique();
  const ConstMatrix rows = RowsOf(layer, field), weights = WeightsOf(layer, field, stripe);
  if (layer.dim > kSmallDimMax) {
    BlasGemm({.rows_alike = layer.rows_alike}, rows, weights,
             {products, unique, stripe.count, stripe.width});
  } else {
    alignas(64) float packed[kSmallDimMax * kGatherTile];  // [dim, kGatherTile]
    for (const Stripe& tile : StripesOf(stripe.count, kGatherTile)) {
      for (size_t d = 0; d < layer.dim; ++d) {
        float* const to = packed + d * kGatherTile;
        std::fill_n(std::copy_n(weights.Row(d) + tile.first, tile.count, to),
                    kGatherTile - tile.count, 0.0f);
      }
      multiply_({.a = rows.data,
                 .a_row = layer.dim,
                 .b = packed,
                 .b_stride = kGatherTile,
                 .c = products + tile.first,
                 .c_stride = stripe.width,
                 .rows = unique,
                 .depth = layer.dim,
                 .cols = kGatherTile});
    }
  }
  std::fill_n(products + unique * stripe.width, stripe.width, 0.0f);
}

void UniqueRowGemm::BeginSums(const RowLayer& layer, const Stripe& stripe, const Part& part) const {
  float* sums = part.sums;
  for (const Stripe& tile : StripesOf(stripe.count, kGatherTile)) {
    GemmSpec spec{.rows_alike = layer.rows_alike};
    for (const PlainColumns& plain : layer.plain) {
      BlasGemm(spec, plain.x.Rows(part.begin, part.count),
               layer.weights.Rows(plain.first_input, plain.x.cols)
                   .Columns(stripe.first + tile.first, tile.count),
               {sums, part.count, tile.count, kGatherTile});
      spec.write = Write::kAdd;
    }
    if (spec.write == Write::kOver) std::fill_n(sums, part.count * kGatherTile, 0.0f);
    sums += part.count * kGatherTile;
  }
}

void UniqueRowGemm::AddFields(const Stripe& stripe, const Part& part) const {
  std::vector<GatherSource> sources;
  for (size_t column = 0; column < stripe.width; column += kGatherTile) {
    float* const sums = part.sums + column * part.count;
    sources.clear();
    for (size_t f = part.first_field; f < part.end_field; ++f) {
      const FeatureRow& field = index_.fields()[f];
      const float* const products = part.products[f - part.first_field] + column;
      if (!field.by_bag.empty()) {
        sources.push_back({products, field.by_bag.data() + part.begin});
        continue;
      }
      loops_.add_sources(sources, stripe.width, part.count, sums);  // In order of feature.
      sources.clear();
      loops_.add_segments(
          {std::span(field.key_begin).subspan(part.begin, part.count + 1), field.key_row.data(),
           field.key_factor.empty() ? nullptr : field.key_factor.data()},
          Write::kAdd, products, stripe.width, sums);
    }
    loops_.add_sources(sources, stripe.width, part.count, sums);
  }
}

void UniqueRowGemm::FinishSums(const RowLayer& layer, const Stripe& stripe, const Part& part,
                               Matrix y) const {
  const float* sums = part.sums;
  for (const Stripe& tile : StripesOf(stripe.count, kGatherTile)) {
    const size_t first = stripe.first + tile.first;
    float bias[kGatherTile] = {};
    if (layer.bias != nullptr) std::copy_n(layer.bias + first, tile.count, bias);
    WithVectors(
        width_, [&]() __attribute__((always_inline)) {
          for (size_t i = 0; i < part.count; ++i) {
            const float* __restrict from = sums + i * kGatherTile;
            float* __restrict to = y.Row(part.begin + i) + first;
            // A few lines of each row, too few for the processor's own prefetching.
            if (i + kRowsAhead < part.count) {
              const float* const ahead = y.Row(part.begin + i + kRowsAhead) + first;
              for (size_t j = 0; j < tile.count; j += kLineFloats) __builtin_prefetch(ahead + j, 1);
            }
            for (size_t j = 0; j < tile.count; ++j) to[j] = from[j] + bias[j];
            for (size_t j = 0; layer.relu && j < tile.count; ++j)
              to[j] = to[j] > 0.0f ? to[j] : 0.0f;
          }
        });
    sums += part.count * kGatherTile;
  }
}

}  // namespace hdps
