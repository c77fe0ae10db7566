// Lanes are parsed side by side; then each column is put together from its parts.
#include "worker/data/formats/row_lanes.h"

#include <algorithm>
#include <span>
#include <utility>

namespace hdps {
namespace {

// Rows that are worth a thread's turn.
constexpr size_t kLaneRowsMin = 256;

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

// Column f of all parts, one behind the other.
SparseColumn JoinColumn(std::span<const Batch> parts, size_t f, size_t rows) {
  SparseColumn joined;
  size_t keys = 0;
  bool weighted = false;
  for (const Batch& part : parts) {
    keys += part.sparse[f].keys.size();
    weighted |= !part.sparse[f].weights.empty();
  }
  joined.offsets.reserve(rows + 1);
  joined.keys.reserve(keys);
  joined.offsets.push_back(0);
  for (const Batch& part : parts) {
    const SparseColumn& own = part.sparse[f];
    const auto before = static_cast<uint32_t>(joined.keys.size());
    for (size_t i = 1; i < own.offsets.size(); ++i) {
      joined.offsets.push_back(before + own.offsets[i]);
    }
    Append(own.keys, &joined.keys);
    if (!weighted) continue;
    Append(own.weights, &joined.weights);
    joined.weights.resize(joined.keys.size(), 1.0f);
  }
  return joined;
}

// The parts, of which there is at least one, as one batch.
Batch Join(std::span<Batch> parts, uint64_t first_row, Executor& executor) {
  const size_t columns = parts[0].sparse.size();
  std::vector<SparseColumn> first = std::exchange(parts[0].sparse, {});
  Batch joined = std::move(parts[0]);
  parts[0].sparse = std::move(first);
  for (const Batch& part : parts.subspan(1)) {
    joined.num_examples += part.num_examples;
    joined.positive_texts |= part.positive_texts;
    Append(part.labels, &joined.labels);
    Append(part.weights, &joined.weights);
    Append(part.groups, &joined.groups);
    Append(part.unknown_ids, &joined.unknown_ids);
    Append(part.rows, &joined.rows);
    Append(part.numeric, &joined.numeric);
  }
  joined.sparse.resize(columns);
  executor.ParallelFor(
      columns, [&](size_t f) { joined.sparse[f] = JoinColumn(parts, f, joined.num_examples); });
  joined.first_row = first_row;
  return joined;
}

}  // namespace

void RowLanes::Clear() {
  text_.clear();
  lines_.clear();
}

void RowLanes::Add(const Line& line, uint64_t position) {
  lines_.push_back({text_.size(), line.text.size(), line.place, position, line.row});
  text_.insert(text_.end(), line.text.begin(), line.text.end());
}

Line RowLanes::line(size_t i) const {
  const HeldLine& held = lines_[i];
  return {{text_.data() + held.begin, held.size}, held.place, held.row};
}

Result<std::optional<Batch>> RowLanes::Parse(const RowAdder& main, uint64_t first_row) {
  const auto threads = static_cast<size_t>(executor_.threads());
  const size_t lanes = std::clamp<size_t>(size() / kLaneRowsMin, 1, threads);
  while (adders_.size() < lanes) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowAdder> adder, make_());
    adders_.push_back(std::move(adder));
  }
  std::vector<Batch> parts(lanes);
  std::vector<uint8_t> whole(lanes, 1);
  runs_.resize(packs_ ? lanes : 0);
  executor_.ParallelFor(lanes, [&](size_t lane) {
    RowAdder& adder = *adders_[lane];
    adder.UseHeadersOf(main);
    adder.PackInto(packs_ ? &runs_[lane] : nullptr);
    if (packs_) runs_[lane].Clear();
    const size_t begin = size() * lane / lanes, end = size() * (lane + 1) / lanes;
    BatchBuilder builder = adder.NewBatch(end - begin);
    for (size_t i = begin; whole[lane] != 0 && i < end; ++i) {
      whole[lane] = adder.AddIfRow(line(i), static_cast<uint32_t>(i), &builder);
    }
    parts[lane] = builder.Finish(first_row);
  });
  if (std::ranges::count(whole, 0) > 0) return std::optional<Batch>();
  return std::optional<Batch>(Join(parts, first_row, executor_));
}

}  // namespace hdps
