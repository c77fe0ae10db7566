// Finds inputs in the data that the model cannot use: the job trains without them and warns. Checks
// the columns of images.
#include <algorithm>
#include <map>
#include <set>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/text/job_sections.h"

namespace hdps {

namespace {

const std::vector<std::string>& FeaturesRead(const LayerSpec& embedding,
                                             const FeatureNames& features) {
  return embedding.features.empty() ? features.sparse : embedding.features;
}

// A factorization machine multiplies features with each other, so a single feature has no effect.
void WarnOfSinglePairs(const FeatureNames& features, Job* job) {
  for (const LayerSpec& layer : job->model.layers) {
    if (layer.kind != "fm") continue;
    const auto embedding =
        std::ranges::find(job->model.layers, layer.inputs.at(0), &LayerSpec::name);
    if (embedding == job->model.layers.end() || embedding->kind != "embedding") continue;
    const std::vector<std::string>& read = FeaturesRead(*embedding, features);
    if (read.size() != 1) continue;
    std::string warning = "layer " + Quoted(layer.name) +
                          " gives 0 for every example: it multiplies pairs of features, and " +
                          Quoted(embedding->name) + " has one alone, " + Quoted(read[0]);
    if (job->data.format == DataFormat::kLibsvm) {
      warning +=
          "; libsvm files have no fields: use libfm if the places of entries are fields, "
          "libffm if fields are written";
    }
    job->warnings.push_back(warning);
  }
}

void WarnOfUnread(const FeatureNames& features, Job* job) {
  std::set<std::string> read;
  bool numbers = false;
  for (const LayerSpec& layer : job->model.layers) {
    numbers = numbers || layer.kind == "numeric";
    if (!ReadsRows(job->model, layer)) continue;
    const std::vector<std::string>& names = FeaturesRead(layer, features);
    read.insert(names.begin(), names.end());
  }
  // In reverse order, because the sources of a feature come before it.
  for (auto feature = job->data.features.rbegin(); feature != job->data.features.rend();
       ++feature) {
    if (read.contains(feature->name)) read.insert(feature->from.begin(), feature->from.end());
  }
  constexpr size_t kShownMax = 3;
  const auto warn = [job, &read](const std::vector<std::string>& names, const std::string& what) {
    std::string unread;
    size_t count = 0;
    for (const std::string& name : names) {
      if (read.contains(name) || ++count > kShownMax) continue;
      unread += (count == 1 ? "" : ", ") + Quoted(name);
    }
    if (count == 0) return;
    if (count > kShownMax) unread += " and " + std::to_string(count - kShownMax) + " more";
    job->warnings.push_back("no layer of the model reads the " + what + " " + unread);
  };
  warn(features.sparse, "sparse features");
  // Recipes leave numeric columns out only if `numeric` says so.
  if (!numbers && job->model.type == "graph") warn(features.numeric, "numeric columns");
}

// A vocabulary with a single column is probably a mistyped name.
void WarnOfVocabularies(Job* job) {
  std::map<std::string, size_t> columns;  // Columns of each vocabulary.
  std::vector<std::string> names;
  for (const ColumnSpec& column : job->data.columns) {
    if (column.type != ColumnType::kCategorical && column.type != ColumnType::kMulti) continue;
    ++columns[column.key_space()];
    names.push_back(column.key_space());
  }
  for (const ColumnSpec& column : job->data.columns) {
    const std::string& name = column.vocabulary;
    if (name.empty() || name == column.name || columns[name] != 1) continue;
    std::vector<std::string> others = names;
    std::erase(others, name);
    job->warnings.push_back("no column shares the vocabulary " + Quoted(name) + " of " +
                            Quoted(column.name) + DidYouMean(name, others));
  }
}

// Returns what is wrong with the column whose cell `column` reads; empty if nothing.
std::string WhyNoCell(const DataSpec& data, const ColumnSpec& column) {
  const auto of = std::ranges::find(data.columns, column.from, &ColumnSpec::name);
  const std::string whose = "the cell of " + Quoted(column.from);
  if (data.format == DataFormat::kIdx) return whose + "; images have no cells";
  if (of == data.columns.end()) {
    std::vector<std::string> names;
    for (const ColumnSpec& other : data.columns) names.push_back(other.name);
    return whose + ", which is no column" + DidYouMean(column.from, names);
  }
  if (!of->has_cell()) {
    return whose + ", which itself reads that of " + Quoted(of->from) + "; name that one";
  }
  if (of->type != ColumnType::kLabel) return "";
  return whose + ", the label, which nobody knows when rows are predicted";
}

}  // namespace

Status CheckSharedCells(const JobSource& source, const DataSpec& data) {
  for (const ColumnSpec& column : data.columns) {
    if (column.has_cell()) continue;
    const std::string why = WhyNoCell(data, column);
    if (why.empty()) continue;
    return Refuse(source, "data.columns", Quoted(column.name) + " reads " + why);
  }
  return {};
}

Status CheckVocabularies(const JobSource& source, const DataSpec& data) {
  std::map<std::string, const ColumnSpec*> first;  // First column of each vocabulary.
  for (const ColumnSpec& column : data.columns) {
    if (column.type != ColumnType::kCategorical && column.type != ColumnType::kMulti) continue;
    const ColumnSpec& other = *first.try_emplace(column.key_space(), &column).first->second;
    if (other.vocab_size == column.vocab_size) continue;
    return Refuse(source, "data.columns",
                  Quoted(column.name) + " has vocab_size " + std::to_string(column.vocab_size) +
                      ", and " + Quoted(other.name) + ", which is of the same vocabulary, has " +
                      std::to_string(other.vocab_size) + "; give both the same");
  }
  return {};
}

Status CheckDistinct(const JobSource& source, Job* job) {
  const DataSpec& data = job->data;
  const std::vector<std::string> features = FeaturesOf(data).sparse;
  for (const auto& [feature, values] : data.distinct) {
    if (std::ranges::find(features, feature) != features.end()) continue;
    job->warnings.push_back("data.distinct." + feature +
                            " is ignored: the data has no sparse feature of this name" +
                            DidYouMean(feature, features));
  }
  for (const auto& [feature, half] : data.distinct_half) {
    const auto all = data.distinct.find(feature);
    if (all != data.distinct.end() && half <= all->second) continue;
    return Refuse(source, "data.distinct_half." + feature,
                  all == data.distinct.end()
                      ? "data.distinct has no such feature; give its different values there"
                      : std::to_string(half) + " is more than all " + std::to_string(all->second) +
                            " of data.distinct; give how many of these half of the rows have");
  }
  return {};
}

void WarnOfInputs(Job* job) {
  WarnOfVocabularies(job);
  if (IsTablesJob(*job)) return;  // What is read is up to the program.
  const FeatureNames features = FeaturesOf(job->data);
  WarnOfSinglePairs(features, job);
  WarnOfUnread(features, job);
}

Status CheckImages(const JobSource& source, const DataSpec& data) {
  constexpr uint64_t kPixelsMax = 1 << 20;
  uint64_t pixels = 1, numeric = 0;
  for (const uint32_t axis : data.image_shape) pixels = std::min(pixels * axis, kPixelsMax + 1);
  if (data.image_shape.empty()) {
    return Refuse(source, "data.image_shape",
                  "an image has an axis at least; give them as its file has them");
  }
  if (pixels > kPixelsMax) {
    return Refuse(
        source, "data.image_shape",
        "an image of so many pixels; at most " + std::to_string(kPixelsMax) + " are allowed");
  }
  for (const ColumnSpec& column : data.columns) {
    numeric += column.type == ColumnType::kNumeric ? 1 : 0;
    if (column.type == ColumnType::kNumeric) continue;
    if (column.type == ColumnType::kLabel && column.positive.empty()) continue;
    return Refuse(source, "data.columns",
                  Quoted(column.name) +
                      " is no column of an image: it has a label, a number, and numeric columns");
  }
  if (data.columns.empty() || numeric == pixels) return {};
  return Refuse(source, "data.columns",
                std::to_string(numeric) + " numeric columns for images of " +
                    std::to_string(pixels) +
                    " pixels (data.image_shape); give one a pixel, as with repeat");
}

}  // namespace hdps
