// Rules of a job whose model is another program's: which settings count, and what they may be.
#include <algorithm>
#include <span>
#include <string_view>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/text/job_sections.h"
#include "common/metrics/metric.h"

namespace hdps {

namespace {

// The settings that count, each with all below it. model.layers is refused, and so is read.
constexpr const char* kCounting[] = {"name",
                                     "seed",
                                     "model.type",
                                     "model.tables",
                                     "model.layers",
                                     "train.mode",
                                     "train.staleness_bound",
                                     "train.max_staleness",
                                     "train.delay_compensation",
                                     "train.staleness_rate",
                                     "train.max_steps",
                                     "train.eval_every_steps",
                                     "train.schedule",
                                     "train.clip_value",
                                     "train.clip_norm",
                                     "train.loss_scale",
                                     "train.early_stop.patience",
                                     "train.early_stop.metric",
                                     "train.early_stop.min_delta",
                                     "train.plateau.patience",
                                     "train.plateau.metric",
                                     "train.plateau.min_delta",
                                     "train.plateau.factor",
                                     "train.plateau.least",
                                     "parallel.device_num",
                                     "parallel.global_rank",
                                     "parallel.gradients_mean",
                                     "parallel.cross_batch",
                                     "parallel.wire",
                                     "checkpoint.every_steps",
                                     "checkpoint.delta_every_steps",
                                     "checkpoint.every_seconds",
                                     "checkpoint.delta_every_seconds",
                                     "checkpoint.keep_best",
                                     "checkpoint.keep",
                                     "checkpoint.retry_s",
                                     "checkpoint.copy_to",
                                     "checkpoint.copy_wait_s",
                                     "cluster"};
// These count for a program that reads the job's data with the job's own reader.
constexpr const char* kCountingWithData[] = {"data", "train.batch_size", "train.last_batch"};

bool Lists(std::span<const char* const> paths, const std::string& path) {
  return std::ranges::any_of(paths, [&](std::string_view listed) {
    return path == listed || (path.starts_with(listed) && path[listed.size()] == '.');
  });
}

class LeftOut {
 public:
  LeftOut(bool reads_data, std::vector<std::string>* warnings)
      : reads_data_(reads_data), warnings_(*warnings) {}

  void Walk(const Section& section, const std::string& path, JsonValue* object) {
    const std::vector<std::string> names = object->names;
    for (const std::string& name : names) {
      const std::string place = PathBelow(path, name);
      const Setting& setting = *section.Find(name);
      if (Lists(kCounting, place) || (reads_data_ && Lists(kCountingWithData, place))) continue;
      if (setting.kind == ValueKind::kObject && !setting.is_list && !setting.by_name) {
        Walk(*setting.section, place, object->Find(name));
        if (object->Find(name)->names.empty()) object->Erase(name);
        continue;
      }
      if (!IsDefault(section, setting, *object->Find(name))) Warn(place);
      object->Erase(name);
    }
  }

 private:
  static bool IsDefault(const Section& section, const Setting& setting, const JsonValue& value) {
    return setting.print && PrintJsonLine(value) ==
                                PrintJsonLine(setting.print(section.defaults.get(), Form::kWhole));
  }

  void Warn(const std::string& place) {
    const bool of_data = place.starts_with("data.") || Lists(kCountingWithData, place);
    warnings_.push_back(place + " is ignored: " +
                        (of_data ? "data.train names no file, so the job has no data of its own"
                                 : "model.type is tables, and the model is your program's"));
  }

  const bool reads_data_;
  std::vector<std::string>& warnings_;
};

}  // namespace

void LeaveOutOfTablesJob(const Section& whole, JsonValue* root,
                         std::vector<std::string>* warnings) {
  const JsonValue* const type = root->Find("model")->Find("type");
  if (type == nullptr || type->text != kTablesType) return;
  const JsonValue* const data = root->Find("data");
  const JsonValue* const train = data == nullptr ? nullptr : data->Find("train");
  LeftOut(train != nullptr && !train->items.empty(), warnings).Walk(whole, "", root);
}

Status CheckTablesJob(const JobSource& source, const Job& job) {
  if (!IsTablesJob(job)) return {};
  for (size_t t = 0; t < job.tables.size(); ++t) {
    const TableSpec& table = job.tables[t];
    const std::string place = "model.tables." + std::to_string(t) + ".";
    if (table.vocab_cache_size > 0) {
      return Refuse(source, place + "vocab_cache_size",
                    "under model.type tables servers keep all rows; leave it out");
    }
    if (table.slice_mode == SliceMode::kField || table.slice_mode == SliceMode::kColumn) {
      return Refuse(source, place + "slice_mode",
                    std::string(WordOf(table.slice_mode)) +
                        " follows the features that layers read, and model.type tables has none; "
                        "take batch_slice or table_row_slice");
    }
  }
  return {};
}

Status CheckOwnWatch(const JobSource& source, const std::string& place, bool chosen, const Job& job,
                     WatchSpec* watch) {
  if (!chosen && watch->patience > 0) watch->metric.clear();
  if (chosen && !watch->metric.empty() && !IsFigureName(watch->metric)) {
    return Refuse(source, place + ".metric",
                  Quoted(watch->metric) +
                      " cannot name a figure; a name is a letter and up to 63 letters, digits, _ "
                      "and @, as the program reports it");
  }
  if (watch->patience > 0 && job.train.eval_every_steps == 0) {
    return Refuse(source, place,
                  "nothing is evaluated: under model.type tables the program is asked for figures "
                  "every train.eval_every_steps; give that");
  }
  return {};
}

}  // namespace hdps
