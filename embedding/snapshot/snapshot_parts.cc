// Slices as the tables of a snapshot.
#include "embedding/snapshot/snapshot_parts.h"

#include <algorithm>
#include <cstring>

namespace hdps {
namespace {

constexpr uint32_t kPieceFloats = 512;
constexpr size_t kPieceWords = kPieceFloats * sizeof(float) / sizeof(uint64_t);

std::string CountsName(const std::string& table) { return table + "/sights"; }

// The words of a piece; fewer at the end.
template <typename Words>
Words PieceOf(Words words, Key piece) {
  const size_t begin = piece * kPieceWords;
  return words.subspan(begin, std::min(kPieceWords, words.size() - begin));
}

Status VisitCounts(const FrequencySketch& sketch, size_t block_rows,
                   const TableSlice::Visit& visit) {
  std::vector<Key> keys;
  std::vector<float> rows;
  const std::span<const uint64_t> words = sketch.state();
  for (Key piece = 0; piece * kPieceWords < words.size(); ++piece) {
    const std::span<const uint64_t> own = PieceOf(words, piece);
    if (std::ranges::all_of(own, [](uint64_t word) { return word == 0; })) continue;
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
    const std::span<uint64_t> own = PieceOf(words, keys[k]);
    std::memcpy(own.data(), &rows[k * kPieceFloats], own.size_bytes());
  }
  return {};
}

SnapshotPart RowsOf(const TableSlice* slice) {
  SnapshotPart part{slice->spec().name,
                    slice->dim(),
                    slice->state_floats(),
                    false,
                    slice->spec().shard_by,
                    {},
                    {},
                    {}};
  part.num_rows = [slice] { return uint64_t{slice->num_rows()}; };
  part.visit = [slice](size_t block_rows, const TableSlice::Visit& visit) {
    return slice->VisitRows(block_rows, visit);
  };
  return part;
}

SnapshotPart CountsOf(const TableSlice* slice) {
  SnapshotPart part{
      CountsName(slice->spec().name), kPieceFloats, 0, true, ShardBy::kKey, {}, {}, {}};
  const FrequencySketch* sketch = slice->sketch();
  part.visit = [sketch](size_t block_rows, const TableSlice::Visit& visit) {
    return VisitCounts(*sketch, block_rows, visit);
  };
  part.num_rows = [sketch] {
    uint64_t pieces = 0;
    const Status counted = VisitCounts(*sketch, 1, [&](std::span<const Key>, auto) {
      ++pieces;
      return Status();
    });
    return counted.ok() ? pieces : 0;
  };
  return part;
}

}  // namespace

bool IsCounts(const std::string& before, const std::string& name, uint32_t dim) {
  return name == CountsName(before) && dim == kPieceFloats;
}

std::vector<SnapshotPart> PartsOf(const std::vector<const TableSlice*>& slices) {
  std::vector<SnapshotPart> parts;
  for (const TableSlice* slice : slices) {
    parts.push_back(RowsOf(slice));
    if (slice->sketch() != nullptr) parts.push_back(CountsOf(slice));
  }
  return parts;
}

std::vector<SnapshotPart> PartsOf(const std::vector<TableSlice*>& slices) {
  std::vector<SnapshotPart> parts;
  for (TableSlice* slice : slices) {
    parts.push_back(RowsOf(slice));
    parts.back().store = [slice](std::span<const Key> keys, std::span<const float> rows) {
      slice->Store(keys, slice->dim() + slice->state_floats(), rows);
      return Status();
    };
    if (slice->sketch() == nullptr) continue;
    parts.push_back(CountsOf(slice));
    parts.back().store = [slice](std::span<const Key> keys, std::span<const float> rows) {
      return StoreCounts(*slice->sketch(), keys, rows);
    };
  }
  return parts;
}

}  // namespace hdps
