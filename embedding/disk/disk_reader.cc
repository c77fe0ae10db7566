// Reads rows on disk by ascending key: one block of each run is in memory.
#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <queue>
#include <utility>

#include "embedding/disk/disk_block.h"
#include "embedding/disk/disk_rows.h"

namespace hdps {

// Walks over those rows of a run that are still here.
class DiskRows::RunWalk {
 public:
  RunWalk(const DiskRows& rows, const Run& run, size_t blocks_ahead)
      : rows_(&rows), number_(run.begin), end_(run.end), blocks_ahead_(blocks_ahead) {}
  RunWalk(RunWalk&&) = default;  // A copy's block would still lie in the other's memory.
  RunWalk& operator=(RunWalk&&) = default;
  bool ended() const { return number_ >= end_; }
  Key key() const { return block_.keys()[at_]; }
  uint64_t number() const { return number_; }  // Number of its block.
  std::span<const std::byte> row() const { return block_.Row(at_); }
  // Moves to the first row, then from each row to the next.
  Status Next() {
    if (opened_) ++at_;
    return FindHere(0);
  }
  // Moves on to the first row from `first` on that is here now; stays where it is if it is there.
  Status Seek(Key first) { return FindHere(first); }

 private:
  Status FindHere(Key first) {
    for (;; ++at_) {
      // Blocks before the first one are no more, and others may have their numbers' lower bits.
      if (opened_ && (at_ == block_.keys().size() || number_ < rows_->first_)) {
        opened_ = false;
        ++number_;
      }
      if (!opened_) HDPS_RETURN_IF_ERROR(Open());
      if (ended() || (key() >= first && rows_->index_.Has(key(), number_))) return {};
    }
  }
  Status Open() {
    at_ = 0;
    number_ = std::max(number_, rows_->first_);
    while (number_ < end_ && rows_->BlockAt(number_).live == 0) ++number_;
    if (ended()) return {};
    opened_ = true;
    while (!ahead_.empty() && ahead_.front().number < number_) ahead_.pop_front();
    if (ahead_.empty()) HDPS_RETURN_IF_ERROR(ReadAhead());
    block_ = std::move(ahead_.front().rows);
    ahead_.pop_front();
    return {};
  }
  // Reads the block at number_ and some that follow: one call for several takes half of the time.
  Status ReadAhead() {
    std::vector<uint64_t> numbers;
    for (uint64_t next = number_; next < end_ && numbers.size() < blocks_ahead_; ++next) {
      if (rows_->BlockAt(next).live > 0) numbers.push_back(next);
    }
    return rows_->disk_->Get(
        rows_->space_, numbers, [&](size_t k, std::span<const std::byte> bytes) {
          ahead_.push_back({numbers[k], {}});
          return ahead_.back().rows.OpenCopy(bytes, rows_->row_bytes_, *rows_->disk_);
        });
  }

  struct Ahead {
    uint64_t number;
    DiskBlockRows rows;
  };
  const DiskRows* rows_;
  uint64_t number_, end_;
  size_t blocks_ahead_;
  bool opened_ = false;
  size_t at_ = 0;
  DiskBlockRows block_;
  std::deque<Ahead> ahead_;  // Blocks that follow; their rows may have gone since.
};

struct DiskRows::Reader::Walks {
  using Head = std::pair<Key, size_t>;
  void Push(size_t walk) {
    if (!of_runs[walk].ended()) heads.emplace(of_runs[walk].key(), walk);
  }

  std::vector<RunWalk> of_runs;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
};

DiskRows::Reader::Reader(const DiskRows& rows, uint64_t from)
    : rows_(rows), seen_(from), walks_(std::make_unique<Walks>()) {}
DiskRows::Reader::Reader(const DiskRows& rows, const std::vector<Run>& runs)
    : Reader(rows, rows.end()) {
  AddWalks(runs);
}
DiskRows::Reader::~Reader() = default;

void DiskRows::Reader::AddWalks(const std::vector<Run>& runs) {
  constexpr size_t kBlocksAhead = 512, kOfRunMax = 16;  // Of all runs together, and of each.
  const size_t all = walks_->of_runs.size() + runs.size();
  const size_t ahead = std::clamp<size_t>(kBlocksAhead / std::max<size_t>(all, 1), 1, kOfRunMax);
  for (const Run& run : runs) walks_->of_runs.emplace_back(rows_, run, ahead);
  seen_ = rows_.end();
}

Status DiskRows::Reader::Seek(Key first) {
  if (seen_ < rows_.end()) AddWalks(rows_.Runs(seen_));
  walks_->heads = {};
  std::vector<RunWalk>& walks = walks_->of_runs;
  for (RunWalk& walk : walks) HDPS_RETURN_IF_ERROR(walk.Seek(first));
  std::erase_if(walks, [](const RunWalk& walk) { return walk.ended(); });
  for (size_t w = 0; w < walks.size(); ++w) walks_->Push(w);
  return {};
}

bool DiskRows::Reader::ended() const { return walks_->heads.empty(); }
Key DiskRows::Reader::key() const { return walks_->heads.top().first; }
uint64_t DiskRows::Reader::block() const {
  return walks_->of_runs[walks_->heads.top().second].number();
}
std::span<const std::byte> DiskRows::Reader::row() const {
  return walks_->of_runs[walks_->heads.top().second].row();
}

Status DiskRows::Reader::Next() {
  const size_t walk = walks_->heads.top().second;
  walks_->heads.pop();
  HDPS_RETURN_IF_ERROR(walks_->of_runs[walk].Next());
  walks_->Push(walk);
  return {};
}

std::vector<DiskRows::Run> DiskRows::Runs(uint64_t from) const {
  std::vector<Run> runs;
  for (uint64_t number = std::max(first_, from); number < end(); ++number) {
    const Block& block = BlockAt(number);
    if (runs.empty() || block.begins_run) {
      if (!runs.empty() && runs.back().live == 0) runs.pop_back();
      runs.push_back({number, number});
    }
    runs.back().end = number + 1;
    runs.back().live += block.live;
  }
  if (!runs.empty() && runs.back().live == 0) runs.pop_back();
  return runs;
}

Status DiskRows::ForEachInOrder(const Visit& visit, uint64_t from) const {
  Reader reader(*this, from);
  HDPS_RETURN_IF_ERROR(reader.Seek(0));
  while (!reader.ended()) {
    HDPS_RETURN_IF_ERROR(visit(reader.key(), reader.row()));
    HDPS_RETURN_IF_ERROR(reader.Next());
  }
  return {};
}

Status DiskRows::MergeSmallest() {
  constexpr size_t kMergeBytes = 1 << 20;  // Bytes of merged rows written at a time.
  runs_begun_ = 0;
  std::vector<Run> runs = Runs(0);
  if (runs.size() <= 2 * kMergeRuns) return {};
  std::ranges::nth_element(runs, runs.begin() + kMergeRuns, {}, &Run::live);
  runs.resize(kMergeRuns);
  std::vector<Key> keys;
  std::vector<std::byte> bytes;
  bool begins_run = true;
  const auto write = [&]() -> Status {
    HDPS_RETURN_IF_ERROR(Write(keys, bytes, std::exchange(begins_run, false)));
    keys.clear();
    bytes.clear();
    return {};
  };
  Reader reader(*this, runs);
  HDPS_RETURN_IF_ERROR(reader.Seek(0));
  while (!reader.ended()) {
    CHECK(Forget(reader.key(), reader.block()));
    keys.push_back(reader.key());
    bytes.insert(bytes.end(), reader.row().begin(), reader.row().end());
    if (bytes.size() >= kMergeBytes) HDPS_RETURN_IF_ERROR(write());
    HDPS_RETURN_IF_ERROR(reader.Next());
  }
  return keys.empty() ? Status() : write();
}

}  // namespace hdps
