// Presents slices as the tables of a snapshot.
#include "embedding/snapshot/snapshot_parts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

constexpr size_t kPieceWords = FrequencySketch::kPieceWords;
constexpr uint32_t kPieceFloats = kPieceWords * sizeof(uint64_t) / sizeof(float);

std::string CountsName(const std::string& table) { return table + "/sights"; }
std::string ErasedName(const std::string& table) { return table + "/erased"; }

bool IsSaved(const FrequencySketch& sketch, size_t piece, SnapshotKind kind) {
  if (kind == SnapshotKind::kDelta) return sketch.ChangedSinceMark(piece);
  return !std::ranges::all_of(sketch.Piece(piece), [](uint64_t word) { return word == 0; });
}

Status VisitCounts(const FrequencySketch& sketch, SnapshotKind kind, size_t block_rows,
                   const TableSlice::Visit& visit) {
  std::vector<Key> keys;
  std::vector<float> rows;
  for (size_t piece = 0; piece < sketch.num_pieces(); ++piece) {
    if (!IsSaved(sketch, piece, kind)) continue;
    const std::span<const uint64_t> own = sketch.Piece(piece);
    keys.push_back(piece);
    rows.resize(keys.size() * kPieceFloats);
    std::memcpy(&rows[rows.size() - kPieceFloats], own.data(), own.size_bytes());
    if (keys.size() < block_rows) continue;
    HDPS_RETURN_IF_ERROR(visit(keys, rows));
    keys.clear();
    rows.clear();
  }
  return keys.empty() ? Status() : visit(keys, rows);
}

Status StoreCounts(FrequencySketch& sketch, std::span<const Key> keys,
                   std::span<const float> rows) {
  const std::span<uint64_t> words = sketch.state();
  for (size_t k = 0; k < keys.size(); ++k) {
    if (keys[k] >= words.size() || keys[k] * kPieceWords >= words.size()) {
      return {Code::kCorruption, "piece " + std::to_string(keys[k]) + " of a sketch of " +
                                     std::to_string(words.size()) + " words"};
    }
    const size_t begin = keys[k] * kPieceWords;
    const std::span<uint64_t> own =
        words.subspan(begin, std::min(kPieceWords, words.size() - begin));
    std::memcpy(own.data(), &rows[k * kPieceFloats], own.size_bytes());
  }
  return {};
}

SnapshotPart RowsOf(const TableSlice* slice, SnapshotKind kind) {
  SnapshotPart part{PartKind::kRows,
                    slice->spec().name,
                    slice->dim(),
                    slice->state_floats(),
                    slice->spec().shard_by,
                    {},
                    {},
                    {},
                    {}};
  const int64_t since = kind == SnapshotKind::kDelta ? slice->marked_clock() : kSinceEver;
  part.num_rows = [slice, since] { return slice->CountChanged(since); };
  part.visit = [slice, since](size_t block_rows, const TableSlice::Visit& visit) {
    return slice->VisitRows(block_rows, visit, since);
  };
  part.copy = [slice, since](CopyBudget* budget) { return slice->CopyRows(since, budget); };
  return part;
}

SnapshotPart ErasedOf(const TableSlice* slice) {
  SnapshotPart part{PartKind::kErased,
                    ErasedName(slice->spec().name),
                    0,
                    0,
                    slice->spec().shard_by,
                    {},
                    {},
                    {},
                    {}};
  part.num_rows = [slice] { return uint64_t{slice->ErasedKeys().size()}; };
  part.visit = [slice](size_t block_rows, const TableSlice::Visit& visit) -> Status {
    const std::vector<Key> keys = slice->ErasedKeys();
    for (size_t begin = 0; begin < keys.size(); begin += block_rows) {
      const size_t end = std::min(keys.size(), begin + block_rows);
      HDPS_RETURN_IF_ERROR(visit(std::span(keys).subspan(begin, end - begin), {}));
    }
    return {};
  };
  return part;
}

SnapshotPart CountsOf(const TableSlice* slice, SnapshotKind kind) {
  SnapshotPart part{PartKind::kSketch,
                    CountsName(slice->spec().name),
                    kPieceFloats,
                    0,
                    ShardBy::kKey,
                    {},
                    {},
                    {},
                    {}};
  const FrequencySketch* sketch = slice->sketch();
  part.visit = [sketch, kind](size_t block_rows, const TableSlice::Visit& visit) {
    return VisitCounts(*sketch, kind, block_rows, visit);
  };
  part.num_rows = [sketch, kind] {
    uint64_t pieces = 0;
    for (size_t p = 0; p < sketch->num_pieces(); ++p) pieces += IsSaved(*sketch, p, kind) ? 1 : 0;
    return pieces;
  };
  return part;
}

// Calls add(part, its slice) for every part. `slices`: of TableSlice, const or not.
template <typename Slice, typename Add>
void ForEachPart(const std::vector<Slice*>& slices, SnapshotKind kind, const Add& add) {
  for (Slice* slice : slices) {
    if (kind == SnapshotKind::kDelta) add(ErasedOf(slice), slice);
    add(RowsOf(slice, kind), slice);
    if (slice->sketch() != nullptr) add(CountsOf(slice, kind), slice);
  }
}

}  // namespace

Result<std::optional<SnapshotPart>> CopyOfPart(const SnapshotPart& part, CopyBudget* budget) {
  const size_t row_floats = size_t{part.dim} + part.state_floats;
  std::optional<RowCopy> copy;
  if (part.copy) {
    HDPS_ASSIGN_OR_RETURN(copy, part.copy(budget));
  } else {
    HDPS_ASSIGN_OR_RETURN(const uint64_t num_rows, part.num_rows());
    if (budget->Take(RowCopy::BytesWithKeys(num_rows, row_floats))) {
      copy.emplace(num_rows, row_floats);
      HDPS_RETURN_IF_ERROR(
          part.visit(num_rows + 1, [&](std::span<const Key> keys, std::span<const float> rows) {
            copy->keys.assign(keys.begin(), keys.end());
            std::ranges::copy(rows, copy->rows().begin());
            return Status();
          }));
    }
  }
  if (!copy) return std::optional<SnapshotPart>();
  SnapshotPart own{part.kind, part.name, part.dim, part.state_floats, part.shard_by, {},
                   {},        {},        {}};
  const auto kept = std::make_shared<const RowCopy>(*std::move(copy));
  own.num_rows = [kept] { return uint64_t{kept->keys.size()}; };
  own.visit = [kept, row_floats](size_t block_rows, const TableSlice::Visit& visit) -> Status {
    const std::span<const Key> keys = kept->keys;
    for (size_t begin = 0; begin < keys.size(); begin += block_rows) {
      const size_t rows = std::min(block_rows, keys.size() - begin);
      HDPS_RETURN_IF_ERROR(visit(keys.subspan(begin, rows),
                                 kept->rows().subspan(begin * row_floats, rows * row_floats)));
    }
    return {};
  };
  return std::optional<SnapshotPart>(std::move(own));
}

PartKind KindOfPart(const std::string& before, const std::string& name, uint32_t dim) {
  if (dim == 0) return PartKind::kErased;
  return name == CountsName(before) && dim == kPieceFloats ? PartKind::kSketch : PartKind::kRows;
}

std::vector<SnapshotPart> PartsOf(const std::vector<const TableSlice*>& slices, SnapshotKind kind) {
  std::vector<SnapshotPart> parts;
  ForEachPart(slices, kind,
              [&parts](SnapshotPart part, auto) { parts.push_back(std::move(part)); });
  return parts;
}

std::vector<SnapshotPart> PartsOf(const std::vector<TableSlice*>& slices, SnapshotKind kind) {
  std::vector<SnapshotPart> parts;
  ForEachPart(slices, kind, [&parts](SnapshotPart part, TableSlice* slice) {
    part.store = [slice, kind = part.kind](std::span<const Key> keys, std::span<const float> rows) {
      switch (kind) {
        case PartKind::kRows:
          slice->Store(keys, slice->dim() + slice->state_floats(), rows);
          return Status();
        case PartKind::kErased:
          slice->Erase(keys);
          return Status();
        case PartKind::kSketch:
          break;
      }
      return StoreCounts(*slice->sketch(), keys, rows);
    };
    parts.push_back(std::move(part));
  });
  return parts;
}

}  // namespace hdps
