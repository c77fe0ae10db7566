// Reads, updates and makes rows in their table's format; holds the loops over 32-bit rows.
#include "embedding/memory/row_batches.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "embedding/memory/row_loops.h"
#include "embedding/memory/row_policy.h"
#include "kernels/host/optimizer_loops.h"

namespace hdps {

template void ReadRowsIn<WeightFormat::kFp32>(VectorWidth, const RowReading&);
template void UpdateRowsIn<WeightFormat::kFp32>(VectorWidth, const RowUpdating&);

namespace {

// Reads whole parts of a 16-bit format one by one, for checkpoints.
void ReadWholeParts(const RowReading& r) {
  MissingRows missing(r.part.initial, r.row_floats);
  ForEachPart<0>(r.rows, r.keys.size(), r.part.offset, r.part.bytes,
                 [&](size_t k, const std::byte* row) {
                   float* const own = r.out + k * r.row_floats;
                   if (row == nullptr) return missing.Add(r.keys[k], own);
                   ReadRow(r.part.format, r.part.dim, row, {own, r.row_floats});
                 });
}

void ReadParts(VectorWidth width, const RowReading& reading) {
  const WeightFormat format = reading.part.format;
  if (format == WeightFormat::kFp32) return ReadRowsIn<WeightFormat::kFp32>(width, reading);
  if (reading.row_floats != reading.part.dim) return ReadWholeParts(reading);
  format == WeightFormat::kFp16 ? ReadRowsIn<WeightFormat::kFp16>(width, reading)
                                : ReadRowsIn<WeightFormat::kBf16>(width, reading);
}

void UpdateParts(VectorWidth width, const RowUpdating& updating) {
  const OptimizerSpec& spec = updating.spec;
  const OptimizerLoops* const own = spec.record->is_own() ? &LoopsOf(spec) : nullptr;
  switch (updating.part.format) {
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

// Tells the policy's floats, at the end of each part, of an update.
void NoteUpdates(const PartUpdate& update, std::span<std::byte* const> rows, int64_t step) {
  const size_t floats = update.policy.floats();
  if (floats == 0) return;
  const size_t at = update.part.offset + update.part.bytes - floats * sizeof(float);
  for (std::byte* const row : rows) {
    update.policy.OnUpdate(step, {reinterpret_cast<float*>(row + at), floats});
  }
}

void MakePart(const RowPart& part, std::span<const Key> keys, std::byte* const* at) {
  const size_t floats = part.row_floats();
  std::vector<std::byte*> made_at(keys.size());
  if (part.format == WeightFormat::kFp32) {
    for (size_t k = 0; k < keys.size(); ++k) made_at[k] = at[k] + part.offset;
    return part.initial(keys, floats, made_at.data());
  }
  // Rows are made as floats, then converted.
  std::vector<float> made(keys.size() * floats);
  for (size_t k = 0; k < keys.size(); ++k) {
    made_at[k] = reinterpret_cast<std::byte*>(&made[k * floats]);
  }
  part.initial(keys, floats, made_at.data());
  for (size_t k = 0; k < keys.size(); ++k) {
    WriteRow(part.format, part.dim, {&made[k * floats], floats}, at[k] + part.offset);
  }
}

}  // namespace

void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              std::span<const PartRead> reads) {
  const RowPart& first = reads[0].part;
  const std::byte* rows[RowStore::kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += RowStore::kBatchKeys) {
    const auto batch =
        keys.subspan(begin, std::min<size_t>(RowStore::kBatchKeys, keys.size() - begin));
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          store.FindBatchRows(batch, first.offset, first.weight_bytes(), rows);
        });
    for (const PartRead& read : reads) {
      ReadParts(width,
                {read.part, batch, rows, read.row_floats, read.out + begin * read.row_floats});
    }
  }
}

void UpdateRows(VectorWidth width, RowStore& store, std::span<const RowPart> parts,
                std::span<const Key> keys, int64_t step, std::span<const PartUpdate> updates) {
  const auto make = [parts](std::span<const Key> new_keys, std::byte* const* at) {
    MakeRows(parts, new_keys, at);
  };
  std::byte* rows[RowStore::kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += RowStore::kBatchKeys) {
    const auto batch =
        keys.subspan(begin, std::min<size_t>(RowStore::kBatchKeys, keys.size() - begin));
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          store.MakeBatchRows(batch, RowVersion(step), make, rows);
        });
    for (const PartUpdate& update : updates) {
      UpdateParts(width, {update.spec, update.part, batch, rows,
                          update.values + begin * update.part.dim, update.scale, step});
      NoteUpdates(update, {rows, batch.size()}, step);
    }
  }
}

void MakeRows(std::span<const RowPart> parts, std::span<const Key> keys, std::byte* const* at) {
  for (const RowPart& part : parts) MakePart(part, keys, at);
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
