// Reads, updates and makes rows in their table's format; holds the loops over 32-bit rows.
#include "embedding/memory/row_batches.h"

#include <cstring>
#include <vector>

#include "embedding/memory/row_loops.h"
#include "kernels/host/optimizer_loops.h"

namespace hdps {

template void ReadRowsIn<WeightFormat::kFp32>(VectorWidth, const RowReading&);
template void UpdateRowsIn<WeightFormat::kFp32>(VectorWidth, const RowUpdating&);

namespace {

// Reads whole rows of a 16-bit format one by one, for checkpoints.
void ReadWholeRows(const StoredRows& rows, std::span<const Key> keys, uint32_t row_floats,
                   float* out) {
  MissingRows missing(rows.initial, row_floats);
  rows.store.ForEachFound(keys, rows.store.row_bytes(),
                          [&](size_t k, const RowSlot*, const std::byte* row) {
                            float* const own = out + k * row_floats;
                            if (row == nullptr) return missing.Add(keys[k], own);
                            ReadRow(rows.format, rows.dim, row, {own, row_floats});
                          });
}

}  // namespace

void ReadRows(VectorWidth width, const StoredRows& rows, std::span<const Key> keys,
              uint32_t row_floats, float* out) {
  const RowReading reading{rows, keys, row_floats, out};
  if (rows.format == WeightFormat::kFp32) {
    return ReadRowsIn<WeightFormat::kFp32>(width, reading);
  }
  if (row_floats != rows.dim) return ReadWholeRows(rows, keys, row_floats, out);
  rows.format == WeightFormat::kFp16 ? ReadRowsIn<WeightFormat::kFp16>(width, reading)
                                     : ReadRowsIn<WeightFormat::kBf16>(width, reading);
}

void UpdateRows(VectorWidth width, const OptimizerSpec& spec, const StoredRows& rows,
                std::span<const Key> keys, const float* values, GradientScale scale, int64_t step) {
  const RowUpdating updating{spec, rows, keys, values, scale, step};
  const OptimizerLoops* const own = spec.record->is_own() ? &LoopsOf(spec) : nullptr;
  switch (rows.format) {
    case WeightFormat::kFp32:
      return own != nullptr ? own->update_fp32_rows(width, updating)
                            : UpdateRowsIn<WeightFormat::kFp32>(width, updating);
    case WeightFormat::kFp16:
      return own != nullptr ? own->update_fp16_rows(width, updating)
                            : UpdateRowsIn<WeightFormat::kFp16>(width, updating);
    case WeightFormat::kBf16:
      return own != nullptr ? own->update_bf16_rows(width, updating)
                            : UpdateRowsIn<WeightFormat::kBf16>(width, updating);
  }
}

void MakeRows(const StoredRows& rows, std::span<const Key> keys, std::byte* const* at) {
  const size_t floats = rows.row_floats();
  if (rows.format == WeightFormat::kFp32) return rows.initial(keys, floats, at);
  // Rows are made as floats, then converted.
  std::vector<float> made(keys.size() * floats);
  std::vector<std::byte*> made_at;
  for (size_t k = 0; k < keys.size(); ++k) {
    made_at.push_back(reinterpret_cast<std::byte*>(&made[k * floats]));
  }
  rows.initial(keys, floats, made_at.data());
  for (size_t k = 0; k < keys.size(); ++k) {
    WriteRow(rows.format, rows.dim, {&made[k * floats], floats}, at[k]);
  }
}

void ReadRow(WeightFormat format, uint32_t dim, const std::byte* row, std::span<float> floats) {
  ReadWeights(format, row, floats.first(dim));
  const std::span<float> state = floats.subspan(dim);
  if (!state.empty()) {
    std::memcpy(state.data(), row + WeightBytes(format, dim), state.size_bytes());
  }
}

void WriteRow(WeightFormat format, uint32_t dim, std::span<const float> floats, std::byte* row) {
  WriteWeights(format, floats.first(dim), row);
  const std::span<const float> state = floats.subspan(dim);
  if (!state.empty()) {
    std::memcpy(row + WeightBytes(format, dim), state.data(), state.size_bytes());
  }
}

}  // namespace hdps
