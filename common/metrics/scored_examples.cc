// Writes runs in whole examples, and merges them with a heap of their first examples.
#include "common/metrics/scored_examples.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace hdps {
namespace {

constexpr size_t kBuffered = 4096;  // Examples of a run that are read or written at once.

// Reads a run from its first example to its last.
class RunReader {
 public:
  explicit RunReader(std::unique_ptr<SequentialFile> file) : file_(std::move(file)) {}

  Result<const ScoredExample*> Next() {
    if (at_ < filled_) return &buffer_[at_++];
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(buffer_));
    size_t got = 0;
    while (got < bytes.size()) {
      HDPS_ASSIGN_OR_RETURN(const size_t more, file_->Read(bytes.subspan(got)));
      if (more == 0) break;
      got += more;
    }
    if (got % sizeof(ScoredExample) != 0) {
      return Status(Code::kCorruption, "a run of scores ends within an example");
    }
    filled_ = got / sizeof(ScoredExample);
    at_ = 0;
    return filled_ == 0 ? nullptr : &buffer_[at_++];
  }

 private:
  std::unique_ptr<SequentialFile> file_;
  std::vector<ScoredExample> buffer_ = std::vector<ScoredExample>(kBuffered);
  size_t at_ = 0, filled_ = 0;
};

// Appends examples to a file through a buffer.
class RunWriter {
 public:
  explicit RunWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  Status Add(const ScoredExample& example) {
    buffer_.push_back(example);
    return buffer_.size() < kBuffered ? Status() : Flush();
  }
  Status Close() {
    HDPS_RETURN_IF_ERROR(Flush());
    return file_->Close();
  }

 private:
  Status Flush() {
    const Status written = file_->Append(std::as_bytes(std::span(buffer_)));
    buffer_.clear();
    return written;
  }
  std::unique_ptr<WritableFile> file_;
  std::vector<ScoredExample> buffer_;
};

}  // namespace

ScoredExamples::ScoredExamples(FileSystem& files, std::string folder, ScoreOrder order,
                               size_t held_max)
    : files_(files), folder_(std::move(folder)), order_(order), held_max_(held_max) {}

ScoredExamples::~ScoredExamples() {
  // A run that stays wastes space, nothing more; no file refers to it.
  for (const std::string& run : runs_) static_cast<void>(files_.RemoveAll(run));
  if (runs_made_ > 0) static_cast<void>(files_.RemoveAll(folder_));
}

bool ScoredExamples::Before(const ScoredExample& a, const ScoredExample& b) const {
  if (order_ == ScoreOrder::kByGroup && a.group != b.group) return a.group < b.group;
  if (a.score != b.score) return a.score > b.score;
  return std::tie(a.label, a.weight, a.group) < std::tie(b.label, b.weight, b.group);
}

Status ScoredExamples::Add(const ScoredExample& example) {
  held_.push_back(example);
  held_sorted_ = false;
  ++size_;
  return held_.size() < held_max_ ? Status() : WriteHeld();
}

Result<std::string> ScoredExamples::NewRun() {
  if (runs_made_ == 0) {
    HDPS_RETURN_IF_ERROR(files_.RemoveAll(folder_));  // It may be a link to a folder elsewhere.
    HDPS_RETURN_IF_ERROR(files_.MakeDirectoriesUnsynced(folder_));
  }
  return JoinPath(folder_, "run_" + std::to_string(runs_made_++));
}

Status ScoredExamples::WriteHeld() {
  std::ranges::sort(held_, [this](const auto& a, const auto& b) { return Before(a, b); });
  HDPS_ASSIGN_OR_RETURN(const std::string path, NewRun());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files_.Create(path));
  runs_.push_back(path);
  RunWriter writer(std::move(file));
  for (const ScoredExample& example : held_) HDPS_RETURN_IF_ERROR(writer.Add(example));
  HDPS_RETURN_IF_ERROR(writer.Close());
  held_.clear();
  return runs_.size() < kRunsMax ? Status() : ReduceRuns();
}

// Merges all runs into one.
Status ScoredExamples::ReduceRuns() {
  HDPS_ASSIGN_OR_RETURN(const std::string path, NewRun());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files_.Create(path));
  const std::vector<std::string> old = std::exchange(runs_, {path});
  RunWriter writer(std::move(file));
  HDPS_RETURN_IF_ERROR(Merge(old, /*held=*/false,
                             [&](const ScoredExample& example) { return writer.Add(example); }));
  HDPS_RETURN_IF_ERROR(writer.Close());
  for (const std::string& run : old) HDPS_RETURN_IF_ERROR(files_.RemoveAll(run));
  return {};
}

Status ScoredExamples::Merge(const std::vector<std::string>& runs, bool held,
                             const std::function<Status(const ScoredExample&)>& take) {
  std::vector<RunReader> readers;
  for (const std::string& run : runs) {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SequentialFile> file, files_.OpenSequential(run));
    readers.emplace_back(std::move(file));
  }
  size_t at_held = 0;
  // Returns the next example of a source; the last source is memory.
  const auto next = [&](size_t source) -> Result<const ScoredExample*> {
    if (source < readers.size()) return readers[source].Next();
    return held && at_held < held_.size() ? &held_[at_held++] : nullptr;
  };
  struct Head {
    ScoredExample example;
    size_t source;
  };
  // Equal examples are interchangeable, so the order of their sources does not matter.
  const auto behind = [this](const Head& a, const Head& b) { return Before(b.example, a.example); };
  std::vector<Head> heads;
  for (size_t source = 0; source <= readers.size(); ++source) {
    HDPS_ASSIGN_OR_RETURN(const ScoredExample* const first, next(source));
    if (first != nullptr) heads.push_back({*first, source});
  }
  std::ranges::make_heap(heads, behind);
  while (!heads.empty()) {
    std::ranges::pop_heap(heads, behind);
    Head& head = heads.back();
    HDPS_RETURN_IF_ERROR(take(head.example));
    HDPS_ASSIGN_OR_RETURN(const ScoredExample* const following, next(head.source));
    if (following == nullptr) {
      heads.pop_back();
    } else {
      head.example = *following;
      std::ranges::push_heap(heads, behind);
    }
  }
  return {};
}

Status ScoredExamples::Read(const std::function<void(const ScoredExample&)>& take) {
  if (!held_sorted_) {
    std::ranges::sort(held_, [this](const auto& a, const auto& b) { return Before(a, b); });
    held_sorted_ = true;
  }
  if (runs_.empty()) {
    for (const ScoredExample& example : held_) take(example);
    return {};
  }
  return Merge(runs_, /*held=*/true, [&](const ScoredExample& example) {
    take(example);
    return Status();
  });
}

}  // namespace hdps
