// Takes passes over the training files, each for a range of keys.
#include "tools/prepare/vocabulary_count.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>

#include "common/job/data_paths.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/whole_files/parsed_rows.h"

namespace hdps {
namespace {

constexpr Key kLastKey = std::numeric_limits<Key>::max();

class ValueCounter {
 public:
  ValueCounter(FileSystem& files, const Job& job, size_t counters_max)
      : files_(files), job_(job), counters_max_(counters_max) {
    for (const std::string& space : KeySpacesOf(job.data)) {
      const auto same = std::ranges::find(spaces_, space, &ValuesOfSpace::space);
      space_of_feature_.push_back(static_cast<uint32_t>(same - spaces_.begin()));
      if (same == spaces_.end()) spaces_.push_back({space});
    }
  }

  // Counts the keys from `begin` up to `*last`, which becomes less if these are too many.
  Status Count(Key begin, Key* last) {
    counts_.clear();
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> paths, TrainingFiles(files_, job_.data));
    ParsedRows rows(files_, job_.data, paths, LabelsOf(job_),
                    RulesOf(job_.data, paths, {.seed = job_.seed, .side = RowSide::kTrained}));
    HDPS_RETURN_IF_ERROR(rows.Start());
    Row row;
    while (true) {
      HDPS_ASSIGN_OR_RETURN(const bool found, rows.Next(&row));
      if (!found) return {};
      for (size_t f = 0; f < row.key_ends.size(); ++f) {
        for (uint32_t i = row.KeyBegin(f); i < row.key_ends[f]; ++i) {
          const Key key = row.keys[i];
          if (key < begin || key > *last) continue;
          Counter& counter = counts_[key];
          counter.space = space_of_feature_[f];
          ++counter.times;
        }
      }
      while (counts_.size() > counters_max_) {
        *last = begin + (*last - begin) / 2;
        std::erase_if(counts_, [last](const auto& counted) { return counted.first > *last; });
      }
    }
  }

  // Adds the keys that came so often to `keys`.
  void Keep(uint64_t min_count, std::vector<Key>* keys) {
    for (const auto& [key, counter] : counts_) {
      ValuesOfSpace& of = spaces_[counter.space];
      ++of.values;
      if (counter.times < min_count) continue;
      ++of.frequent;
      keys->push_back(key);
    }
  }

  std::vector<ValuesOfSpace> TakeSpaces() { return std::move(spaces_); }

 private:
  struct Counter {
    uint64_t times = 0;
    uint32_t space = 0;  // Index into spaces_.
  };

  FileSystem& files_;
  const Job& job_;
  const size_t counters_max_;
  std::vector<ValuesOfSpace> spaces_;
  std::vector<uint32_t> space_of_feature_;   // [features]
  std::unordered_map<Key, Counter> counts_;  // Of the present pass.
};

}  // namespace

Result<CountedVocabulary> CountVocabulary(FileSystem& files, const Job& job, uint64_t min_count,
                                          size_t counters_max) {
  ValueCounter counter(files, job, counters_max);
  std::vector<Key> keys;
  for (Key begin = 0;;) {
    Key last = kLastKey;
    HDPS_RETURN_IF_ERROR(counter.Count(begin, &last));
    counter.Keep(min_count, &keys);
    if (keys.size() >= std::numeric_limits<uint32_t>::max()) {
      return Status(Code::kInvalidArgument,
                    "more than 4,294,967,295 values come " + std::to_string(min_count) +
                        " times or more: expected fewer, by a larger --min_count");
    }
    if (last == kLastKey) break;
    begin = last + 1;
  }
  std::vector<ValuesOfSpace> spaces = counter.TakeSpaces();
  std::vector<uint64_t> salts;
  for (const ValuesOfSpace& of : spaces) salts.push_back(HashString(of.space));
  return CountedVocabulary{Vocabulary(std::move(salts), std::move(keys), min_count),
                           std::move(spaces)};
}

}  // namespace hdps
