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

// Reads whole parts one by one, for holders of rows that also update them.
void ReadWholeParts(const PartRead& read, std::span<const Key> keys, const std::byte* const* rows,
                    float* out) {
  const RowPart& part = read.part;
  MissingRows missing(part.initial, part.dim * sizeof(float));
  ForEachPart<0>(rows, keys.size(), 0, part.end(), [&](size_t k, const std::byte* row) {
    float* const own = out + k * read.row_floats;
    if (row == nullptr) return missing.Add(keys[k], own);
    ReadRow(part, row, {own, read.row_floats});
  });
}

void ReadWeightsOf(VectorWidth width, const RowReading& reading) {
  switch (reading.part.format) {
    case WeightFormat::kFp32:
      return ReadRowsIn<WeightFormat::kFp32>(width, reading);
    case WeightFormat::kFp16:
      return ReadRowsIn<WeightFormat::kFp16>(width, reading);
    case WeightFormat::kBf16:
      return ReadRowsIn<WeightFormat::kBf16>(width, reading);
  }
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
  const size_t at = update.part.end() - floats * sizeof(float);
  for (std::byte* const row : rows) {
    update.policy.OnUpdate(step, {reinterpret_cast<float*>(row + at), floats});
  }
}

void MakePart(const RowPart& part, std::span<const Key> keys, std::byte* const* at) {
  const size_t floats = part.row_floats();
  std::vector<std::byte*> made_at(keys.size());
  if (part.format == WeightFormat::kFp32) {
    for (size_t k = 0; k < keys.size(); ++k) made_at[k] = at[k] + part.offset;
    return part.initial(keys, part.rest - part.offset, made_at.data());
  }
  // Rows are made as floats, then converted.
  std::vector<float> made(keys.size() * floats);
  for (size_t k = 0; k < keys.size(); ++k) {
    made_at[k] = reinterpret_cast<std::byte*>(&made[k * floats]);
  }
  part.initial(keys, part.dim * sizeof(float), made_at.data());
  for (size_t k = 0; k < keys.size(); ++k) WriteRow(part, {&made[k * floats], floats}, at[k]);
}

// Returns the one whose part begins first in a row. It goes before the others, because what it
// prefetches holds theirs too.
template <typename OfPart>  // PartRead or PartUpdate
const OfPart& First(std::span<const OfPart> of_parts) {
  return *std::ranges::min_element(of_parts, {}, [](const OfPart& of) { return of.part.offset; });
}

// Returns the byte of a row at which a read ends.
size_t EndOf(const PartRead& read) {
  const RowPart& part = read.part;
  return read.row_floats == part.dim ? part.offset + part.weight_bytes() : part.end();
}

}  // namespace

void ReadRows(VectorWidth width, const RowStore& store, std::span<const Key> keys,
              std::span<const PartRead> reads) {
  const PartRead& first = First(reads);
  size_t end = 0;
  for (const PartRead& read : reads) end = std::max(end, EndOf(read));
  const size_t begin_at = first.part.offset, reach = end - begin_at;
  const std::byte* rows[RowStore::kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += RowStore::kBatchKeys) {
    const auto batch =
        keys.subspan(begin, std::min<size_t>(RowStore::kBatchKeys, keys.size() - begin));
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          store.FindBatchRows(batch, begin_at, reach, rows);
        });
    const auto pass = [&](const PartRead& read, size_t bytes) {
      float* const out = read.out + begin * read.row_floats;
      if (read.row_floats != read.part.dim) return ReadWholeParts(read, batch, rows, out);
      ReadWeightsOf(width, {read.part, batch, rows, out, bytes});
    };
    pass(first, reach);
    for (const PartRead& read : reads) {
      if (&read != &first) pass(read, read.part.weight_bytes());
    }
  }
}

void UpdateRows(VectorWidth width, RowStore& store, std::span<const RowPart> parts,
                std::span<const Key> keys, int64_t step, std::span<const PartUpdate> updates) {
  const auto make = [parts](std::span<const Key> new_keys, std::byte* const* at) {
    MakeRows(parts, new_keys, at);
  };
  const PartUpdate& first = First(updates);
  std::byte* rows[RowStore::kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += RowStore::kBatchKeys) {
    const auto batch =
        keys.subspan(begin, std::min<size_t>(RowStore::kBatchKeys, keys.size() - begin));
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          store.MakeBatchRows(batch, RowVersion(step), make, rows);
        });
    const auto pass = [&](const PartUpdate& update) {
      UpdateParts(width, {update.spec, update.part, batch, rows,
                          update.values + begin * update.part.dim, update.scale, step});
      NoteUpdates(update, {rows, batch.size()}, step);
    };
    pass(first);
    for (const PartUpdate& update : updates) {
      if (&update != &first) pass(update);
    }
  }
}

void MakeRows(std::span<const RowPart> parts, std::span<const Key> keys, std::byte* const* at) {
  for (const RowPart& part : parts) MakePart(part, keys, at);
}

void ReadRow(const RowPart& part, const std::byte* row, std::span<float> floats) {
  ReadWeights(part.format, row + part.offset, floats.first(part.dim));
  const std::span<float> rest = floats.subspan(part.dim);
  if (!rest.empty()) std::memcpy(rest.data(), row + part.rest, rest.size_bytes());
}

void WriteRow(const RowPart& part, std::span<const float> floats, std::byte* row) {
  WriteWeights(part.format, floats.first(part.dim), row + part.offset);
  const std::span<const float> rest = floats.subspan(part.dim);
  if (!rest.empty()) std::memcpy(row + part.rest, rest.data(), rest.size_bytes());
}

}  // namespace hdps
