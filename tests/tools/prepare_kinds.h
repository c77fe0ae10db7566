// Runs prepare on small texts and compares what it plans, for tests of many kinds of data.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/prepare/prepare_report.h"
#include "worker/data/data_preview.h"

namespace hdps {

// Joins row(0), row(1), ... for `rows` rows.
inline std::string Repeated(const std::function<std::string(uint64_t)>& row, uint64_t rows = 60) {
  std::string text;
  for (uint64_t i = 0; i < rows; ++i) text += row(i) + "\n";
  return text;
}

inline std::string Bit(uint64_t i) { return i % 3 == 0 ? "1" : "0"; }
inline std::string Word(uint64_t i) { return std::string(1, static_cast<char>('a' + i % 5)); }
inline std::string Tenths(uint64_t i) {
  return std::to_string(i) + "." + std::to_string(1 + i % 9);
}

struct Outcome {
  std::string read;     // "csv: n numeric, c categorical, y label"; empty: refused.
  std::string refused;  // Message of the refusal.
  std::string notes;
  std::string job;
};

inline std::string Described(const DataProfile& profile, const DataPlan& plan) {
  std::string text(WordOf(profile.layout.format));
  for (size_t c = 0; c < plan.columns.size(); ++c) {
    const ColumnPlan& column = plan.columns[c];
    text += (c == 0 ? ": " : ", ") + profile.columns[c].name;
    text +=
        " " + std::string(c == plan.label ? std::string_view("label") : WordOf(column.spec.type));
    if (c == plan.label && plan.task != TaskKind::kBinary) {
      text += " of " + std::string(WordOf(plan.task));
    }
    for (const std::string& positive : column.spec.positive) text += " " + positive;
  }
  return text;
}

// Runs prepare on a file; for labels of two values it also checks that the job reads every row.
inline Outcome OutcomeOf(const std::string& text, const DataWish& wish = {}) {
  const auto files = NewMemoryFileSystem();
  WriteText(*files, "f", text);
  const auto layout = TellLayout(*files, "f");
  if (!layout.ok()) return {"", layout.status().message(), "", ""};
  const auto profile = ProfileData(*files, *layout, {"f"}, {});
  if (!profile.ok()) return {"", profile.status().message(), "", ""};
  const auto plan = PlanData(*profile, nullptr, wish);
  if (!plan.ok()) return {"", plan.status().message(), "", ""};
  Outcome outcome = {Described(*profile, *plan), "", "", ""};
  for (const std::string& note : plan->notes) outcome.notes += note + "\n";
  if (plan->task != TaskKind::kBinary) return outcome;
  JobWish job_wish;
  job_wish.train = {"f"};
  outcome.job = PreparedJob(*profile, *plan, job_wish);
  const Result<Job> job = ParseJob(outcome.job, "job", {});
  if (!job.ok()) return {"", "the job: " + job.status().message(), "", ""};
  const Result<DataPreview> preview = PreviewJobData(*files, *job);
  if (!preview.ok()) return {"", "its rows: " + preview.status().message(), "", ""};
  EXPECT_EQ(preview->rows, std::min<uint64_t>(profile->rows, 1000)) << text.substr(0, 60);
  EXPECT_GT(preview->labels[1], 0u) << text.substr(0, 60);
  for (const std::string& warning : preview->warnings) outcome.notes += warning + "\n";
  return outcome;
}

struct ReadKind {
  const char* what;
  std::string text, read;
  const char* note = "";
};

inline void ExpectRead(const std::vector<ReadKind>& kinds) {
  for (const ReadKind& kind : kinds) {
    const Outcome outcome = OutcomeOf(kind.text);
    EXPECT_EQ(outcome.read, kind.read) << kind.what << ": " << outcome.refused;
    EXPECT_THAT(outcome.notes, ::testing::HasSubstr(kind.note)) << kind.what;
  }
}

struct RefusedKind {
  const char* what;
  std::string text;
  std::vector<const char*> words;
};

inline void ExpectRefused(const std::vector<RefusedKind>& kinds) {
  for (const RefusedKind& kind : kinds) {
    const Outcome outcome = OutcomeOf(kind.text);
    EXPECT_EQ(outcome.read, "") << kind.what;
    for (const char* word : kind.words) {
      EXPECT_THAT(outcome.refused, ::testing::HasSubstr(word)) << kind.what;
    }
  }
}

inline constexpr const char* kPlain = "csv: x numeric, c categorical, y label";

inline std::string Rows(const char* delimiter = ",") {
  const std::string d = delimiter;
  return Repeated([&](uint64_t i) { return Tenths(i) + d + Word(i) + d + Bit(i); });
}

}  // namespace hdps
