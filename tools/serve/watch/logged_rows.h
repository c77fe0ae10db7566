// Turns scored rows into lines of the job's own data format, with their scores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "tools/serve/requests/score_request.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/table_lines.h"

namespace hdps {

struct Job;

// The columns of the log behind those of the job: the request's id, the row's number in it from 0
// on, milliseconds since 1970, the step of the version, and the predictions, with blanks between
// several.
inline constexpr const char* kLogColumns[] = {"hdps_id", "hdps_row", "hdps_time", "hdps_step",
                                              "hdps_score"};

// Chooses rows by a hash of their cells, so that a row is always in the log or never, and writes
// each as the job reads it:
// - csv: the job's columns in its order, then kLogColumns; a header if the job's files have one.
// - criteo: the same between tabs.
// - libsvm, libffm, libfm: the line that was sent, then "# hdps_row=0 hdps_time=... hdps_id=...",
//   which readers take for a comment; the id comes last and ends with the line.
// In columns, labels are empty and weights 1: a row without a label is never trained on by mistake.
class LoggedRows {
 public:
  // Lines with their ends, and how many rows they are.
  struct Lines {
    std::string text;
    uint64_t rows = 0;
    // Chosen rows with a cell that no line of this format can hold, or for which there is no room.
    uint64_t left_out = 0;
  };

  // Returns why rows of this job cannot be logged; empty if they can.
  static std::string WhyNot(const Job& job);
  // Requires: WhyNot() is empty.
  LoggedRows(const Job& job, double share);

  // Returns the first line of each file; empty: there is none.
  std::string Header() const;
  // Returns the lines of the chosen rows, at most `bytes_max` of them: a cell that counts for all
  // rows is in each line, so lines can be thousands of times the request. There are none of an
  // answer without predictions.
  Lines Choose(const ScoreRequest& request, const ScoreAnswer& answer, int64_t unix_ms,
               size_t bytes_max = std::numeric_limits<size_t>::max()) const;

 private:
  // The cells of one request's table in the order of the job's columns.
  struct Source {
    size_t column = 0;                 // Of data_.
    std::optional<ColumnTexts> texts;  // Nothing: all cells are empty, or 1 of a weight.
    uint32_t index = 0;                // Of the column in the table.
  };
  std::vector<Source> SourcesOf(const ColumnTable& table) const;
  // Writes the row's own part into `line`. Returns false if no line can hold it.
  bool WriteRow(const ColumnTable& table, const std::vector<Source>& sources, uint64_t row,
                std::string* line) const;
  // Appends the values of kLogColumns, and the end of the line.
  void AppendLogged(const std::array<std::string, 5>& values, std::string* line) const;

  const DataSpec data_;     // With the columns of the log's lines, also for criteo.
  const bool has_columns_;  // Else rows are lines as they were sent.
  const CellQuotes quotes_;
  const double share_;
  const size_t tasks_;
};

}  // namespace hdps
