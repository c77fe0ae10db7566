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
  if (kind == SnapshotKind::kMoved) return true;  // Pieces may have become zeros.
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

int64_t SinceOf(const TableSlice& slice, SnapshotKind kind) {
  if (kind == SnapshotKind::kWhole) return kSinceEver;
  return kind == SnapshotKind::kDelta ? slice.marked_clock() : slice.move_clock();
}

std::vector<Key> ErasedIn(const TableSlice& slice, SnapshotKind kind) {
  return kind == SnapshotKind::kMoved ? slice.ErasedSinceMove() : slice.ErasedKeys();
}

SnapshotPart RowsOf(const TableSlice* slice, SnapshotKind kind) {
  SnapshotPart part{.name = slice->spec().name,
                    .dim = slice->dim(),
                    .state_floats = slice->state_floats(),
                    .shard_by = slice->spec().shard_by};
  const int64_t since = SinceOf(*slice, kind);
  part.num_rows = [slice, since] { return slice->CountChanged(since); };
  part.visit = [slice, since](size_t block_rows, const TableSlice::Visit& visit) {
    return slice->VisitRows(block_rows, visit, since);
  };
  part.copy = [slice, since](CopyBudget* budget) { return slice->CopyRows(since, budget); };
  part.is_whole = kind == SnapshotKind::kWhole;
  part.keep = [slice, since](Clock clock) { return slice->BeginSave(clock, since); };
  return part;
}

SnapshotPart ErasedOf(const TableSlice* slice, SnapshotKind kind) {
  SnapshotPart part{.kind = PartKind::kErased,
                    .name = ErasedName(slice->spec().name),
                    .shard_by = slice->spec().shard_by};
  part.num_rows = [slice, kind] { return uint64_t{ErasedIn(*slice, kind).size()}; };
  part.visit = [slice, kind](size_t block_rows, const TableSlice::Visit& visit) -> Status {
    const std::vector<Key> keys = ErasedIn(*slice, kind);
    for (size_t begin = 0; begin < keys.size(); begin += block_rows) {
      const size_t end = std::min(keys.size(), begin + block_rows);
      HDPS_RETURN_IF_ERROR(visit(std::span(keys).subspan(begin, end - begin), {}));
    }
    return {};
  };
  return part;
}

SnapshotPart CountsOf(const TableSlice* slice, SnapshotKind kind) {
  SnapshotPart part{
      .kind = PartKind::kSketch, .name = CountsName(slice->spec().name), .dim = kPieceFloats};
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
    if (kind != SnapshotKind::kWhole) add(ErasedOf(slice, kind), slice);
    add(RowsOf(slice, kind), slice);
    if (slice->sketch() != nullptr) add(CountsOf(slice, kind), slice);
  }
}

}  // namespace

namespace {

// Returns a part like `part`, without its rows.
SnapshotPart LikePart(const SnapshotPart& part) {
  return {.kind = part.kind,
          .name = part.name,
          .dim = part.dim,
          .state_floats = part.state_floats,
          .shard_by = part.shard_by};
}

// Returns a part of rows in memory.
SnapshotPart PartOfCopy(const SnapshotPart& part, RowCopy copy) {
  SnapshotPart own = LikePart(part);
  const auto kept = std::make_shared<const RowCopy>(std::move(copy));
  own.num_rows = [kept] { return uint64_t{kept->keys.size()}; };
  own.visit = [kept](size_t block_rows, const TableSlice::Visit& visit) -> Status {
    const size_t row_floats = kept->row_floats();
    const std::span<const Key> keys = kept->keys;
    for (size_t begin = 0; begin < keys.size(); begin += block_rows) {
      const size_t rows = std::min(block_rows, keys.size() - begin);
      HDPS_RETURN_IF_ERROR(visit(keys.subspan(begin, rows),
                                 kept->rows().subspan(begin * row_floats, rows * row_floats)));
    }
    return {};
  };
  return own;
}

Result<std::optional<RowCopy>> CopyOf(const SnapshotPart& part, CopyBudget* budget) {
  if (part.copy) return part.copy(budget);
  const size_t row_floats = size_t{part.dim} + part.state_floats;
  HDPS_ASSIGN_OR_RETURN(const uint64_t num_rows, part.num_rows());
  if (!budget->Take(RowCopy::BytesWithKeys(num_rows, row_floats))) {
    return std::optional<RowCopy>();
  }
  RowCopy copy(num_rows, row_floats);
  HDPS_RETURN_IF_ERROR(
      part.visit(num_rows + 1, [&](std::span<const Key> keys, std::span<const float> rows) {
        copy.keys.assign(keys.begin(), keys.end());
        std::ranges::copy(rows, copy.rows().begin());
        return Status();
      }));
  return std::optional<RowCopy>(std::move(copy));
}

std::optional<SnapshotPart> KeptPart(const SnapshotPart& part, Clock clock) {
  std::optional<TableSlice::RowsOfSave> rows;
  if (part.keep) rows = part.keep(clock);
  if (!rows) return std::nullopt;
  SnapshotPart own = LikePart(part);
  own.num_rows = [num_rows = rows->num_rows] { return num_rows; };
  own.visit = std::move(rows->visit);
  return own;
}

}  // namespace

// Changes alone are copied if they fit, because keeping rows costs the updates that follow; all
// rows of a slice that may spill are as many as do not fit in memory.
Result<std::optional<SnapshotPart>> TakePart(const SnapshotPart& part, Clock clock,
                                             CopyBudget* budget) {
  std::optional<SnapshotPart> taken;
  if (part.is_whole) taken = KeptPart(part, clock);
  if (taken) return taken;
  HDPS_ASSIGN_OR_RETURN(std::optional<RowCopy> copy, CopyOf(part, budget));
  if (copy) return std::optional<SnapshotPart>(PartOfCopy(part, *std::move(copy)));
  return KeptPart(part, clock);
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
