// Each check names the checkpoint's folder through its caller.
#include "tools/serve/versions/version_loading.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "common/job/job_differences.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tools/serve/versions/request_sample.h"

namespace hdps {
namespace {

class CallersExecutor : public Executor {
 public:
  explicit CallersExecutor(int callers) : callers_(callers) {}
  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    for (size_t i = 0; i < count; ++i) body(i);
  }
  void Submit(std::function<void()> work) override { work(); }
  int threads() const override { return callers_; }

 private:
  const int callers_;
};

constexpr float kScoreMax = std::numeric_limits<float>::max();
// Scores beyond this come of odd cells, and a little more weight makes them overflow.
constexpr float kUsualScoreMax = 1e30F;

// Returns whether all scores of a row are numbers of at most this size.
bool AreWithin(const ScoredRows& scored, uint64_t row, float most) {
  for (const std::vector<float>* scores : {&scored.predictions, &scored.logits}) {
    const uint64_t width = scores->size() / scored.rows;
    const auto own = std::span(*scores).subspan(row * width, width);
    if (!std::ranges::all_of(own, [most](float one) { return std::abs(one) <= most; })) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<Executor> NewCallersExecutor(int callers) {
  return std::make_unique<CallersExecutor>(callers);
}

Status CheckOfServedJob(const Job& served, const Manifest& manifest) {
  if (TablesFit(served, manifest.job_json, manifest.tables_digest)) return {};
  const auto differences = DifferencesFrom(served, manifest.job_json, JobPart::kTables);
  const bool told = differences.ok() && !differences->empty();
  return {Code::kInvalidArgument,
          "it was written by another job ('" + manifest.job_name + "'): " +
              (told ? TellDifferences(*differences) : "its model, tables, rules or seed differ") +
              "; expected a checkpoint of the job that is served"};
}

Result<ServingNeed> NeedThatFits(FileSystem& files, const FoundCheckpoint& found) {
  HDPS_ASSIGN_OR_RETURN(const Job job, ParseJob(found.manifest.job_json, found.folder, {}));
  HDPS_ASSIGN_OR_RETURN(const ServingNeed need, LeastServingNeed(files, found, job));
  HDPS_RETURN_IF_ERROR(CheckFits(files, need));
  return need;
}

Status WarmUp(const RequestSample& sample, RowScorer* at_hand, RowScorer* scorer) {
  for (const std::shared_ptr<const ColumnTable>& rows : sample.Kept()) {
    const Result<ScoredRows> scored = scorer->Score(rows, {.logits = true, .unknown_keys = true});
    if (!scored.ok() && scored.status().code() != Code::kInvalidArgument) return scored.status();
    bool fits = scored.ok();
    for (uint64_t row = 0; fits && row < scored->rows; ++row) {
      fits = AreWithin(*scored, row, kScoreMax);
    }
    if (fits) continue;
    // It is asked only now, because a model that scores here is not there for an answer.
    const Result<ScoredRows> before = at_hand->Score(rows, {.logits = true});
    if (!before.ok()) continue;
    bool odd = false;
    for (uint64_t row = 0; row < before->rows; ++row) {
      if (!AreWithin(*before, row, kUsualScoreMax)) {
        odd = true;
      } else if (scored.ok() && !AreWithin(*scored, row, kScoreMax)) {
        return {Code::kInvalidArgument, "rows that were asked for get scores that are not finite"};
      }
    }
    // An error names its row in words alone, so it is taken for that of an odd one.
    if (!scored.ok() && !odd) return scored.status();
  }
  return {};
}

uint64_t BytesOf(const std::vector<CheckpointPart>& parts) {
  uint64_t bytes = 0;
  for (const CheckpointPart& part : parts) {
    for (const SavedFile& file : part.manifest.files) bytes += file.bytes;
  }
  return bytes;
}

}  // namespace hdps
